// Trilu: the upper or lower triangle of matrices.
#include "ops/support/lower.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

void eval(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  if (x.rank() < 2) fail("matrices are needed, but the shape is {}", to_string(x.dims()));
  int64_t k = e.has(1) ? int_of(e.tensor(1)) : 0;
  bool upper = e.attr_int("upper") != 0;
  int64_t rows = x.dim(x.rank() - 2);
  int64_t columns = x.dim(x.rank() - 1);
  k = std::clamp(k, -rows - 1, columns + 1);
  Tensor out(x.dtype(), x.dims());
  dispatch_storage(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < x.count(); ++i) {
      int64_t diagonal = i % columns - i / columns % rows;
      if (upper ? diagonal >= k : diagonal <= k) out.mutable_data<T>()[i] = x.data<T>()[i];
    }
  });
  e.set(0, std::move(out));
}

void lower(LowerContext& c) {
  if (c.rank(0) < 2) c.refuse("matrices are needed");
  if (c.has(1) && !has_one_element(c, 1)) c.refuse("the diagonal may be more than one number");
  c.define(0, [&c](const Index& at) {
    kir::Value diagonal = at[at.size() - 1] - at[at.size() - 2];
    kir::Value k = c.has(1) ? only_element(c, 1, DType::i64) : c.builder().integer(0);
    kir::Value kept = c.attr_int("upper") != 0 ? k <= diagonal : diagonal <= k;
    return select(kept, c.operand(0, at), c.builder().number(c.dtype(0), 0));
  });
}

}  // namespace

OpDef trilu_op() {
  return {
      .name = "trilu",
      .onnx = {"", "Trilu", {14}},
      .doc = "the upper or lower triangle of matrices from the k-th diagonal on, zeros elsewhere",
      .operands = {{"input", any_tensor}, {"k", i64_tensor, optional}},
      .results = {{"output", any_tensor}},
      .attrs = {int_attr("upper", 1)},
      .dynamism = isdos(),
      .mapping = Mapping::one_to_one,
      .forward = same_as_first,
      .backward = backward_same,
      .value = absent("shape arithmetic has no matrices"),
      .eval = eval,
      .lower = lower,
      .grad = later::training,
      .samples = {{"$(i32[2, 2]{1, 2, 3, 4})", "i32[2, 2]{1, 2, 0, 4}"},
                  {"$(i32[2, 2]{1, 2, 3, 4}, i64[]{-1}) {upper = 0}", "i32[2, 2]{0, 0, 3, 0}"},
                  {"$(f32[2, 0, 3])", "f32[2, 0, 3]"},
                  {"$(f32[2])", "error: matrices are needed"}},
  };
}

}  // namespace selkie::ops
