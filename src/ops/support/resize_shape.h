// The sizes that Resize and Upsample give to axes, by scales or as wanted: in numbers, and before the run.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/shape_context.h"
#include "ops/support/resize.h"

namespace selkie::ops {

// One number per axis; sets the output and the scale of each.
void set_scales(std::vector<ResizeAxis>& axes, std::span<const double> scales);
void set_sizes(std::vector<ResizeAxis>& axes, std::span<const int64_t> sizes, const std::string& policy);

// Which operands give scales or sizes. Of two, one is left out or empty.
struct ResizeBy {
  size_t scales;
  std::optional<size_t> sizes;
};
// The operand that decides, where that is known: the one that is there and not empty.
std::optional<size_t> deciding_operand(const ir::ShapeContext& c, const ResizeBy& by);
// The attribute that names the axes; null where all are resized.
const std::vector<int64_t>* resized_axes(const ir::ShapeContext& c);
std::vector<ir::Type> resize_forward(const ir::ForwardContext& c, const ResizeBy& by);
void resize_backward(ir::BackwardContext& c, const ResizeBy& by);

}  // namespace selkie::ops
