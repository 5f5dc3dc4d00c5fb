// Attention of com.microsoft.
#include "ops/support/blank.h"
#include "ops/support/dims.h"
#include "ops/support/elementwise.h"
#include "ops/support/fused_attention.h"
#include "ops/support/gemm.h"
#include "ops/support/head_dims.h"

namespace selkie::ops {
namespace {

constexpr TypeVar real{"T", DTypeSet{DType::f32, DType::f16, DType::bf16}};
constexpr TypeVar mask_type{"M", DTypeSet{DType::i32}};

// One of the two halves of a past [2, batch, heads, length, size].
Heads half_of(const Tensor& past, int64_t which) {
  if (past.rank() != 5 || past.dim(0) != 2)
    fail("'past' has shape {}, but must have [2, batch, heads, length, size]", to_string(past.dims()));
  return heads_of(slice_axis(past, 0, which, 1).reshaped({past.dim(1), past.dim(2), past.dim(3), past.dim(4)}), "past");
}

void eval_attention(EvalContext& e) {
  const Tensor& input = e.tensor(0);
  const Tensor& weights = e.tensor(1);
  for (std::string_view attr : {"do_rotary", "past_present_share_buffer"})
    if (e.attr_int(attr) != 0) fail("attribute '{}' is {}, which is not supported", attr, e.attr_int(attr));
  refuse_operand(e, 6);
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
  FusedAttention options = fused_attention(e, 3, 5);
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

// The sizes of the projections of query, key and value; null where they are not known.
std::array<sym::Expr, 3> projection_sizes(const ir::ShapeContext& c) {
  std::array<sym::Expr, 3> sizes;
  if (const ir::Attribute* given = c.find_attr("qkv_hidden_sizes")) {
    const auto& list = std::get<std::vector<int64_t>>(*given);
    for (size_t i = 0; i < 3 && list.size() == 3; ++i) sizes[i] = c.constant(list[i]);
  } else if (c.dims(1) && c.rank(1) == 2) {
    sizes.fill(sym::floordiv(c.dims(1)->at(1), 3));
  }
  return sizes;
}

std::vector<Type> forward_attention(const ForwardContext& c) {
  std::array<sym::Expr, 3> sizes = projection_sizes(c);
  int64_t heads = c.attr_int("num_heads");
  sym::Expr batch, length, past;
  if (c.dims(0) && c.rank(0) == 3) {
    batch = c.dims(0)->at(0);
    length = c.dims(0)->at(1);
  }
  if (c.has(4) && c.dims(4) && c.rank(4) == 5) past = c.dims(4)->at(3);
  sym::Expr keys = !c.has(4) ? length : length && past ? length + past : sym::Expr();
  sym::Expr size = sizes[1] && heads > 0 ? sym::floordiv(sizes[1], heads) : sym::Expr();
  // Values split into heads evenly, so that merging them gives the projection's size again.
  return {Type::tensor(c.dtype(0), named(c, 0, {batch, length, sizes[2]})),
          Type::tensor(c.dtype(0), named(c, 1, {c.constant(2), batch, c.constant(heads), keys, size}))};
}

void backward_attention(BackwardContext& c) {
  c.set_rank(0, 3);
  c.set_rank(1, 2);
  const SymDims input = *c.dims(0);
  const SymDims weights = *c.dims(1);
  c.equal(input[2], weights[0]);
  std::array<sym::Expr, 3> sizes = projection_sizes(c);
  int64_t heads = c.attr_int("num_heads");
  if (!sizes[0] || heads < 1) return;
  if (c.find_attr("qkv_hidden_sizes"))
    c.equal(weights[1], sizes[0] + sizes[1] + sizes[2]);
  else
    require_divisible(c, weights[1], 3);
  for (sym::Expr size : sizes) require_divisible(c, size, heads);
  c.equal(sizes[0], sizes[1]);
  if (c.has(2)) {
    c.set_rank(2, 1);
    c.less_equal(weights[1], c.dims(2)->at(0));
  }
  if (!c.has(4)) return;
  c.set_dims(4, SymDims{c.constant(2), input[0], c.constant(heads), sym::Expr(), sym::floordiv(sizes[1], heads)});
  c.equal(sizes[1], sizes[2]);
}

}  // namespace

OpDef ms_attention_op() {
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
  op.attrs = fused_attention_attrs();
  op.attrs.insert(op.attrs.end(),
                  {int_attr("do_rotary", 0), int_attr("past_present_share_buffer", 0),
                   optional_attr("qkv_hidden_sizes", AttrKind::integers), int_attr("rotary_embedding_dim", 0)});
  op.forward = forward_attention;
  op.backward = backward_attention;
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
                {"$(f32[1, 3, 4], f32[4, 10], f32[11]) {num_heads = 2, qkv_hidden_sizes = [4, 4, 2]}", "f32[1, 3, 2]"},
                {"$(f32[2, 3, 4], f32[4, 11]) {num_heads = 2}", "error: do not hold the projections"},
                {"$(f32[2, 3, 4], f32[4, 12], _, i32[3]) {num_heads = 2}", "error: does not fit a batch of 2"},
                {"$(f32[2, 3, 4], f32[4, 12]) {num_heads = 3}", "error: does not split into 3 heads"},
                {"$(f32[2, 3, 4], f32[4, 12]) {num_heads = 2, do_rotary = 1}", "error: not supported"}};
  return op;
}

}  // namespace selkie::ops
