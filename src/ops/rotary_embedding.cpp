// RotaryEmbedding: pairs of elements of each head, rotated by an angle that depends on the position.
#include "ops/support/attention.h"
#include "ops/support/dims.h"
#include "ops/support/head_dims.h"
#include "ops/support/record.h"
#include "ops/support/rotary.h"

namespace selkie::ops {
namespace {

constexpr TypeVar type{"T", DTypeSet{DType::f32, DType::f16, DType::bf16}};

// The row of the caches for each token: given by position ids, or the token's own.
std::vector<int64_t> cache_rows(const EvalContext& e, const Heads& x) {
  const Tensor& cache = e.tensor(1);
  if (cache.dims() != e.tensor(2).dims())
    fail("caches of shapes {} and {} differ", to_string(cache.dims()), to_string(e.tensor(2).dims()));
  if (!e.has(3)) {
    if (cache.rank() != 3 || cache.dim(0) != x.batch || cache.dim(1) != x.length)
      fail("without position ids the caches need shape [{}, {}, …], but have {}", x.batch, x.length,
           to_string(cache.dims()));
    std::vector<int64_t> rows(static_cast<size_t>(x.batch * x.length));
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int64_t>(i);
    return rows;
  }
  if (cache.rank() != 2)
    fail("with position ids the caches must be of rank 2, but have shape {}", to_string(cache.dims()));
  if (e.tensor(3).dims() != Dims{x.batch, x.length}) fail("position ids have shape {}", to_string(e.tensor(3).dims()));
  std::vector<int64_t> rows = ints_of(e.tensor(3));
  for (int64_t& row : rows) {
    if (row < -cache.dim(0) || row >= cache.dim(0)) fail("position {} is outside caches of {} rows", row, cache.dim(0));
    if (row < 0) row += cache.dim(0);
  }
  return rows;
}

void eval(EvalContext& e) {
  const Tensor& input = e.tensor(0);
  if (input.rank() == 3 && !e.has_attr("num_heads")) fail("an operand of rank 3 needs the attribute 'num_heads'");
  Heads x = split_heads(input, input.rank() == 3 ? e.attr_int("num_heads") : 0, "X");
  int64_t width = e.attr_int("rotary_embedding_dim");
  if (width == 0) width = x.size;
  if (width < 0 || width > x.size || width % 2 != 0)
    fail("{} elements of a head of {} cannot be rotated in pairs", width, x.size);
  std::vector<int64_t> rows = cache_rows(e, x);
  int64_t half = width / 2;
  if (e.tensor(1).dims().back() != half)
    fail("the caches have {} columns, but {} are needed", e.tensor(1).dims().back(), half);
  rotate_heads(x, rows, e.tensor(1), e.tensor(2), e.attr_int("interleaved") != 0);
  e.set(0, input.rank() == 3 ? merge_heads(x, input.dtype()) : to_tensor(x, input.dtype()));
}

void backward(BackwardContext& c) {
  backward_same(c);
  const ir::Attribute* given = c.find_attr("num_heads");
  int64_t heads = given ? std::get<int64_t>(*given) : 0;
  require_split(c, 0, heads);
  HeadDims x = split_dims(c, c.dims(0), heads);
  int64_t width = c.attr_int("rotary_embedding_dim");
  sym::Expr columns;  // one for each pair of rotated elements
  if (width != 0) {
    columns = c.constant(width / 2);
  } else if (x.size) {
    require_divisible(c, x.size, 2);
    columns = sym::floordiv(x.size, 2);
  }
  if (c.has(3)) {
    c.set_dims(3, SymDims{x.batch, x.length});
    for (size_t cache : {1, 2}) c.set_dims(cache, SymDims{sym::Expr(), columns});
  } else {
    for (size_t cache : {1, 2}) c.set_dims(cache, SymDims{x.batch, x.length, columns});
  }
  constexpr size_t caches[] = {1, 2};
  require_same_dims(c, caches);
}

}  // namespace

OpDef rotary_embedding_op() {
  return {
      .name = "rotary_embedding",
      .onnx = {"", "RotaryEmbedding", {23}},
      .doc = "rotates pairs of elements of each head by the angles of the token's position",
      .operands = {{"x", type}, {"cos_cache", type}, {"sin_cache", type}, {"position_ids", i64_tensor, optional}},
      .results = {{"y", type}},
      .attrs = {int_attr("interleaved", 0), optional_attr("num_heads", AttrKind::integer),
                int_attr("rotary_embedding_dim", 0)},
      .dynamism = isdos(),
      .mapping = Mapping::many_to_many,
      .forward = same_as_first,
      .backward = backward,
      .value = absent("rotations do not occur in shape arithmetic"),
      .eval = eval,
      .lower = later::cpu,
      .grad = later::training,
      .samples =
          {{"$(f32[1, 1, 1, 4]{1, 2, 3, 4}, f32[2, 2]{1, 1, 0, 0}, f32[2, 2]{0, 0, 1, 1}, i64[1, 1]{1})",
            "f32[1, 1, 1, 4]{-3, -4, 1, 2}"},
           {"$(f32[2, 3, 8], f32[2, 3, 1], f32[2, 3, 1]) {num_heads = 2, interleaved = 1, rotary_embedding_dim = 2}",
            "f32[2, 3, 8]"},
           {"$(f32[2, 2, 0, 4], f32[2, 0, 2], f32[2, 0, 2])", "f32[2, 2, 0, 4]"},
           {"$(f32[1, 1, 1, 4], f32[2, 2], f32[2, 2], i64[1, 1]{2})", "error: position 2 is outside"},
           {"$(f32[1, 1, 4], f32[2, 2], f32[2, 2], i64[1, 1]{0})", "error: needs the attribute 'num_heads'"}},
  };
}

}  // namespace selkie::ops
