// Attention and MultiHeadAttention of com.microsoft.
#include "ops/support/blank.h"
#include "ops/support/elementwise.h"
#include "ops/support/fused_attention.h"
#include "ops/support/gemm.h"

namespace selkie::ops {
namespace {

constexpr TypeVar real{"T", DTypeSet{DType::f32, DType::f16, DType::bf16}};
constexpr TypeVar mask_type{"M", DTypeSet{DType::i32}};

void refuse(const EvalContext& e, std::string_view attr) {
  if (e.attr_int(attr) != 0) fail("attribute '{}' is {}, which is not supported", attr, e.attr_int(attr));
}
void refuse(const EvalContext& e, size_t operand) {
  if (e.has(operand)) fail("operand '{}' is not supported", e.op().operands[operand].name);
}

FusedAttention options_of(const EvalContext& e, size_t mask, size_t bias) {
  return {.scale = e.attr_float("scale"),
          .causal = e.attr_int("unidirectional") != 0,
          .past = 0,
          .mask = optional_tensor(e, mask),
          .mask_value = e.attr_float("mask_filter_value"),
          .bias = optional_tensor(e, bias)};
}

// One of the two halves of a past [2, batch, heads, length, size].
Heads half_of(const Tensor& past, int64_t which) {
  if (past.rank() != 5 || past.dim(0) != 2)
    fail("'past' has shape {}, but must have [2, batch, heads, length, size]", to_string(past.dims()));
  return heads_of(slice_axis(past, 0, which, 1).reshaped({past.dim(1), past.dim(2), past.dim(3), past.dim(4)}), "past");
}

void eval_attention(EvalContext& e) {
  const Tensor& input = e.tensor(0);
  const Tensor& weights = e.tensor(1);
  refuse(e, "do_rotary");
  refuse(e, "past_present_share_buffer");
  refuse(e, 6);
  if (input.rank() != 3 || weights.rank() != 2)
    fail("input and weights have shapes {} and {}, but must be of rank 3 and 2", to_string(input.dims()),
         to_string(weights.dims()));
  int64_t total = weights.dim(1);
  std::vector<int64_t> sizes =
      e.has_attr("qkv_hidden_sizes") ? e.attr_ints("qkv_hidden_sizes") : std::vector<int64_t>(3, total / 3);
  if (sizes.size() != 3 || std::any_of(sizes.begin(), sizes.end(), [&](int64_t s) { return s < 0 || s > total; }) ||
      sizes[0] + sizes[1] + sizes[2] != total)
    fail("weights of shape {} do not hold the projections of query, key and value", to_string(weights.dims()));
  int64_t heads = e.attr_int("num_heads");
  auto wide = [](const Tensor& t) { return narrow<double>(widen<double>(t), DType::f64, t.dims()); };
  Tensor projected = matmul(wide(input), wide(weights));
  int64_t begin = 0;
  std::vector<Heads> parts;
  for (int64_t size : sizes) {
    Heads part = split_heads(slice_axis(projected, 2, begin, size), heads, "a projection");
    if (e.has(2)) add_projection_bias(part, e.tensor(2), begin);
    parts.push_back(std::move(part));
    begin += size;
  }
  FusedAttention options = options_of(e, 3, 5);
  if (e.has(4)) {
    Heads past_key = half_of(e.tensor(4), 0);
    options.past = past_key.length;
    parts[1] = append(past_key, parts[1]);
    parts[2] = append(half_of(e.tensor(4), 1), parts[2]);
  }
  e.set(0, merge_heads(run_attention(options, parts[0], parts[1], parts[2]), input.dtype()));
  if (e.result_count() < 2) return;
  if (parts[1].dims() != parts[2].dims()) fail("a present state needs keys and values of one size");
  Dims present{2, parts[1].batch, parts[1].heads, parts[1].length, parts[1].size};
  std::vector<double> both = parts[1].values;
  both.insert(both.end(), parts[2].values.begin(), parts[2].values.end());
  e.set(1, narrow<double>(both, input.dtype(), present));
}

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
  refuse(e, 8);
  refuse(e, 9);
  Projections p = projections_of(e);
  if (e.has(3)) {
    add_projection_bias(p.q, e.tensor(3), 0);
    if (!p.cached) {
      add_projection_bias(p.k, e.tensor(3), p.q.heads * p.q.size);
      add_projection_bias(p.v, e.tensor(3), p.q.heads * p.q.size + p.k.heads * p.k.size);
    }
  }
  FusedAttention options = options_of(e, 4, 5);
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

std::vector<ir::AttrDef> shared_attrs() {
  return {float_attr("mask_filter_value", -10000), required_attr("num_heads", AttrKind::integer),
          float_attr("scale", 0), int_attr("unidirectional", 0)};
}

OpDef attention() {
  OpDef op = blank_record(Mapping::many_to_many);
  op.name = "ms_attention";
  op.onnx = {"com.microsoft", "Attention", {1}};
  op.doc = "projections of query, key and value by merged weights, then attention";
  op.operands = {{"input", real},
                 {"weights", real},
                 {"bias", real, optional},
                 {"mask_index", mask_type, optional},
                 {"past", real, optional},
                 {"attention_bias", real, optional},
                 {"past_sequence_length", mask_type, optional}};
  op.results = {{"output", real}, {"present", real, optional}};
  op.attrs = shared_attrs();
  op.attrs.insert(op.attrs.end(),
                  {int_attr("do_rotary", 0), int_attr("past_present_share_buffer", 0),
                   optional_attr("qkv_hidden_sizes", AttrKind::integers), int_attr("rotary_embedding_dim", 0)});
  op.eval = eval_attention;
  op.samples = {{"$(f32[1, 2, 2]{-0.349999994, -0.699999988, 0.629999995, -0.239999995}, f32[2, 6]{0.959999979, "
                 "0.180000007, 0.209999993, 0.280000001, 0.349999994, -0.699999988, -0.119999997, -0.519999981, "
                 "-0.200000003, -0.810000002, 0.939999998, -0.569999993}, f32[6]{0.340000004, -0.400000006, 0.75, "
                 "0.319999993, -0.74000001, 0.689999998}, i32[1, 3]{1, 0, 1}, f32[2, 1, 2, 1, 1]{0.889999986, "
                 "0.810000002, 0.140000001, -0.709999979}) {num_heads = 2, unidirectional = 1}",
                 "f32[1, 2, 2]{0.140000001, -0.709999979, -0.311230838, -0.156816617}, f32[2, 1, 2, 3, 1]{0.889999986, "
                 "0.816500008, 0.930299997, 0.810000002, 0.788999975, 0.690800011, 0.140000001, -1.52049994, "
                 "-0.745100021, -0.709999979, 1.33399999, 0.385800004}"},
                {"$(f32[2, 0, 4], f32[4, 12]) {num_heads = 2}", "f32[2, 0, 4]"},
                {"$(f32[2, 3, 4], f32[4, 11]) {num_heads = 2}", "error: do not hold the projections"},
                {"$(f32[2, 3, 4], f32[4, 12], _, i32[3]) {num_heads = 2}", "error: does not fit a batch of 2"},
                {"$(f32[2, 3, 4], f32[4, 12]) {num_heads = 3}", "error: does not split into 3 heads"},
                {"$(f32[2, 3, 4], f32[4, 12]) {num_heads = 2, do_rotary = 1}", "error: not supported"}};
  return op;
}

OpDef multi_head_attention() {
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
  op.attrs = shared_attrs();
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
      {"$(f32[2, 3, 8], f32[2, 5, 6], f32[2, 5, 8]) {num_heads = 2}", "error: do not fit together"},
      {"$(f32[2, 3, 8]) {num_heads = 2}", "error: packed query has shape"}};
  return op;
}

}  // namespace

std::vector<OpDef> ms_attention_family() { return {attention(), multi_head_attention()}; }

}  // namespace selkie::ops
