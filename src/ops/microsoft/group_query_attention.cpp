// GroupQueryAttention of com.microsoft: attention with fewer key heads than query heads and a cache of keys and values.
#include <cmath>
#include <limits>

#include "ops/support/blank.h"
#include "ops/support/dims.h"
#include "ops/support/fused_attention.h"
#include "ops/support/head_dims.h"
#include "ops/support/rotary.h"

namespace selkie::ops {
namespace {

constexpr TypeVar real{"T", DTypeSet{DType::f32, DType::f16, DType::bf16}};
constexpr TypeVar length_type{"M", DTypeSet{DType::i32}};
constexpr double masked = -std::numeric_limits<double>::infinity();

// How many keys each sample has before and with the new ones, and at which key its first query stands.
struct Lengths {
  std::vector<int64_t> total;
  std::vector<int64_t> past;
  std::vector<int64_t> first_query;
  int64_t cache;  // of the present
  bool prompt;    // nothing came before
};

Lengths lengths_of(const EvalContext& e, const Heads& q, const Heads& k, int64_t past_cache) {
  std::vector<int64_t> ends = ints_of(e.tensor(5));
  int64_t longest = int_of(e.tensor(6));
  if (static_cast<int64_t>(ends.size()) != q.batch)
    fail("'seqlens_k' has {} elements for a batch of {}", ends.size(), q.batch);
  if (longest < 0) fail("'total_sequence_length' is {}", longest);
  Lengths n{{}, {}, {}, std::max(longest, past_cache), q.length == longest};
  for (int64_t end : ends) {
    int64_t total = end + 1;
    int64_t past = k.length == 0 ? total : n.prompt ? 0 : total - k.length;
    int64_t first = n.prompt ? 0 : total - q.length;
    if (total < 1 || total > n.cache || past < 0 || first < 0 || past > past_cache || past + k.length > n.cache)
      fail("'seqlens_k' has {}, which does not fit {} new keys, a past of {} and a total of {}", end, k.length,
           past_cache, longest);
    n.total.push_back(total);
    n.past.push_back(past);
    n.first_query.push_back(first);
  }
  return n;
}

// The cache with the new keys or values behind each sample's past; zeros elsewhere.
Heads present_of(const Heads* past, const Heads& now, const Lengths& n) {
  if (past != nullptr && (past->batch != now.batch || past->heads != now.heads || past->size != now.size))
    fail("a past of shape {} does not continue with {}", to_string(past->dims()), to_string(now.dims()));
  Heads out(now.batch, now.heads, n.cache, now.size);
  for (int64_t b = 0; b < now.batch; ++b)
    for (int64_t h = 0; h < now.heads; ++h) {
      int64_t before = n.past[static_cast<size_t>(b)];
      if (past != nullptr) std::copy_n(past->matrix(b, h), before * now.size, out.matrix(b, h));
      std::copy_n(now.matrix(b, h), now.length * now.size, out.matrix(b, h) + before * now.size);
    }
  return out;
}

void rotate(const EvalContext& e, Heads& x, const Lengths& n) {
  if (!e.has(7) || !e.has(8)) fail("'cos_cache' and 'sin_cache' are needed to rotate");
  const Tensor& cosines = e.tensor(7);
  if (cosines.rank() != 2 || cosines.dims() != e.tensor(8).dims() || 2 * cosines.dim(1) > x.size)
    fail("caches of shapes {} and {} do not rotate heads of {}", to_string(cosines.dims()),
         to_string(e.tensor(8).dims()), x.size);
  if (e.has(9) && e.tensor(9).dims() != Dims{x.batch, x.length})
    fail("'position_ids' has shape {}", to_string(e.tensor(9).dims()));
  std::vector<int64_t> given = e.has(9) ? ints_of(e.tensor(9)) : std::vector<int64_t>{};
  std::vector<int64_t> rows;
  for (int64_t b = 0; b < x.batch; ++b)
    for (int64_t t = 0; t < x.length; ++t) {
      int64_t own = n.first_query[static_cast<size_t>(b)] + t;
      int64_t id = given.empty() ? own : given[n.prompt ? 0 : static_cast<size_t>(b * x.length + t)];
      int64_t step = n.prompt && !given.empty() ? t : 0;
      if (id < 0 || id >= cosines.dim(0) - step)
        fail("position {} + {} is outside caches of {} rows", id, step, cosines.dim(0));
      rows.push_back(id + step);
    }
  rotate_heads(x, rows, cosines, e.tensor(8), e.attr_int("rotary_interleaved") != 0);
}

// Masks what lies behind a query, beyond the sample's keys, or before its window.
void mask_window(const EvalContext& e, Heads& scores, const Lengths& n) {
  bool causal = e.attr_int("causal") != 0;
  int64_t window = e.attr_int("local_window_size");
  if (!causal && window != -1) fail("'local_window_size' is {}, but must be -1 without a causal mask", window);
  for_each_row(scores, [&](int64_t b, int64_t, int64_t i, std::span<double> row) {
    auto at = static_cast<size_t>(b);
    int64_t end = causal ? std::min(n.first_query[at] + i + 1, n.total[at]) : n.total[at];
    int64_t begin = window >= 0 ? std::max<int64_t>(end - window, 0) : 0;
    std::fill(row.begin(), row.begin() + begin, masked);
    std::fill(row.begin() + end, row.end(), masked);
  });
}

std::vector<double> sinks_of(const EvalContext& e, int64_t heads) {
  if (!e.has(11))
    return e.attr_int("smooth_softmax") != 0 ? std::vector<double>(static_cast<size_t>(heads), 0.0)
                                             : std::vector<double>{};
  if (e.tensor(11).count() != heads) fail("'head_sink' has {} elements for {} heads", e.tensor(11).count(), heads);
  return widen<double>(e.tensor(11));
}

void refuse_quantized_cache(const EvalContext& e) {
  if (e.attr_string("k_quant_type") != "NONE" || e.attr_string("v_quant_type") != "NONE" ||
      e.attr_int("kv_cache_bit_width") != 0)
    fail("a quantised cache is not supported");
  if (e.attr_int("sliding_window_cache") != 0) fail("a cache of the window's size is not supported");
}

void eval(EvalContext& e) {
  refuse_quantized_cache(e);
  int64_t heads = e.attr_int("num_heads");
  int64_t kv_heads = e.attr_int("kv_num_heads");
  if (heads < 1 || kv_heads < 1 || heads % kv_heads != 0 || heads > int64_t{1} << 30)
    fail("{} query heads are not a multiple of {} key heads", heads, kv_heads);
  if (e.has(1) != e.has(2) || e.has(3) != e.has(4)) fail("keys and values are only taken together");
  bool packed = !e.has(1);
  Heads q = split_heads(e.tensor(0), packed ? heads + 2 * kv_heads : heads, "query");
  if (int64_t all = packed ? heads + 2 * kv_heads : heads; q.heads != all)
    fail("'query' has {} heads, but must have {}", q.heads, all);
  Heads k = packed ? slice_heads(q, heads, kv_heads) : split_heads(e.tensor(1), kv_heads, "key");
  Heads v = packed ? slice_heads(q, heads + kv_heads, kv_heads) : split_heads(e.tensor(2), kv_heads, "value");
  if (k.heads != kv_heads) fail("'key' has {} heads, but must have {}", k.heads, kv_heads);
  if (packed) q = slice_heads(q, 0, heads);
  check_attention(q, k, v);
  Heads past_key = e.has(3) ? heads_of(e.tensor(3), "past_key") : Heads();
  Heads past_value = e.has(4) ? heads_of(e.tensor(4), "past_value") : Heads();
  if (past_key.length != past_value.length) fail("'past_key' and 'past_value' have different lengths");
  Lengths n = lengths_of(e, q, k, past_key.length);
  if (e.has(14) != e.has(15)) fail("'q_norm_weight' and 'k_norm_weight' are only taken together");
  if (e.has(14)) {
    normalize_heads(q, e.tensor(14), e.attr_float("qk_norm_epsilon"));
    normalize_heads(k, e.tensor(15), e.attr_float("qk_norm_epsilon"));
  }
  if (e.attr_int("do_rotary") != 0) {
    rotate(e, q, n);
    if (k.length > 0) rotate(e, k, n);
  }
  Heads keys = present_of(e.has(3) ? &past_key : nullptr, k, n);
  Heads values = present_of(e.has(4) ? &past_value : nullptr, v, n);
  double scale = e.attr_float("scale") != 0 ? e.attr_float("scale") : 1 / std::sqrt(static_cast<double>(q.size));
  Heads scores = attention_scores(q, keys, scale);
  soften_scores(scores, e.attr_float("softcap"));
  if (e.has(10)) add_mask(scores, e.tensor(10));
  mask_window(e, scores, n);
  DType dtype = e.tensor(0).dtype();
  auto report = [&](int64_t stage) {
    if (e.attr_int("qk_output") == stage) e.set(3, slice_axis(to_tensor(scores, dtype), 3, 0, int_of(e.tensor(6))));
  };
  report(1);
  softmax_scores(scores, sinks_of(e, heads));
  report(2);
  e.set(0, merge_heads(attention_output(scores, values), dtype));
  e.set(1, to_tensor(keys, dtype));
  e.set(2, to_tensor(values, dtype));
}

struct Parts {
  HeadDims q, k, v;
};

Parts parts_of(const ir::ShapeContext& c) {
  int64_t heads = c.attr_int("num_heads");
  int64_t kv_heads = c.attr_int("kv_num_heads");
  bool packed = !c.has(1);
  HeadDims q = split_dims(c, c.dims(0), packed ? heads + 2 * kv_heads : heads);
  HeadDims k = packed ? q : split_dims(c, c.dims(1), kv_heads);
  HeadDims v = packed ? q : split_dims(c, c.dims(2), kv_heads);
  q.heads = c.constant(heads);
  k.heads = v.heads = c.constant(kv_heads);
  return {q, k, v};
}

// The cache grows where the total is more than it holds.
std::vector<Type> forward(const ForwardContext& c) {
  auto [q, k, v] = parts_of(c);
  std::optional<ir::SymElements> given = c.elements(6);
  sym::Expr total = given && given->size() == 1 ? given->front() : sym::Expr();
  sym::Expr past = either(heads_dims(c.dims(3)).length, heads_dims(c.dims(4)).length);
  sym::Expr cache = !c.has(3) ? total : total && past ? sym::max(total, past) : sym::Expr();
  if (!cache) cache = c.unknown(1, 2, {.least = total ? total : past, .most = {}});
  HeadDims y = attended(q, k, v);
  DType dtype = c.dtype(0);
  return {Type::tensor(dtype, named(c, 0, merged_dims(y))),
          Type::tensor(dtype, named(c, 1, {y.batch, k.heads, cache, either(k.size, q.size)})),
          Type::tensor(dtype, named(c, 2, {y.batch, k.heads, cache, v.size})),
          Type::tensor(dtype, named(c, 3, {y.batch, q.heads, q.length, total}))};
}

void backward(BackwardContext& c) {
  int64_t heads = c.attr_int("num_heads");
  int64_t kv_heads = c.attr_int("kv_num_heads");
  require_split(c, 0, c.has(1) ? heads : heads + 2 * kv_heads);
  for (size_t i : {1, 2}) require_split(c, i, kv_heads);
  auto [q, k, v] = parts_of(c);
  require_attention(c, q, k, v);
  require_past(c, 3, k);
  require_past(c, 4, v);
  if (c.has(3) && c.has(4)) c.equal(c.dims(3)->at(2), c.dims(4)->at(2));
  if (q.batch) require_count(c, 5, q.batch);
  for (sym::Expr total : c.contents(6).value_or(ir::SymElements{})) c.less_equal(c.constant(0), total);
  if (c.attr_int("do_rotary") != 0) {
    constexpr size_t caches[] = {7, 8};
    for (size_t cache : caches)
      if (c.has(cache)) c.set_rank(cache, 2);
    require_same_dims(c, caches);
    c.set_dims(9, SymDims{q.batch, q.length});
  }
  require_count(c, 11, q.heads);
  for (size_t norm : {14, 15})
    if (q.size) require_count(c, norm, q.size);
}

}  // namespace

OpDef ms_group_query_attention_op() {
  OpDef op = blank_record(Mapping::many_to_many);
  op.name = "ms_group_query_attention";
  op.onnx = {"com.microsoft", "GroupQueryAttention", {1}};
  op.doc = "causal attention with grouped heads, rotary positions and a cache of keys and values";
  op.operands = {{"query", real},
                 {"key", real, optional},
                 {"value", real, optional},
                 {"past_key", real, optional},
                 {"past_value", real, optional},
                 {"seqlens_k", length_type},
                 {"total_sequence_length", length_type},
                 {"cos_cache", real, optional},
                 {"sin_cache", real, optional},
                 {"position_ids", i64_tensor, optional},
                 {"attention_bias", real, optional},
                 {"head_sink", real, optional},
                 {"k_scale", {"T_KV_SCALE", dtypes::f32}, optional},
                 {"v_scale", {"T_KV_SCALE", dtypes::f32}, optional},
                 {"q_norm_weight", real, optional},
                 {"k_norm_weight", real, optional}};
  op.results = {{"output", real},
                {"present_key", real, optional},
                {"present_value", real, optional},
                {"output_qk", real, optional}};
  op.attrs = {int_attr("causal", 1),
              int_attr("do_rotary", 0),
              string_attr("k_quant_type", "NONE"),
              int_attr("kv_cache_bit_width", 0),
              required_attr("kv_num_heads", AttrKind::integer),
              int_attr("local_window_size", -1),
              required_attr("num_heads", AttrKind::integer),
              float_attr("qk_norm_epsilon", 1e-6f),
              int_attr("qk_output", 0),
              int_attr("rotary_interleaved", 0),
              float_attr("scale", 0),
              int_attr("sliding_window_cache", 0),
              int_attr("smooth_softmax", 0),
              float_attr("softcap", 0),
              string_attr("v_quant_type", "NONE")};
  op.dynamism = isvdos({"total_sequence_length"});
  op.forward = forward;
  op.backward = backward;
  op.eval = eval;
  op.samples = {
      {"$(f32[2, 1, 4]{0.589999974, 0.0299999993, 0.449999988, -0.550000012, -0.600000024, -0.270000011, -0.639999986, "
       "-0.310000002}, f32[2, 1, 2]{0.899999976, 0.150000006, -0.319999993, -0.460000008}, f32[2, 1, 2]{0.899999976, "
       "-0.109999999, 0.959999979, 0.0299999993}, f32[2, 1, 3, 2]{0.0399999991, 0.790000021, 0.49000001, 0.159999996, "
       "-0.150000006, 0.75999999, -0.180000007, 0.850000024, -0.860000014, -0.140000001, 0.0399999991, 0.899999976}, "
       "f32[2, 1, 3, 2]{-0.5, 0.610000014, 0.349999994, 0.430000007, 0.25999999, 0.939999998, -0.330000013, "
       "-0.200000003, -0.589999974, -0.899999976, -0.569999993, 0.829999983}, i32[2]{1, 2}, i32[]{3}, f32[4, 1]{1, "
       "0.540000021, -0.416000009, -0.99000001}, f32[4, 1]{0, 0.841000021, 0.908999979, 0.141000003}, _, _, "
       "f32[2]{0.25, -0.5}) {num_heads = 2, kv_num_heads = 1, do_rotary = 1, local_window_size = 2, softcap = 2.0}",
       "f32[2, 1, 4]{0.15650925, 0.161234125, 0.203268051, 0.175243899, 0.224638581, -0.199206561, 0.29708755, "
       "-0.242026269}, f32[2, 1, 3, 2]{0.0399999991, 0.790000021, 0.359849989, 0.837899983, 0, 0, -0.180000007, "
       "0.850000024, -0.860000014, -0.140000001, 0.551259995, -0.0995199978}, f32[2, 1, 3, 2]{-0.5, 0.610000014, "
       "0.899999976, -0.109999999, 0, 0, -0.330000013, -0.200000003, -0.589999974, -0.899999976, 0.959999979, "
       "0.0299999993}"},
      {"$(f32[2, 3, 16], _, _, _, _, i32[2]{2, 1}, i32[]{3}) {num_heads = 2, kv_num_heads = 1}",
       "f32[2, 3, 8], f32[2, 1, 3, 4], f32[2, 1, 3, 4]"},
      {"$(f32[0, 3, 16], _, _, _, _, i32[0], i32[]{3}) {num_heads = 2, kv_num_heads = 1}",
       "f32[0, 3, 8], f32[0, 1, 3, 4], f32[0, 1, 3, 4]"},
      {"$(f32[2, 1, 8], f32[2, 1, 4], f32[2, 1, 2], f32[2, 1, 3, 4], f32[2, 1, 3, 2], i32[2]{2, 1}, i32[1]{3}) "
       "{num_heads = 2, kv_num_heads = 1, qk_output = 1}",
       "f32[2, 1, 4], f32[2, 1, 3, 4], f32[2, 1, 3, 2], f32[2, 2, 1, 3]"},
      {"$(f32[1, 2, 1, 4], f32[1, 1, 1, 4], f32[1, 1, 1, 4], f32[1, 1, 5, 4], f32[1, 1, 5, 4], i32[1]{2}, i32[]{3}) "
       "{num_heads = 2, kv_num_heads = 1}",
       "f32[1, 1, 8], f32[1, 1, 5, 4], f32[1, 1, 5, 4]"},
      {"$(f32[1, 2, 1, 4], _, _, _, _, i32[1]{0}, i32[]{1}) {num_heads = 2, kv_num_heads = 1}",
       "error: 'query' has 2 heads, but must have 4"},
      {"$(f32[2, 3, 16], _, _, _, _, i32[2]{2, 5}, i32[]{3}) {num_heads = 2, kv_num_heads = 1}",
       "error: 'seqlens_k' has 5"},
      {"$(f32[2, 3, 16], _, _, _, _, i32[2], i32[]{3}) {num_heads = 3, kv_num_heads = 2}", "error: not a multiple"},
      {"$(f32[1, 1, 16], _, _, _, _, i32[1]{0}, i32[]{1}) {num_heads = 2, kv_num_heads = 1, k_quant_type = "
       "\"PER_TENSOR\"}",
       "error: quantised cache"}};
  return op;
}

}  // namespace selkie::ops
