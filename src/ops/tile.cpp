// Tile: a tensor repeated along its axes.
#include "ops/support/lower.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

void eval(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  std::vector<int64_t> repeats = ints_of(e.tensor(1));
  if (static_cast<int64_t>(repeats.size()) != x.rank())
    fail("{} repeats are given for {} axes", repeats.size(), x.rank());
  // Every axis becomes two, of which the first is walked without moving.
  Dims pairs;
  Dims dims;
  std::vector<int64_t> strides;
  std::vector<int64_t> own = strides_of(x.dims());
  for (size_t i = 0; i < repeats.size(); ++i) {
    if (repeats[i] < 0) fail("repeat {} is negative", repeats[i]);
    pairs.insert(pairs.end(), {repeats[i], x.dims()[i]});
    strides.insert(strides.end(), {0, own[i]});
    int64_t dim = 0;
    if (__builtin_mul_overflow(repeats[i], x.dims()[i], &dim))
      fail("{} repeats of {} are too many", repeats[i], x.dims()[i]);
    dims.push_back(dim);
  }
  e.set(0, strided_copy(x, std::move(pairs), strides).reshaped(std::move(dims)));
}

std::vector<Type> forward(const ForwardContext& c) {
  std::optional<ir::SymElements> repeats = c.elements(1);
  if (!c.dims(0) || !repeats || repeats->size() != c.dims(0)->size()) return {Type::tensor(c.dtype(0))};
  SymDims dims;
  for (size_t i = 0; i < repeats->size(); ++i) dims.push_back((*c.dims(0))[i] * (*repeats)[i]);
  return {Type::tensor(c.dtype(0), dims)};
}

// Repeats are natural, one for each dim.
void backward(BackwardContext& c) {
  std::optional<ir::SymElements> repeats = c.contents(1);
  if (c.result_dims(0)) c.set_rank(0, c.result_dims(0)->size());
  for (sym::Expr e : repeats.value_or(ir::SymElements{})) c.less_equal(c.constant(0), e);
}

void lower(LowerContext& c) {
  c.define(0, [&c](const Index& at) {
    Index from = at;
    for (size_t i = 0; i < at.size(); ++i)
      if (sym::Expr own = (*c.dims(0))[i]; !c.proves_equal(own, c.result_dims()[i])) from[i] = mod(at[i], c.size(own));
    return c.operand(0, from);
  });
}

// Opset 1 repeated one axis: operands were the number of tiles and the axis.
void one_axis_form(UpgradeContext& c) { c.become("tile_axis"); }

void eval_axis(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  int64_t tiles = int_of(e.tensor(1));
  int64_t axis = normalize_axis(int_of(e.tensor(2)), x.rank());
  if (tiles < 0) fail("repeat {} is negative", tiles);
  Dims dims = x.dims();
  if (__builtin_mul_overflow(dims[static_cast<size_t>(axis)], tiles, &dims[static_cast<size_t>(axis)]))
    fail("{} repeats are too many", tiles);
  Dims pairs = x.dims();
  pairs.insert(pairs.begin() + axis, tiles);
  std::vector<int64_t> strides = strides_of(x.dims());
  strides.insert(strides.begin() + axis, 0);
  e.set(0, strided_copy(x, std::move(pairs), strides).reshaped(std::move(dims)));
}

// The one number that a known tensor of any numeric type holds.
std::optional<int64_t> number_of(const ForwardContext& c, size_t operand) {
  std::optional<Tensor> tensor = ir::tensor_of(c.known(operand));
  return tensor && tensor->count() == 1 ? std::optional(int_of(*tensor)) : std::nullopt;
}

std::vector<Type> forward_axis(const ForwardContext& c) {
  std::optional<ir::SymElements> given = c.elements(1);
  std::optional<int64_t> axis = number_of(c, 2);
  if (!c.dims(0)) return {Type::tensor(c.dtype(0))};
  if (!axis) return {Type::tensor(c.dtype(0), c.unknown_dims(0, c.rank(0)))};
  SymDims dims = *c.dims(0);
  auto repeated = static_cast<size_t>(normalize_axis(*axis, static_cast<int64_t>(dims.size())));
  sym::Expr tiles = given && given->size() == 1 ? given->front() : sym::Expr();
  if (std::optional<int64_t> number = number_of(c, 1); number && !tiles) tiles = c.constant(*number);
  dims[repeated] = tiles ? dims[repeated] * tiles : c.unknown(0, repeated);
  return {Type::tensor(c.dtype(0), dims)};
}

OpDef record() {
  return {
      .name = "tile",
      .onnx = {"", "Tile", {1, 6, 13}},
      .doc = "the tensor repeated along its axes",
      .operands = {{"input", any_tensor}, {"repeats", i64_tensor}},
      .results = {{"output", any_tensor}},
      .dynamism = isvdos({"repeats"}),
      .mapping = Mapping::one_to_many,
      .forward = forward,
      .backward = backward,
      .value = value_by_moving,
      .eval = eval,
      .lower = lower,
      .grad = later::training,
      .upgrades = {{6, one_axis_form}},
      .samples = {{"$(i32[2]{1, 2}, i64[1]{2})", "i32[4]{1, 2, 1, 2}"},
                  {"$(f32[2, 3], i64[2]{2, 0})", "f32[4, 0]"},
                  {"$(f32[2], i64[2]{1, 1})", "error: 2 repeats are given"},
                  {"$(f32[2], i64[1]{-1})", "error: is negative"}},
  };
}

OpDef one_axis() {
  OpDef op = record();
  op.name = "tile_axis";
  op.onnx = {};
  op.doc = "tile as opset 1 had it: one axis repeated";
  op.operands = {{"input", any_tensor}, {"tiles", {"T1", dtypes::numeric}}, {"axis", {"T2", dtypes::numeric}}};
  op.dynamism = isvdos({"tiles", "axis"});
  op.forward = forward_axis;
  op.eval = eval_axis;
  op.upgrades = {};
  op.samples = {{"$(f32[2, 0], i64[]{2}, i64[]{0})", "f32[4, 0]"},
                {"$(i32[2, 1]{1, 2}, i64[]{2}, i64[]{1})", "i32[2, 2]{1, 1, 2, 2}"},
                {"$(f32[1, 3], f32[1]{0}, f32[1]{-1})", "f32[1, 0]"},
                {"$(f32[2], i64[]{1}, i64[]{1})", "error: axis 1 is outside"}};
  return op;
}

}  // namespace

std::vector<OpDef> tile_family() { return {record(), one_axis()}; }

}  // namespace selkie::ops
