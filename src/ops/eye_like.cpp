// EyeLike: ones on a diagonal, in the shape of another matrix.
#include "ops/support/lower.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

void eval(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  if (x.rank() != 2) fail("the input must have rank 2, but its shape is {}", to_string(x.dims()));
  DType dtype = e.has_attr("dtype") ? e.attr_dtype("dtype") : x.dtype();
  int64_t k = e.attr_int("k");
  std::vector<double> values(static_cast<size_t>(x.count()), 0.0);
  for (int64_t i = 0; i < x.dim(0); ++i) {
    int64_t j = 0;
    if (!__builtin_add_overflow(i, k, &j) && j >= 0 && j < x.dim(1)) values[static_cast<size_t>(i * x.dim(1) + j)] = 1;
  }
  e.set(0, narrow<double>(values, dtype, x.dims()));
}

void lower(LowerContext& c) {
  c.define(0, [&c](const Index& at) {
    kir::Value diagonal = at[1] == at[0] + c.size(c.constant(c.attr_int("k")));
    return cast(cast(diagonal, DType::u8), c.result_dtype());
  });
}

}  // namespace

OpDef eye_like_op() {
  return {
      .name = "eye_like",
      .onnx = {"", "EyeLike", {9, 22}},
      .doc = "ones on the k-th diagonal, zeros elsewhere, in the shape of the operand",
      .operands = {{"input", {"T1", dtypes::numeric | dtypes::boolean}}},
      .results = {{"output", {"T2", dtypes::numeric | dtypes::boolean}}},
      .attrs = {optional_attr("dtype", AttrKind::integer), int_attr("k", 0)},
      .dynamism = isdo(),
      .mapping = Mapping::one_to_one,
      .forward =
          [](const ForwardContext& c) {
            const ir::Attribute* given = c.find_attr("dtype");
            std::optional<DType> dtype = given ? dtype_from_onnx(std::get<int64_t>(*given)) : std::optional(c.dtype(0));
            return std::vector<Type>{dtype ? Type::tensor(*dtype, c.dims(0)) : Type{}};
          },
      .backward =
          [](BackwardContext& c) {
            c.set_rank(0, 2);
            backward_same(c);
          },
      .value = absent("shape arithmetic has no matrices"),
      .eval = eval,
      .lower = lower,
      .grad = absent("the result does not depend on real values"),
      .samples = {{"$(f32[2, 3]) {k = 1, dtype = 7}", "i64[2, 3]{0, 1, 0, 0, 0, 1}"},
                  {"$(i32[0, 3])", "i32[0, 3]"},
                  {"$(f32[2])", "error: rank 2"}},
  };
}

}  // namespace selkie::ops
