// MultiHeadAttention of com.microsoft.
#include "ops/support/blank.h"
#include "ops/support/fused_attention.h"
#include "ops/support/head_dims.h"

namespace selkie::ops {
namespace {

constexpr TypeVar real{"T", DTypeSet{DType::f32, DType::f16, DType::bf16}};
constexpr TypeVar mask_type{"M", DTypeSet{DType::i32}};

// Part `which` of [batch, length, heads, parts, size].
Heads unpack(const Tensor& packed, int64_t which, int64_t parts, std::string_view what) {
  if (packed.rank() != 5 || packed.dim(3) != parts) fail("packed {} has shape {}", what, to_string(packed.dims()));
  Tensor part = slice_axis(packed, 3, which, 1).reshaped({packed.dim(0), packed.dim(1), packed.dim(2), packed.dim(4)});
  return heads_of(transpose(part, std::vector<int64_t>{0, 2, 1, 3}), what);
}

struct Projections {
  Heads q, k, v;
  bool cached = false;  // keys and values come from a cache, so that they have their bias already
};

Projections projections_of(const EvalContext& e) {
  int64_t heads = e.attr_int("num_heads");
  const Tensor& query = e.tensor(0);
  if (!e.has(1)) return {unpack(query, 0, 3, "query"), unpack(query, 1, 3, "query"), unpack(query, 2, 3, "query")};
  Heads q = split_heads(query, heads, "query");
  if (!e.has(2)) return {q, unpack(e.tensor(1), 0, 2, "key"), unpack(e.tensor(1), 1, 2, "key")};
  return {q, split_heads(e.tensor(1), heads, "key"), split_heads(e.tensor(2), heads, "value"), e.tensor(1).rank() == 4};
}

void eval_multi_head(EvalContext& e) {
  refuse_operand(e, 8);
  refuse_operand(e, 9);
  Projections p = projections_of(e);
  if (e.has(3)) {
    add_projection_bias(p.q, e.tensor(3), 0);
    if (!p.cached) {
      add_projection_bias(p.k, e.tensor(3), p.q.heads * p.q.size);
      add_projection_bias(p.v, e.tensor(3), p.q.heads * p.q.size + p.k.heads * p.k.size);
    }
  }
  FusedAttention options = fused_attention(e, 4, 5);
  if (e.has(6) != e.has(7)) fail("'past_key' and 'past_value' are only taken together");
  if (e.has(6)) {
    Heads past_key = heads_of(e.tensor(6), "past_key");
    options.past = past_key.length;
    p.k = append(past_key, p.k);
    p.v = append(heads_of(e.tensor(7), "past_value"), p.v);
  }
  DType dtype = e.tensor(0).dtype();
  Heads scores;
  e.set(0, merge_heads(run_attention(options, p.q, p.k, p.v, &scores), dtype));
  e.set(1, to_tensor(p.k, dtype));
  e.set(2, to_tensor(p.v, dtype));
  e.set(3, to_tensor(scores, dtype));
}

// Each part of [batch, length, heads, parts, size].
HeadDims unpacked(const std::optional<SymDims>& packed) {
  if (!packed || packed->size() != 5) return {};
  return {(*packed)[0], (*packed)[2], (*packed)[1], (*packed)[4]};
}

struct Parts {
  HeadDims q, k, v;  // without a past
};

Parts parts_of(const ir::ShapeContext& c) {
  int64_t heads = c.attr_int("num_heads");
  if (!c.has(1)) return {unpacked(c.dims(0)), unpacked(c.dims(0)), unpacked(c.dims(0))};
  HeadDims q = split_dims(c, c.dims(0), heads);
  if (!c.has(2)) return {q, unpacked(c.dims(1)), unpacked(c.dims(1))};
  return {q, split_dims(c, c.dims(1), heads), split_dims(c, c.dims(2), heads)};
}

std::vector<Type> forward_multi_head(const ForwardContext& c) {
  auto [q, k, v] = parts_of(c);
  sym::Expr keys = either(appended_length(c, 6, k.length), appended_length(c, 7, v.length));
  if (!keys) keys = c.unknown(1, 2);
  sym::Expr heads = either(k.heads, v.heads);
  HeadDims y = attended(q, k, v);
  return {Type::tensor(c.dtype(0), named(c, 0, merged_dims(y))),
          Type::tensor(c.dtype(0), named(c, 1, {y.batch, heads, keys, either(k.size, q.size)})),
          Type::tensor(c.dtype(0), named(c, 2, {y.batch, heads, keys, v.size})),
          Type::tensor(c.dtype(0), named(c, 3, {y.batch, q.heads, q.length, keys}))};
}

void backward_multi_head(BackwardContext& c) {
  const sym::Expr any;
  if (!c.has(1))
    c.set_dims(0, SymDims{any, any, any, c.constant(3), any});
  else if (!c.has(2))
    c.set_dims(1, SymDims{any, any, any, c.constant(2), any});
  for (size_t i = 0; i < 3; ++i) require_split(c, i, c.attr_int("num_heads"));
  auto [q, k, v] = parts_of(c);
  require_past(c, 6, k);
  require_past(c, 7, v);
  if (c.has(3)) c.set_rank(3, 1);
  k.length = appended_length(c, 6, k.length);
  v.length = appended_length(c, 7, v.length);
  require_attention(c, q, k, v);
}

}  // namespace

OpDef ms_multi_head_attention_op() {
  OpDef op = blank_record(Mapping::many_to_many);
  op.name = "ms_multi_head_attention";
  op.onnx = {"com.microsoft", "MultiHeadAttention", {1}};
  op.doc = "attention of projected queries, keys and values, apart or packed, with their biases";
  op.operands = {{"query", real},
                 {"key", real, optional},
                 {"value", real, optional},
                 {"bias", real, optional},
                 {"key_padding_mask", mask_type, optional},
                 {"attention_bias", real, optional},
                 {"past_key", real, optional},
                 {"past_value", real, optional},
                 {"past_sequence_length", mask_type, optional},
                 {"cache_indirection", mask_type, optional}};
  op.results = {
      {"output", real}, {"present_key", real, optional}, {"present_value", real, optional}, {"qk", real, optional}};
  op.attrs = fused_attention_attrs();
  op.forward = forward_multi_head;
  op.backward = backward_multi_head;
  op.eval = eval_multi_head;
  op.samples = {
      {"$(f32[1, 2, 4]{-0.620000005, 0.860000014, 0.100000001, -0.639999986, 0.769999981, 0.280000001, 0.140000001, "
       "-0.25}, f32[1, 3, 4]{-0.180000007, -0.519999981, -0.920000017, 0.75, -0.0599999987, 0.100000001, -0.360000014, "
       "0.5, -0.949999988, -0.25999999, -0.939999998, -0.75}, f32[1, 3, 2]{0.930000007, 0.319999993, -0.140000001, "
       "0.0500000007, 0.75, -0.310000002}, f32[10]{0.180000007, 0.370000005, -0.289999992, 0.0399999991, 0.529999971, "
       "0.819999993, -0.699999988, 0.870000005, -0.99000001, 0.50999999}, i32[1]{2}, f32[1, 1, 2, 3]{0.620000005, "
       "-0.730000019, -0.159999996, 0.629999995, -0.970000029, 0.25999999}) {num_heads = 2, scale = 0.5}",
       "f32[1, 2, 2]{-0.348799318, 0.77344656, -0.281771928, 0.78523618}, f32[1, 2, 3, 2]{0.349999994, 0.300000012, "
       "0.469999999, 0.920000017, -0.419999987, 0.560000002, -1.62, 1.62, -1.05999994, 1.37, -1.63999999, "
       "0.119999997}, f32[1, 2, 3, 1]{-0.0599999987, -1.13, -0.239999995, 0.829999983, 0.560000002, 0.200000003}"},
      {"$(f32[2, 3, 2, 3, 4]) {num_heads = 2}", "f32[2, 3, 8]"},
      {"$(f32[2, 3, 8], f32[2, 5, 2, 2, 4], _, _, i32[2, 5]) {num_heads = 2}", "f32[2, 3, 8]"},
      {"$(f32[2, 3, 8], f32[2, 2, 5, 4], f32[2, 2, 5, 4], f32[24]) {num_heads = 2}", "f32[2, 3, 8]"},
      {"$(f32[1, 0, 2], f32[1, 0, 2], f32[1, 0, 2]) {num_heads = 1}", "f32[1, 0, 2]"},
      {"$(f32[2, 3, 8], f32[2, 1, 8], f32[2, 1, 4], _, _, _, f32[2, 2, 0, 4], f32[2, 2, 0, 2]) {num_heads = 2}",
       "f32[2, 3, 4], f32[2, 2, 1, 4], f32[2, 2, 1, 2], f32[2, 2, 3, 1]"},
      {"$(f32[2, 3, 8], f32[2, 5, 6], f32[2, 5, 8]) {num_heads = 2}", "error: do not fit together"},
      {"$(f32[2, 3, 8]) {num_heads = 2}", "error: packed query has shape"}};
  return op;
}

}  // namespace selkie::ops
