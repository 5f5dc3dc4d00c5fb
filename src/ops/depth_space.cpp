// DepthToSpace and SpaceToDepth: blocks of pixels to channels and back.
#include "ops/support/lower.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

void check_block(int64_t block) {
  if (block < 1 || block > 1 << 20) fail("blocksize {} is not positive", block);
}

int64_t block_of(const EvalContext& e) {
  const Tensor& x = e.tensor(0);
  int64_t block = e.attr_int("blocksize");
  if (x.rank() != 4) fail("the input must have rank 4, but its shape is {}", to_string(x.dims()));
  check_block(block);
  return block;
}

void depth_to_space(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  int64_t b = block_of(e);
  const std::string& mode = e.attr_string("mode");
  if (mode != "DCR" && mode != "CRD") fail("mode is '{}', but must be DCR or CRD", mode);
  int64_t n = x.dim(0), c = x.dim(1), h = x.dim(2), w = x.dim(3);
  if (c % (b * b) != 0) fail("{} channels cannot be split into blocks of {}×{}", c, b, b);
  bool dcr = mode == "DCR";
  Tensor split = dcr ? x.reshaped({n, b, b, c / (b * b), h, w}) : x.reshaped({n, c / (b * b), b, b, h, w});
  std::vector<int64_t> order = dcr ? std::vector<int64_t>{0, 3, 4, 1, 5, 2} : std::vector<int64_t>{0, 1, 4, 2, 5, 3};
  e.set(0, transpose(split, order).reshaped({n, c / (b * b), h * b, w * b}));
}

void space_to_depth(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  int64_t b = block_of(e);
  int64_t n = x.dim(0), c = x.dim(1), h = x.dim(2), w = x.dim(3);
  if (h % b != 0 || w % b != 0) fail("{}×{} pixels cannot be split into blocks of {}×{}", h, w, b, b);
  std::vector<int64_t> order{0, 3, 5, 1, 2, 4};
  e.set(0, transpose(x.reshaped({n, c, h / b, b, w / b, b}), order).reshaped({n, c * b * b, h / b, w / b}));
}

std::vector<Type> forward(const ForwardContext& c, bool to_space) {
  int64_t b = c.attr_int("blocksize");
  check_block(b);
  if (!c.dims(0) || c.rank(0) != 4) return {Type::tensor(c.dtype(0), c.unknown_dims(0, 4))};
  const SymDims& x = *c.dims(0);
  if (to_space) return {Type::tensor(c.dtype(0), SymDims{x[0], sym::floordiv(x[1], b * b), x[2] * b, x[3] * b})};
  return {Type::tensor(c.dtype(0), SymDims{x[0], x[1] * (b * b), sym::floordiv(x[2], b), sym::floordiv(x[3], b)})};
}

void backward(BackwardContext& c, bool to_space) {
  int64_t b = c.attr_int("blocksize");
  c.set_rank(0, 4);
  const SymDims x = *c.dims(0);
  auto divides = [&](int64_t divisor, sym::Expr dim) { c.equal(sym::mod(dim, divisor), c.constant(0)); };
  if (to_space) {
    divides(b * b, x[1]);
  } else {
    divides(b, x[2]);
    divides(b, x[3]);
  }
}

void lower(bool to_space, LowerContext& c) {
  if (c.rank(0) != 4) c.refuse("the input is no image");
  bool crd = to_space && c.attr_string("mode") == "CRD";
  c.define(0, [&c, to_space, crd](const Index& at) {
    kir::Value b = c.builder().integer(c.attr_int("blocksize"));
    if (to_space) {
      kir::Value place = mod(at[2], b) * b + mod(at[3], b);  // in the block
      kir::Value channel = crd ? at[1] * (b * b) + place : place * c.size(c.result_dims()[1]) + at[1];
      return c.operand(0, {at[0], channel, floordiv(at[2], b), floordiv(at[3], b)});
    }
    kir::Value channels = c.size((*c.dims(0))[1]);
    kir::Value place = floordiv(at[1], channels);
    kir::Value row = at[2] * b + floordiv(place, b);
    return c.operand(0, {at[0], mod(at[1], channels), row, at[3] * b + mod(place, b)});
  });
}

OpDef record(bool to_space) {
  OpDef op{
      .name = to_space ? "depth_to_space" : "space_to_depth",
      .onnx = {"", to_space ? "DepthToSpace" : "SpaceToDepth",
               to_space ? std::vector<int>{1, 11, 13} : std::vector<int>{1, 13}},
      .doc = to_space ? "channels to blocks of pixels" : "blocks of pixels to channels",
      .operands = {{"input", any_tensor}},
      .results = {{"output", any_tensor}},
      .attrs = {required_attr("blocksize", AttrKind::integer)},
      .dynamism = isdos(),
      .mapping = Mapping::shuffle,
      .forward = [to_space](const ForwardContext& c) { return forward(c, to_space); },
      .backward = [to_space](BackwardContext& c) { backward(c, to_space); },
      .value = absent("shape arithmetic has no images"),
      .eval = to_space ? depth_to_space : space_to_depth,
      .lower = [to_space](LowerContext& c) { lower(to_space, c); },
      .grad = later::training,
      .samples = {},
  };
  if (to_space) {
    op.attrs.push_back(string_attr("mode", "DCR"));
    op.samples = {{"$(i32[1, 4, 1, 1]{1, 2, 3, 4}) {blocksize = 2}", "i32[1, 1, 2, 2]{1, 2, 3, 4}"},
                  {"$(f32[2, 8, 3, 0]) {blocksize = 2, mode = \"CRD\"}", "f32[2, 2, 6, 0]"},
                  {"$(f32[1, 3, 2, 2]) {blocksize = 2}", "error: 3 channels"},
                  {"$(f32[1, 4, 2, 2]) {blocksize = 0}", "error: not positive"}};
  } else {
    op.samples = {{"$(i32[1, 1, 2, 2]{1, 2, 3, 4}) {blocksize = 2}", "i32[1, 4, 1, 1]{1, 2, 3, 4}"},
                  {"$(f32[0, 2, 4, 6]) {blocksize = 2}", "f32[0, 8, 2, 3]"},
                  {"$(f32[1, 1, 3, 2]) {blocksize = 2}", "error: cannot be split"},
                  {"$(f32[1, 1, 3]) {blocksize = 1}", "error: rank 4"}};
  }
  return op;
}

}  // namespace

std::vector<OpDef> depth_space_family() { return {record(true), record(false)}; }

}  // namespace selkie::ops
