// How a stored tensor lies in memory: dense, with its axes in any order.
#pragma once

#include "kir/builder.h"
#include "sym/facts.h"

namespace selkie::codegen {

// The axes from the outermost to the innermost; empty: as they are numbered. Of the layouts that are the same because
// axes have size 1, only the one that `simplified` gives is used.
using Layout = std::vector<uint32_t>;
using SymDims = std::vector<sym::Expr>;

Layout simplified(const Layout& layout, const SymDims& dims);
// Batch, spatial axes, channels.
Layout channels_last(const SymDims& dims);

// All axes from the outermost to the innermost.
Layout memory_order(const Layout& layout, size_t rank);
// For each axis, elements from one to the next.
SymDims strides(const Layout& layout, const SymDims& dims, sym::Context& symbols);

// The layout under which the same memory is a tensor whose axis i is axis axes[i] of the given one.
Layout permuted(const Layout& layout, std::span<const int64_t> axes, const SymDims& dims);
// The layout under which the same memory is the tensor reshaped; none if there is none.
std::optional<Layout> reshaped(const Layout& layout, const SymDims& from, const SymDims& to, const sym::Facts& facts);

// Where an element is.
kir::Value position(kir::Builder& builder, const Layout& layout, const SymDims& dims, const kir::Index& at);

}  // namespace selkie::codegen
