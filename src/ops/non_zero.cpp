// NonZero: where the elements are that are not zero.
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

void eval(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  std::vector<std::vector<int64_t>> found;
  auto collect = [&](auto tag) {
    using W = typename decltype(tag)::type;
    std::vector<W> values = widen<W>(x);
    Walk<1> walk(x.dims(), {strides_of(x.dims())});
    for (; !walk.done(); walk.next())
      if (values[static_cast<size_t>(walk.offset(0))] != W{}) found.push_back(walk.index());
  };
  dispatch_wide(x.dtype(), collect);
  auto count = static_cast<int64_t>(found.size());
  Tensor out(DType::i64, {x.rank(), count});
  for (int64_t axis = 0; axis < x.rank(); ++axis)
    for (int64_t i = 0; i < count; ++i)
      out.mutable_data<int64_t>()[axis * count + i] = found[static_cast<size_t>(i)][static_cast<size_t>(axis)];
  e.set(0, std::move(out));
}

std::vector<Type> forward(const ForwardContext& c) {
  if (!c.dims(0)) return {Type::tensor(DType::i64, c.unknown_dims(0, 2))};
  sym::Expr all = c.constant(1);
  for (sym::Expr d : *c.dims(0)) all = all * d;
  sym::Expr count = c.unknown(0, 1, {.least = {}, .most = all});
  return {Type::tensor(DType::i64, SymDims{c.constant(static_cast<int64_t>(c.dims(0)->size())), count})};
}

}  // namespace

OpDef non_zero_op() {
  return {
      .name = "non_zero",
      .onnx = {"", "NonZero", {9, 13}},
      .doc = "the indices of elements that are not zero, one column each, in row-major order",
      .operands = {{"x", any_tensor}},
      .results = {{"indices", i64_tensor}},
      .dynamism = edo({"x"}),
      .mapping = Mapping::opaque,
      .forward = forward,
      .backward =
          [](BackwardContext& c) {
            std::optional<int64_t> rank = c.result_dims(0) ? c.result_dims(0)->at(0).constant() : std::nullopt;
            if (rank && *rank <= ir::max_known_elements) c.set_rank(0, static_cast<size_t>(*rank));
          },
      .value = absent("which elements are zero is known for constants only, which are folded"),
      .eval = eval,
      .lower = absent("how many results there are shows only while they are found"),
      .grad = absent("the result is an integer"),
      .samples = {{"$(f32[2, 2]{1, 0, 0, 2})", "i64[2, 2]{0, 1, 0, 1}"},
                  {"$(f32[2])", "i64[1, 2]{0, 1}"},
                  {"$(bool[3]{false, false, false})", "i64[1, 0]"},
                  {"$(i32[]{5})", "i64[0, 1]"},
                  {"$()", "error: at least 1"}},
  };
}

}  // namespace selkie::ops
