// A record to start from, for families whose members differ in too much for a table of rows.
#pragma once

#include "ops/support/record.h"

namespace selkie::ops {

// Input-shape-determined, with the hooks that later work brings; the member sets name, operands, eval and samples.
inline OpDef blank_record(Mapping mapping = Mapping::opaque) {
  return {
      .name = {},
      .onnx = {},
      .doc = {},
      .operands = {},
      .results = {},
      .dynamism = isdos(),
      .mapping = mapping,
      .forward = later::rdp,
      .backward = later::rdp,
      .value = absent("its results do not occur in shape arithmetic"),
      .eval = absent("set by each record"),
      .lower = later::cpu,
      .grad = later::training,
      .samples = {},
  };
}

// Operand i, or null where it is left out.
inline const Tensor* optional_tensor(const EvalContext& e, size_t i) { return e.has(i) ? &e.tensor(i) : nullptr; }

// forward: a tensor of a fixed dtype with the dims of the first operand.
inline auto shaped_like_first(DType dtype) {
  return [dtype](const ForwardContext& c) -> std::vector<Type> { return {Type::tensor(dtype, c.dims(0))}; };
}

}  // namespace selkie::ops
