// Gradient: derivatives of one value of the graph by others.
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

size_t count_of_xs(const ir::ShapeContext& c) {
  return std::min(std::get<std::vector<std::string>>(*c.find_attr("xs")).size(), c.operand_count());
}

// The first operands are the values of 'xs', and derivatives have their shape.
std::vector<Type> forward(const ForwardContext& c) {
  std::vector<Type> types;
  for (size_t i = 0; i < count_of_xs(c); ++i) types.push_back(c.type(i));
  return types;
}

void backward(BackwardContext& c) {
  for (size_t i = 0; i < count_of_xs(c); ++i)
    if (c.type(i).is_tensor() && c.result_dims(i)) c.set_dims(i, *c.result_dims(i));
}

}  // namespace

OpDef gradient_op() {
  return {
      .name = "gradient",
      .onnx = {"ai.onnx.preview.training", "Gradient", {1}},
      .doc = "partial derivatives of the value 'y' by the values 'xs', at the given inputs",
      .operands = {{"inputs", any_tensor, variadic, Container::any}},
      .results = {{"outputs", {"T2", dtypes::f16_f32_f64}, variadic}},
      .attrs = {required_attr("xs", AttrKind::texts), required_attr("y", AttrKind::text),
                optional_attr("zs", AttrKind::texts)},
      .dynamism = isdos(),
      .mapping = Mapping::opaque,
      .forward = forward,
      .backward = backward,
      .value = absent("derivatives do not occur in shape arithmetic"),
      .eval = later::training,
      .lower = later::training,
      .grad = later::training,
      .samples = {},
  };
}

}  // namespace selkie::ops
