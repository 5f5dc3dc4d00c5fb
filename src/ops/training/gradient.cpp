// Gradient: derivatives of one value of the graph by others.
#include "ops/support/record.h"

namespace selkie::ops {

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
      .forward = later::rdp,
      .backward = later::rdp,
      .value = later::rdp,
      .eval = later::training,
      .lower = later::training,
      .grad = later::training,
      .samples = {},
  };
}

}  // namespace selkie::ops
