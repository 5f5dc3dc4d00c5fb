// Size: the number of elements.
#include "ops/support/dims.h"
#include "ops/support/lower.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

void lower(LowerContext& c) {
  c.define(0, [&c](const Index&) { return c.size(product(c, *c.dims(0))); });
}

}  // namespace

OpDef size_op() {
  return {
      .name = "size",
      .onnx = {"", "Size", {1, 13, 19, 21, 23, 24, 25}},
      .doc = "the number of elements",
      .operands = {{"data", any_tensor}},
      .results = {{"size", i64_tensor}},
      .dynamism = isdo(),
      .mapping = Mapping::opaque,
      .forward = [](const ForwardContext&) { return std::vector<Type>{Type::tensor(DType::i64, SymDims{})}; },
      .backward = absent("a number of elements does not tell a rank"),
      .value =
          [](ValueContext& c) {
            if (!c.dims(0)) return;
            sym::Expr all = c.constant(1);
            for (sym::Expr d : *c.dims(0)) all = all * d;
            c.set(0, ir::SymElements{all});
          },
      .eval = [](EvalContext& e) { e.set(0, Tensor::scalar_i64(e.tensor(0).count())); },
      .lower = lower,
      .grad = absent("the result is an integer"),
      .samples = {{"$(f32[2, 3])", "i64[]{6}"},
                  {"$(f32[])", "i64[]{1}"},
                  {"$(str[0, 3])", "i64[]{0}"},
                  {"$()", "error: at least 1"}},
  };
}

}  // namespace selkie::ops
