// FlexAttention: attention whose scores and probabilities pass through regions of the model.
#include <cmath>

#include "ops/support/attention.h"
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
      .forward = later::rdp,
      .backward = later::rdp,
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
