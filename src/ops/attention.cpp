// Attention: scaled dot products with masks, grouped heads and a key-value cache.
#include "ops/support/attention.h"

#include <cmath>
#include <limits>

#include "ops/support/dims.h"
#include "ops/support/head_dims.h"
#include "ops/support/lower.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr TypeVar query_type{"T1", dtypes::floats};
constexpr TypeVar value_type{"T2", dtypes::floats};
constexpr TypeVar mask_type{"U", dtypes::numeric | dtypes::boolean};

int64_t head_count(const EvalContext& e, std::string_view attr, const Tensor& x) {
  if (x.rank() != 3) return 0;
  if (!e.has_attr(attr)) fail("operands of rank 3 need the attribute '{}'", attr);
  return e.attr_int(attr);
}

// Masks keys at and beyond the number of keys that each sample of the batch has.
void mask_padding(Heads& scores, const Tensor& lengths) {
  std::vector<int64_t> counts = ints_of(lengths);
  if (static_cast<int64_t>(counts.size()) != scores.batch)
    fail("'nonpad_kv_seqlen' has {} elements for a batch of {}", counts.size(), scores.batch);
  for_each_row(scores, [&](int64_t b, int64_t, int64_t, std::span<double> row) {
    int64_t count = std::clamp<int64_t>(counts[static_cast<size_t>(b)], 0, scores.size);
    std::fill(row.begin() + count, row.end(), -std::numeric_limits<double>::infinity());
  });
}

void eval(EvalContext& e) {
  const Tensor& query = e.tensor(0);
  if (e.tensor(1).rank() != query.rank() || e.tensor(2).rank() != query.rank())
    fail("Q, K and V are of different rank");
  Heads q = split_heads(query, head_count(e, "q_num_heads", query), "Q");
  Heads k = split_heads(e.tensor(1), head_count(e, "kv_num_heads", query), "K");
  Heads v = split_heads(e.tensor(2), head_count(e, "kv_num_heads", query), "V");
  int64_t past = 0;
  if (e.has(4) != e.has(5)) fail("'past_key' and 'past_value' are only taken together");
  if (e.has(4)) {
    Heads before = heads_of(e.tensor(4), "past_key");
    past = before.length;
    k = append(before, k);
    v = append(heads_of(e.tensor(5), "past_value"), v);
  }
  check_attention(q, k, v);
  if (e.has_attr("softmax_precision") && !is_float(e.attr_dtype("softmax_precision")))
    fail("'softmax_precision' is {}, which is no float type", name(e.attr_dtype("softmax_precision")));
  int64_t mode = e.attr_int("qk_matmul_output_mode");
  if (mode < 0 || mode > 3) fail("'qk_matmul_output_mode' is {}, but must be 0, 1, 2 or 3", mode);

  double scale = e.has_attr("scale") ? e.attr_float("scale") : 1 / std::sqrt(static_cast<double>(q.size));
  Heads scores = attention_scores(q, k, scale);
  auto report = [&](int64_t stage) {
    if (stage == mode && e.result_count() > 3) e.set(3, to_tensor(scores, query.dtype()));
  };
  report(0);
  soften_scores(scores, e.attr_float("softcap"));
  report(1);
  if (e.has(3)) add_mask(scores, e.tensor(3), e.has_attr("masked_score") ? e.attr_float("masked_score") : -infinity);
  if (e.attr_int("is_causal") != 0) mask_causal(scores, past);
  if (e.has(6)) mask_padding(scores, e.tensor(6));
  report(2);
  softmax_scores(scores);
  report(3);
  Heads y = attention_output(scores, v);
  e.set(0, query.rank() == 3 ? merge_heads(y, query.dtype()) : to_tensor(y, query.dtype()));
  e.set(1, to_tensor(k, e.tensor(1).dtype()));
  e.set(2, to_tensor(v, e.tensor(2).dtype()));
}

struct Parts {
  HeadDims q, k, v;  // keys and values with the past
};

Parts parts_of(const ir::ShapeContext& c) {
  auto heads = [&](std::string_view name) {
    const ir::Attribute* given = c.find_attr(name);
    return given ? std::get<int64_t>(*given) : 0;
  };
  Parts p{split_dims(c, c.dims(0), heads("q_num_heads")), split_dims(c, c.dims(1), heads("kv_num_heads")),
          split_dims(c, c.dims(2), heads("kv_num_heads"))};
  p.k.length = appended_length(c, 4, p.k.length);
  p.v.length = appended_length(c, 5, p.v.length);
  return p;
}

std::vector<Type> forward(const ForwardContext& c) {
  auto [q, k, v] = parts_of(c);
  HeadDims y = attended(q, k, v);
  std::vector<Type> types{Type::tensor(c.dtype(0))};
  size_t rank = 0;
  for (size_t i = 0; i < 3; ++i)
    if (c.dims(i)) rank = c.rank(i);
  if (rank == 3 || rank == 4) types[0].dims = named(c, 0, rank == 3 ? merged_dims(y) : dims_of(y));
  sym::Expr keys = either(k.length, v.length);
  if (!keys) keys = c.unknown(1, 2);
  sym::Expr heads = either(k.heads, v.heads);
  types.push_back(Type::tensor(c.dtype(1), named(c, 1, {y.batch, heads, keys, either(k.size, q.size)})));
  types.push_back(Type::tensor(c.dtype(2), named(c, 2, {y.batch, heads, keys, v.size})));
  types.push_back(Type::tensor(c.dtype(0), named(c, 3, {y.batch, q.heads, q.length, keys})));
  return types;
}

void lower(LowerContext& c) {
  const ir::Attribute* scale = c.find_attr("scale");
  if (c.dtype(0) != DType::f32 || c.dtype(2) != DType::f32 || c.rank(0) != 4) c.refuse("of such types or ranks");
  if (c.has(4) || c.has(5) || c.has(6) || c.result_count() > 1 || std::get<float>(*c.find_attr("softcap")) != 0)
    c.refuse("with a past, lengths, a cap or scores as a result");
  std::optional<int64_t> size = (*c.dims(0))[3].constant();
  if (scale == nullptr && !size) c.refuse("of a size that is not known");
  if (c.has(3)) {
    bool fits = c.rank(3) > 0 && c.rank(3) <= 4 && c.proves_equal(c.dims(3)->back(), (*c.dims(1))[2]);
    if (!fits || (c.dtype(3) != DType::f32 && c.dtype(3) != DType::boolean)) c.refuse("with such a mask");
  }
  c.set_attention({.scale = scale ? std::get<float>(*scale) : 1 / std::sqrt(static_cast<float>(*size)),
                   .causal = c.attr_int("is_causal") != 0,
                   .masked_score = c.find_attr("masked_score") ? std::get<float>(*c.find_attr("masked_score"))
                                                               : -std::numeric_limits<float>::infinity()});
}

void backward(BackwardContext& c) {
  std::optional<size_t> rank;
  for (size_t i = 0; i < 3; ++i)
    if (c.dims(i)) rank = c.rank(i);
  if (c.result_dims(0)) rank = c.result_dims(0)->size();
  if (!rank) return;
  for (size_t i = 0; i < 3; ++i) c.set_rank(i, *rank);
  if (*rank == 3) {
    if (const ir::Attribute* heads = c.find_attr("q_num_heads")) require_split(c, 0, std::get<int64_t>(*heads));
    if (const ir::Attribute* heads = c.find_attr("kv_num_heads"))
      for (size_t i : {1, 2}) require_split(c, i, std::get<int64_t>(*heads));
  }
  auto [q, k, v] = parts_of(c);
  require_past(c, 4, k);
  require_past(c, 5, v);
  require_attention(c, q, k, v);
  if (c.has(3) && c.dims(3) && c.rank(3) > 0) {
    // A mask may end before the keys do.
    const SymDims mask = *c.dims(3);
    if (k.length) c.less_equal(mask.back(), k.length);
    require_broadcast_to(c, std::span(mask).first(mask.size() - 1), SymDims{q.batch, q.heads, q.length});
  }
  if (q.batch) require_count(c, 6, q.batch);
}

}  // namespace

OpDef attention_op() {
  return {
      .name = "attention",
      .onnx = {"", "Attention", {23, 24}},
      .doc = "softmax(scale · Q · Kᵀ + mask) · V per head",
      .operands = {{"q", query_type},
                   {"k", query_type},
                   {"v", value_type},
                   {"attn_mask", mask_type, optional},
                   {"past_key", query_type, optional},
                   {"past_value", value_type, optional},
                   {"nonpad_kv_seqlen", i64_tensor, optional}},
      .results = {{"y", query_type},
                  {"present_key", query_type, optional},
                  {"present_value", value_type, optional},
                  {"qk_matmul_output", query_type, optional}},
      // masked_score is Selkie's own: the score of what a mask of booleans leaves out, -inf in ONNX.
      .attrs = {int_attr("is_causal", 0), optional_attr("kv_num_heads", AttrKind::integer),
                optional_attr("masked_score", AttrKind::real), optional_attr("q_num_heads", AttrKind::integer),
                int_attr("qk_matmul_output_mode", 0), optional_attr("scale", AttrKind::real), float_attr("softcap", 0),
                optional_attr("softmax_precision", AttrKind::integer)},
      .dynamism = isdos(),
      .mapping = Mapping::many_to_many,
      .forward = forward,
      .backward = backward,
      .value = absent("attention does not occur in shape arithmetic"),
      .eval = eval,
      .lower = lower,
      .grad = later::training,
      .samples = {{"$(f32[1, 1, 1, 2]{1, 0}, f32[1, 1, 2, 2]{0, 1, 0, 2}, f32[1, 1, 2, 1]{2, 4})",
                   "f32[1, 1, 1, 1]{3}"},
                  {"$(f32[2, 4, 3, 8], f32[2, 2, 5, 8], f32[2, 2, 5, 7])", "f32[2, 4, 3, 7]"},
                  {"$(f32[2, 3, 8], f32[2, 0, 4], f32[2, 0, 6], _, f32[2, 1, 5, 4], f32[2, 1, 5, 6]) "
                   "{q_num_heads = 2, kv_num_heads = 1, is_causal = 1}",
                   "f32[2, 3, 12], f32[2, 1, 5, 4], f32[2, 1, 5, 6]"},
                  {"$(f32[1, 1, 1, 2], f32[1, 1, 2, 2], f32[1, 1, 2, 1]{2, 4}, bool[1, 2]{true, false})",
                   "f32[1, 1, 1, 1]{2}"},
                  {"$(f32[1, 1, 1, 2], f32[1, 1, 2, 2], f32[1, 1, 2, 1]{2, 4}, bool[1, 2]{false, false}) "
                   "{masked_score = -9.0}",
                   "f32[1, 1, 1, 1]{3}"},
                  {"$(f32[1, 1, 1, 2], f32[1, 1, 2, 2], f32[1, 1, 2, 1], f32[1, 2])", "f32[1, 1, 1, 1]"},
                  {"$(f32[1, 1, 0, 2], f32[1, 1, 2, 2], f32[1, 1, 2, 1])", "f32[1, 1, 0, 1]"},
                  {"$(f32[2, 2, 3, 4], f32[2, 1, 5, 4], f32[2, 1, 5, 1], f32[3, 2], f32[2, 1, 0, 4], f32[2, 1, 0, 1], "
                   "i64[2])",
                   "f32[2, 2, 3, 1], f32[2, 1, 5, 4], f32[2, 1, 5, 1], f32[2, 2, 3, 5]"},
                  {"$(f32[1, 3, 1, 2], f32[1, 2, 2, 2], f32[1, 2, 2, 2])", "error: not a multiple"},
                  {"$(f32[1, 3, 2], f32[1, 3, 2], f32[1, 3, 2])", "error: need the attribute 'q_num_heads'"}},
  };
}

}  // namespace selkie::ops
