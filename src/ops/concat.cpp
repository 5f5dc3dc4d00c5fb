// Concat: operands one after the other along one axis.
#include "ops/support/lower.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

void eval(EvalContext& e) {
  std::vector<Tensor> parts;
  for (size_t i = 0; i < e.operand_count(); ++i) parts.push_back(e.tensor(i));
  e.set(0, concat(parts, normalize_axis(e.attr_int("axis"), parts[0].rank())));
}

std::vector<Type> forward(const ForwardContext& c) {
  std::optional<SymDims> dims = c.dims(0);
  if (!dims) return {Type::tensor(c.dtype(0))};
  auto axis = static_cast<size_t>(normalize_axis(c.attr_int("axis"), static_cast<int64_t>(dims->size())));
  for (size_t i = 1; i < c.operand_count(); ++i) {
    if (!c.dims(i)) {
      (*dims)[axis] = c.unknown(0, axis);
      break;
    }
    if (c.rank(i) != dims->size()) fail("ranks {} and {} cannot be concatenated", dims->size(), c.rank(i));
    (*dims)[axis] = (*dims)[axis] + (*c.dims(i))[axis];
  }
  return {Type::tensor(c.dtype(0), dims)};
}

// All operands agree outside the axis.
void backward(BackwardContext& c) {
  std::optional<SymDims> whole = c.result_dims(0);
  for (size_t i = 0; i < c.operand_count() && !whole; ++i) whole = c.dims(i);
  if (!whole) return;
  auto axis = static_cast<size_t>(normalize_axis(c.attr_int("axis"), static_cast<int64_t>(whole->size())));
  (*whole)[axis] = {};
  for (size_t i = 0; i < c.operand_count(); ++i) c.set_dims(i, *whole);
}

void lower(LowerContext& c) {
  auto axis = static_cast<size_t>(normalize_axis(c.attr_int("axis"), static_cast<int64_t>(c.rank(0))));
  c.set_concatenation(axis);
  c.define(0, [&c, axis](const Index& at) {
    sym::Expr end = c.constant(0);
    kir::Value result;
    for (size_t i = 0; i < c.operand_count(); ++i) {
      kir::Value begin = c.size(end);
      end = end + (*c.dims(i))[axis];
      kir::Value inside = at[axis] < c.size(end);
      if (i > 0) inside = (begin <= at[axis]) & inside;
      Index from = at;
      from[axis] = at[axis] - begin;
      kir::Value element = c.operand_if(inside, i, from);
      result = result ? select(inside, element, result) : element;
    }
    return result;
  });
}

}  // namespace

OpDef concat_op() {
  return {
      .name = "concat",
      .onnx = {"", "Concat", {1, 4, 11, 13}},
      .doc = "operands one after the other along one axis",
      .operands = {{"first", any_tensor}, {"rest", any_tensor, variadic}},
      .results = {{"result", any_tensor}},
      .attrs = {required_attr("axis", AttrKind::integer)},
      .dynamism = isdos(),
      .mapping = Mapping::reorganize,
      .forward = forward,
      .backward = backward,
      .value = value_by_moving,
      .eval = eval,
      .lower = lower,
      .grad = later::training,
      .upgrades = {{4, set_default("axis", int64_t{1})}},
      .samples = {{"$(f32[2, 3], f32[2, 1]) {axis = 1}", "f32[2, 4]"},
                  {"$(i64[2]{1, 2}, i64[0], i64[1]{3}) {axis = -1}", "i64[3]{1, 2, 3}"},
                  {"$(str[1]{\"a\"}, str[1]{\"b\"}) {axis = 0}", "str[2]{\"a\", \"b\"}"},
                  {"$(f32[2, 3], f32[3, 3]) {axis = 1}", "error: differ outside axis 1"},
                  {"$(f32[2, 3]) {axis = 2}", "error: axis 2 is outside"}},
  };
}

}  // namespace selkie::ops
