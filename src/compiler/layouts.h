// Chooses how each value lies in memory if it is stored: convolutions run channels-last, transposes and reshapes become
// views where they can, and what is stored on the way is stored as its users want it.
#pragma once

#include "codegen/stitch.h"

namespace selkie::compiler {

// Of the values of a region and of all that are compiled inside it. `computable` are the nodes that kernels compute;
// all others but branches, and the caller, take and give plain tensors.
codegen::Placement choose_layouts(const ir::Region& region, const std::set<const ir::Node*>& computable,
                                  const std::function<bool(const ir::Node&)>& is_compiled, const analysis::Rdp& rdp,
                                  codegen::Stitcher& stitcher);

// Whether axes can be walked with one stride, in their order.
bool is_one_line(const codegen::SymDims& strides, const codegen::SymDims& dims, std::span<const size_t> axes);
// Whether a product can write its result into this layout.
bool product_writes(const ir::ProductForm& form, const codegen::Layout& layout, const codegen::SymDims& dims,
                    sym::Context& symbols);

}  // namespace selkie::compiler
