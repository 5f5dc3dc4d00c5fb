// Where: elements of one tensor or another, chosen by a third.
#include "ops/support/lower.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

void eval(EvalContext& e) {
  const Tensor& condition = e.tensor(0);
  const Tensor& x = e.tensor(1);
  const Tensor& y = e.tensor(2);
  Tensor out(x.dtype(), broadcast(condition.dims(), broadcast(x.dims(), y.dims())));
  const Dims& dims = out.dims();
  dispatch_storage(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const bool* choose = condition.data<bool>();
    T* to = out.mutable_data<T>();
    Walk<3> walk(dims, {broadcast_strides(condition.dims(), dims), broadcast_strides(x.dims(), dims),
                        broadcast_strides(y.dims(), dims)});
    for (; !walk.done(); walk.next())
      *to++ = choose[walk.offset(0)] ? x.data<T>()[walk.offset(1)] : y.data<T>()[walk.offset(2)];
  });
  e.set(0, std::move(out));
}

void value(ValueContext& c) {
  value_elementwise(c, [&](std::span<const sym::Expr> x) { return choose(c, x[0], x[1], x[2]); });
}

}  // namespace

OpDef where_op() {
  return {
      .name = "where",
      .onnx = {"", "Where", {9, 16}},
      .doc = "x where the condition holds, y elsewhere",
      .operands = {{"condition", bool_tensor}, {"x", any_tensor}, {"y", any_tensor}},
      .results = {{"output", any_tensor}},
      .dynamism = isdos(),
      .mapping = Mapping::one_to_one,
      .forward =
          [](const ForwardContext& c) {
            return std::vector<Type>{
                Type::tensor(c.dtype(1), broadcast(c, c.dims(0), broadcast(c, c.dims(1), c.dims(2))))};
          },
      .backward = backward_broadcast,
      .value = value,
      .eval = eval,
      .lower =
          [](LowerContext& c) {
            lower_elementwise(
                c, [](const LowerContext&, std::span<const kir::Value> x) { return select(x[0], x[1], x[2]); }, 1);
          },
      .grad = later::training,
      .samples = {{"$(bool[2]{true, false}, i32[2]{1, 2}, i32[]{7})", "i32[2]{1, 7}"},
                  {"$(bool[2, 1], f32[3], f32[])", "f32[2, 3]"},
                  {"$(bool[0], f32[1], f32[1])", "f32[0]"},
                  {"$(bool[2], f32[3], f32[])", "error: do not broadcast"},
                  {"$(bool[2], f32[2], i32[2])", "error: must be f32"}},
  };
}

}  // namespace selkie::ops
