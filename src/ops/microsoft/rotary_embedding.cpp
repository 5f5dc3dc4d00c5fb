// RotaryEmbedding of com.microsoft.
#include "ops/support/blank.h"
#include "ops/support/dims.h"
#include "ops/support/head_dims.h"
#include "ops/support/rotary.h"

namespace selkie::ops {
namespace {

constexpr TypeVar type{"T", DTypeSet{DType::f32, DType::f16, DType::bf16}};

// Heads of the rotated width, unless attributes say how many heads there are.
Heads heads_in(const EvalContext& e) {
  const Tensor& x = e.tensor(0);
  if (x.rank() != 3) return heads_of(x, "input");
  int64_t size = 2 * e.tensor(2).dim(1);
  int64_t heads = e.attr_int("rotary_embedding_dim") > 0 ? e.attr_int("num_heads") : size > 0 ? x.dim(2) / size : 0;
  return split_heads(x, heads, "input");
}

// The caches' row of each token: position ids [batch, length], or the position of the first token.
std::vector<int64_t> rows_of_tokens(const EvalContext& e, const Heads& x) {
  const Tensor& ids = e.tensor(1);
  std::vector<int64_t> given = ints_of(ids);
  bool offset = ids.dims() == Dims{1};
  if (!offset && ids.dims() != Dims{x.batch, x.length}) fail("'position_ids' has shape {}", to_string(ids.dims()));
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < x.batch * x.length; ++i) {
    int64_t id = given[offset ? 0 : static_cast<size_t>(i)];
    int64_t step = offset ? i % x.length : 0;
    if (id < 0 || id >= e.tensor(2).dim(0) - step)
      fail("position {} + {} is outside caches of {} rows", id, step, e.tensor(2).dim(0));
    rows.push_back(id + step);
  }
  return rows;
}

void eval(EvalContext& e) {
  const Tensor& cosines = e.tensor(2);
  if (cosines.rank() != 2 || cosines.dims() != e.tensor(3).dims())
    fail("caches have shapes {} and {}", to_string(cosines.dims()), to_string(e.tensor(3).dims()));
  if (e.attr_float("scale") != 1) fail("attribute 'scale' is {}, but only 1 is supported", e.attr_float("scale"));
  int64_t width = e.attr_int("rotary_embedding_dim");
  if (width < 0 || (width > 0 && width != 2 * cosines.dim(1)))
    fail("{} rotated elements need caches of {} columns, but they have {}", width, width / 2, cosines.dim(1));
  Heads x = heads_in(e);
  if (2 * cosines.dim(1) > x.size || (width == 0 && 2 * cosines.dim(1) != x.size))
    fail("caches of {} columns do not rotate heads of {}", cosines.dim(1), x.size);
  rotate_heads(x, rows_of_tokens(e, x), cosines, e.tensor(3), e.attr_int("interleaved") != 0);
  DType dtype = e.tensor(0).dtype();
  e.set(0, e.tensor(0).rank() == 3 ? merge_heads(x, dtype) : to_tensor(x, dtype));
}

// Position ids are [batch, length], or one; the caches have a column for each pair of rotated elements.
void backward(BackwardContext& c) {
  backward_same(c);
  constexpr size_t caches[] = {2, 3};
  for (size_t cache : caches) c.set_rank(cache, 2);
  require_same_dims(c, caches);
  sym::Expr rotated = c.dims(2)->at(1) * 2;
  int64_t width = c.attr_int("rotary_embedding_dim");
  HeadDims x = split_dims(c, c.dims(0), width > 0 ? c.attr_int("num_heads") : 0);
  if (width > 0) {
    c.equal(rotated, c.constant(width));
    require_split(c, 0, c.attr_int("num_heads"));
    if (x.size) c.less_equal(rotated, x.size);
  } else if (x.size) {
    c.equal(rotated, x.size);
  }
  if (!c.dims(1)) return;
  if (c.rank(1) == 1) c.equal(c.dims(1)->at(0), c.constant(1));
  if (c.rank(1) != 2 || !c.dims(0) || c.rank(0) < 3) return;
  const SymDims& dims = *c.dims(0);
  c.set_dims(1, SymDims{dims[0], dims.size() == 3 ? dims[1] : dims[2]});
}

}  // namespace

OpDef ms_rotary_embedding_op() {
  OpDef op = blank_record(Mapping::many_to_many);
  op.name = "ms_rotary_embedding";
  op.onnx = {"com.microsoft", "RotaryEmbedding", {1}};
  op.doc = "rotates pairs of elements of each head by the angles of the token's position";
  op.operands = {{"input", type}, {"position_ids", i64_tensor}, {"cos_cache", type}, {"sin_cache", type}};
  op.results = {{"output", type}};
  op.attrs = {int_attr("interleaved", 0), int_attr("is_packed_batching", 0), int_attr("num_heads", 0),
              int_attr("rotary_embedding_dim", 0), float_attr("scale", 1)};
  op.forward = same_as_first;
  op.backward = backward;
  op.eval = eval;
  op.samples = {
      {"$(f32[1, 2, 8]{-0.0900000036, -0.839999974, 0.50999999, 0.159999996, -0.400000006, -0.839999974, 0.529999971, "
       "-0.74000001, -0.730000019, -0.74000001, -0.839999974, 0.810000002, -0.460000008, -0.389999986, 0.670000017, "
       "0.239999995}, i64[1, 2]{1, 3}, f32[4, 2]{-0.629999995, -0.129999995, 0.769999981, -0.25, 0.419999987, "
       "-0.810000002, 0.449999988, 0.550000012}, f32[4, 2]{0.649999976, 0.349999994, -0.25999999, -0.870000005, "
       "0.0399999991, 0.50999999, -0.620000005, -0.469999999})",
       "f32[1, 2, 8]{0.0632999986, 0.34920001, 0.416099995, 0.690800011, -0.170200005, -0.433800012, 0.512099981, "
       "0.915799975, -0.849300027, -0.0263, 0.0746000037, 0.793299973, 0.208399996, -0.1017, 0.586700022, "
       "0.315299988}"},
      {"$(f32[1, 2, 8]{-0.0900000036, -0.839999974, 0.50999999, 0.159999996, -0.400000006, -0.839999974, 0.529999971, "
       "-0.74000001, -0.730000019, -0.74000001, -0.839999974, 0.810000002, -0.460000008, -0.389999986, 0.670000017, "
       "0.239999995}, i64[1]{2}, f32[4, 2]{-0.629999995, -0.129999995, 0.769999981, -0.25, 0.419999987, -0.810000002, "
       "0.449999988, 0.550000012}, f32[4, 2]{0.649999976, 0.349999994, -0.25999999, -0.870000005, 0.0399999991, "
       "0.50999999, -0.620000005, -0.469999999}) {interleaved = 1}",
       "f32[1, 2, 8]{-0.00419999985, -0.356400013, -0.494700015, 0.130500004, -0.134399995, -0.368800014, "
       "-0.0518999994, 0.869700015, -0.787299991, 0.119599998, -0.0812999979, 0.840300024, -0.448799998, 0.109700002, "
       "0.481299996, -0.182899997}"},
      {"$(f32[2, 3, 8], i64[1]{0}, f32[4, 1], f32[4, 1]) {num_heads = 2, rotary_embedding_dim = 2}", "f32[2, 3, 8]"},
      {"$(f32[2, 2, 0, 4], i64[2, 0], f32[4, 2], f32[4, 2])", "f32[2, 2, 0, 4]"},
      {"$(f32[1, 3, 4], i64[1]{2}, f32[4, 2], f32[4, 2])", "error: position 2 + 2 is outside"},
      {"$(f32[1, 1, 6], i64[1]{2}, f32[4, 2], f32[4, 2])", "error: do not rotate heads of 6"}};
  return op;
}

}  // namespace selkie::ops
