// RotaryEmbedding: pairs of elements of each head, rotated by an angle that depends on the position.
#include "ops/support/attention.h"
#include "ops/support/dims.h"
#include "ops/support/head_dims.h"
#include "ops/support/lower.h"
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

using kir::Value;

// Where an element stands: the token it belongs to, and its place in its head.
struct Place {
  Value batch;
  Value token;
  Value in_head;
};

Place place_of(const Index& at, Value head_size) {
  if (at.size() == 4) return {.batch = at[0], .token = at[2], .in_head = at[3]};
  return {.batch = at[0], .token = at[1], .in_head = mod(at[2], head_size)};
}

// The element of the same head that is `step` elements further.
Value neighbour(const LowerContext& c, Value condition, const Index& at, Value step) {
  Index from = at;
  from.back() = at.back() + step;
  return cast(c.operand_if(condition, 0, from), DType::f32);
}

// x·cos − partner·sin for the first of a pair, x·cos + partner·sin for the second, and x beyond the rotated width. Each
// form reads under its own condition, so that indices stay those of memory side by side.
Value rotated(const LowerContext& c, const Index& at, const Place& place, Value half, bool interleaved) {
  kir::Builder& b = c.builder();
  Value in_pair = interleaved ? floordiv(place.in_head, b.integer(2)) : place.in_head;
  Value is_first = interleaved ? mod(place.in_head, b.integer(2)) == b.integer(0) : place.in_head < half;
  Value in_width = place.in_head < half + half;
  Value first = is_first & in_width;
  Value second = logical_not(is_first) & in_width;
  Value step = interleaved ? b.integer(1) : half;
  auto cached = [&](size_t operand, Value condition, Value column) {
    Index from{place.batch, place.token, column};
    if (c.has(3)) from = {counted_from_start(c, c.operand(3, {place.batch, place.token}), c.dims(1)->at(0)), column};
    return cast(c.operand_if(condition, operand, from), DType::f32);
  };
  Value x = cast(c.operand(0, at), DType::f32);
  Value behind = interleaved ? in_pair : in_pair - half;
  Value as_first = x * cached(1, first, in_pair) - neighbour(c, first, at, step) * cached(2, first, in_pair);
  Value as_second =
      x * cached(1, second, behind) + neighbour(c, second, at, b.integer(0) - step) * cached(2, second, behind);
  return select(first, as_first, select(second, as_second, x));
}

void lower(LowerContext& c) {
  const ir::Attribute* heads = c.find_attr("num_heads");
  int64_t width = c.attr_int("rotary_embedding_dim");
  HeadDims x = split_dims(c, c.dims(0), heads != nullptr ? std::get<int64_t>(*heads) : 0);
  if (!x.size) c.refuse("the number of heads is not known");
  sym::Expr half = width == 0 ? sym::floordiv(x.size, 2) : c.constant(width / 2);
  if (width < 0 || width % 2 != 0 || !c.proves_less_equal(half * 2, x.size)) c.refuse("pairs may not fit a head");
  for (size_t i : {1, 2}) {
    if (c.rank(i) != (c.has(3) ? 2 : 3)) c.refuse("caches of another rank");
    if (!c.proves_equal(c.dims(i)->back(), half)) c.refuse("caches may be of other columns");
  }
  if (c.has(3)) c.require_indices(3, c.dims(1)->at(0));
  c.define(0, [&c, half, size = x.size](const Index& at) {
    Place place = place_of(at, c.size(size));
    return cast(rotated(c, at, place, c.size(half), c.attr_int("interleaved") != 0), c.result_dtype());
  });
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
      .lower = lower,
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
