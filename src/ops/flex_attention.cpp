// FlexAttention: attention whose scores and probabilities pass through regions of the model.
#include <cmath>

#include "ops/support/attention.h"
#include "ops/support/head_dims.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

constexpr TypeVar type{"T1", dtypes::floats};

// Runs region `i` on the matrix in the softmax's precision.
Heads modified(EvalContext& e, size_t i, const Heads& x, DType precision) {
  std::vector<HostValue> yields = e.run_region(i, {to_tensor(x, precision)});
  if (yields.size() != 1 || !yields[0].is_tensor()) fail("region '{}' does not give a tensor", e.op().regions[i].name);
  const Tensor& out = yields[0].tensor();
  if (out.dims() != x.dims() || !is_float(out.dtype()))
    fail("region '{}' gives {} of shape {}, but must keep {} of shape {}", e.op().regions[i].name, name(out.dtype()),
         to_string(out.dims()), name(precision), to_string(x.dims()));
  return heads_of(out, "the region's result");
}

void eval(EvalContext& e) {
  const Tensor& query = e.tensor(0);
  Heads q = heads_of(query, "Q");
  Heads k = heads_of(e.tensor(1), "K");
  Heads v = heads_of(e.tensor(2), "V");
  check_attention(q, k, v);
  DType precision = e.has_attr("softmax_precision") ? e.attr_dtype("softmax_precision")
                    : query.dtype() == DType::f64   ? DType::f64
                                                    : DType::f32;
  if (!dtypes::floats.contains(precision)) fail("'softmax_precision' is {}, which is no float type", name(precision));
  double scale = e.has_attr("scale") ? e.attr_float("scale") : 1 / std::sqrt(static_cast<double>(q.size));
  Heads scores = modified(e, 0, attention_scores(q, k, scale), precision);
  softmax_scores(scores);
  e.set(0, to_tensor(attention_output(modified(e, 1, scores, precision), v), query.dtype()));
}

// The regions keep the shape of the scores; they are entered to find what is known inside.
std::vector<Type> forward(const ForwardContext& c) {
  HeadDims q = heads_dims(c.dims(0));
  HeadDims k = heads_dims(c.dims(1));
  HeadDims v = heads_dims(c.dims(2));
  const ir::Attribute* given = c.find_attr("softmax_precision");
  std::optional<DType> precision = c.dtype(0) == DType::f64 ? DType::f64 : DType::f32;
  if (given != nullptr) precision = dtype_from_onnx(std::get<int64_t>(*given));
  if (precision) {
    ir::Known scores{.type = Type::tensor(*precision), .contents = {}};
    if (q.batch && k.batch) scores.type.dims = SymDims{q.batch, q.heads, q.length, k.length};
    for (size_t region : {0, 1}) c.services().run_region(region, {scores}, false, [](sym::Facts&) {});
  }
  return {Type::tensor(c.dtype(0), named(c, 0, dims_of(attended(q, k, v))))};
}

void backward(BackwardContext& c) {
  for (size_t i = 0; i < 3; ++i) c.set_rank(i, 4);
  require_attention(c, heads_dims(c.dims(0)), heads_dims(c.dims(1)), heads_dims(c.dims(2)));
}

}  // namespace

OpDef flex_attention_op() {
  return {
      .name = "flex_attention",
      .onnx = {"ai.onnx.preview", "FlexAttention", {1}},
      .doc = "prob_mod(softmax(score_mod(scale · Q · Kᵀ))) · V per head",
      .operands = {{"q", type}, {"k", type}, {"v", type}},
      .results = {{"y", type}},
      .attrs = {optional_attr("scale", AttrKind::real), optional_attr("softmax_precision", AttrKind::integer)},
      .regions = {{.name = "score_mod", .onnx = "score_mod", .parameters = 1, .optional = true},
                  {.name = "prob_mod", .onnx = "prob_mod", .parameters = 1, .optional = true}},
      .dynamism = isdos(),
      .mapping = Mapping::many_to_many,
      .forward = forward,
      .backward = backward,
      .value = absent("attention does not occur in shape arithmetic"),
      .eval = eval,
      .lower = later::cpu,
      .grad = later::training,
      .samples =
          {{"$(f32[1, 1, 1, 2], f32[1, 1, 2, 2]{0, 0, 0, 0}, f32[1, 1, 2, 1]{2, 4}) "
            "score_mod(%s: ?) { yield %s } prob_mod(%p: ?) { %d = add(%p, %p) yield %d }",
            "f32[1, 1, 1, 1]{6}"},
           {"$(f32[2, 4, 0, 8], f32[2, 2, 5, 8], f32[2, 2, 5, 7]) score_mod(%s: ?) { yield %s } prob_mod(%p: ?) { "
            "yield %p }",
            "f32[2, 4, 0, 7]"},
           {"$(f32[2, 3, 8], f32[2, 3, 8], f32[2, 3, 8]) score_mod(%s: ?) { yield %s } prob_mod(%p: ?) { yield %p }",
            "error: must be of rank 4"}},
  };
}

}  // namespace selkie::ops
