// Shape: the dims of a tensor as a tensor.
#include "ops/support/lower.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

// The part of 0…rank that the attributes start and end select.
std::pair<int64_t, int64_t> bounds(int64_t rank, int64_t start, const ir::Attribute* end) {
  auto clamp = [&](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + rank : i, 0, rank); };
  int64_t first = clamp(start);
  return {first, std::max(first, end != nullptr ? clamp(std::get<int64_t>(*end)) : rank)};
}

void eval(EvalContext& e) {
  const Dims& dims = e.tensor(0).dims();
  ir::Attribute end = e.has_attr("end") ? e.attr_int("end") : int64_t{0};
  auto [first, last] = bounds(e.tensor(0).rank(), e.attr_int("start"), e.has_attr("end") ? &end : nullptr);
  e.set(0, Tensor::of_i64(std::span(dims).subspan(static_cast<size_t>(first), static_cast<size_t>(last - first))));
}

std::vector<Type> forward(const ForwardContext& c) {
  if (!c.dims(0)) return {Type::tensor(DType::i64, SymDims{c.unknown(0, 0)})};
  auto [first, last] = bounds(static_cast<int64_t>(c.dims(0)->size()), c.attr_int("start"), c.find_attr("end"));
  return {Type::tensor(DType::i64, SymDims{c.constant(last - first)})};
}

void value(ValueContext& c) {
  if (!c.dims(0)) return;
  auto [first, last] = bounds(static_cast<int64_t>(c.rank(0)), c.attr_int("start"), c.find_attr("end"));
  c.set(0, ir::SymElements(c.dims(0)->begin() + first, c.dims(0)->begin() + last));
}

// As many elements as the operand has dims, if none are left out.
void backward(BackwardContext& c) {
  if (!c.result_dims(0) || c.attr_int("start") != 0 || c.find_attr("end") != nullptr) return;
  std::optional<int64_t> rank = c.result_dims(0)->at(0).constant();
  if (rank && *rank <= ir::max_known_elements) c.set_rank(0, static_cast<size_t>(*rank));
}

void lower(LowerContext& c) {
  auto [first, last] = bounds(static_cast<int64_t>(c.rank(0)), c.attr_int("start"), c.find_attr("end"));
  c.define(0, [&c, first, last](const Index& at) {
    kir::Value result = c.builder().integer(0);
    for (int64_t i = first; i < last; ++i)
      result = select(at[0] == c.builder().integer(i - first), c.size(c.dims(0)->at(static_cast<size_t>(i))), result);
    return result;
  });
}

}  // namespace

OpDef shape_op() {
  return {
      .name = "shape",
      .onnx = {"", "Shape", {1, 13, 15, 19, 21, 23, 24, 25}},
      .doc = "the dims of a tensor, or the part of them from start to end",
      .operands = {{"data", any_tensor}},
      .results = {{"shape", i64_tensor}},
      .attrs = {int_attr("start", 0), optional_attr("end", AttrKind::integer)},
      .dynamism = isdo(),
      .mapping = Mapping::opaque,
      .forward = forward,
      .backward = backward,
      .value = value,
      .eval = eval,
      .lower = lower,
      .grad = absent("the result is an integer"),
      .samples = {{"$(f32[2, 3])", "i64[2]{2, 3}"},
                  {"$(f32[])", "i64[0]"},
                  {"$(f32[2, 3, 4]) {start = -2, end = -1}", "i64[1]{3}"},
                  {"$(f32[2, 3]) {start = 2, end = 1}", "i64[0]"},
                  {"$()", "error: at least 1"}},
  };
}

}  // namespace selkie::ops
