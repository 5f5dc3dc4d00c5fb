// Types of sequences, optionals and other values that are no tensors.
#pragma once

#include "ir/shape_context.h"

namespace selkie::ops {

// What a sequence or an optional holds; `?` where that is not known.
ir::Type item_of(const ir::Type& container);
// What holds for values of both types. Dims stay only where all of a tensor are the same.
ir::Type common_type(const ir::ShapeContext& c, const ir::Type& a, const ir::Type& b);
// The type, its parts included, without tensors' dims.
ir::Type without_dims(ir::Type type);
// Without dims that mean nothing where the node stands, but only inside one of its regions.
ir::Type visible_type(const ir::ShapeContext& c, ir::Type type);

}  // namespace selkie::ops
