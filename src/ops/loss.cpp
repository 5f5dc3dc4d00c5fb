// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss: how unlikely a model finds the right classes.
#include <optional>

#include "ops/support/blank.h"
#include "ops/support/lines.h"
#include "ops/support/softmax.h"

namespace selkie::ops {
namespace {

struct Losses {
  std::vector<double> values;  // already weighted
  double weights = 0;          // the sum of the weights that count
};

// −weight · x at the class of each target; x is [batch, classes, …] and targets [batch, …].
Losses losses_of(const EvalContext& e, const std::vector<double>& x) {
  const Dims& dims = e.tensor(0).dims();
  if (dims.size() < 2) fail("the input has shape {}, but needs a batch and classes", to_string(dims));
  Dims expected = dims;
  expected.erase(expected.begin() + 1);
  if (e.tensor(1).dims() != expected)
    fail("targets have shape {}, but must have {}", to_string(e.tensor(1).dims()), to_string(expected));
  int64_t classes = dims[1];
  if (e.has(2) && e.tensor(2).dims() != Dims{classes})
    fail("weights have shape {} for {} classes", to_string(e.tensor(2).dims()), classes);
  std::vector<double> weights =
      e.has(2) ? widen<double>(e.tensor(2)) : std::vector<double>(static_cast<size_t>(classes), 1);
  std::optional<int64_t> ignored;
  if (e.has_attr("ignore_index")) ignored = e.attr_int("ignore_index");
  int64_t inner = product(dims, 2, static_cast<int64_t>(dims.size()));
  Losses out;
  std::vector<int64_t> targets = ints_of(e.tensor(1));
  for (size_t i = 0; i < targets.size(); ++i) {
    int64_t target = targets[i];
    if (target == ignored) {
      out.values.push_back(0);
      continue;
    }
    if (target < 0 || target >= classes) fail("class {} is outside {} classes", target, classes);
    int64_t sample = static_cast<int64_t>(i) / inner;
    int64_t place = static_cast<int64_t>(i) % inner;
    double weight = weights[static_cast<size_t>(target)];
    out.values.push_back(-weight * x[static_cast<size_t>((sample * classes + target) * inner + place)]);
    out.weights += weight;
  }
  return out;
}

void set_loss(EvalContext& e, const std::vector<double>& log_probabilities) {
  Losses losses = losses_of(e, log_probabilities);
  const std::string& reduction = e.attr_string("reduction");
  DType dtype = e.tensor(0).dtype();
  if (reduction == "none") {
    e.set(0, narrow<double>(losses.values, dtype, e.tensor(1).dims()));
    return;
  }
  if (reduction != "mean" && reduction != "sum") fail("'reduction' is '{}', but must be none, mean or sum", reduction);
  double sum = 0;
  for (double v : losses.values) sum += v;
  e.set(0, narrow<double>(std::vector<double>{reduction == "sum" ? sum : sum / losses.weights}, dtype, {}));
}

std::vector<Type> forward(const ForwardContext& c) {
  std::optional<SymDims> dims = SymDims{};
  if (c.attr_string("reduction") == "none") {
    dims = c.dims(1);
    if (!dims && c.dims(0) && c.rank(0) >= 2) {
      dims = c.dims(0);
      dims->erase(dims->begin() + 1);
    }
  }
  return {Type::tensor(c.dtype(0), dims), c.type(0)};
}

// Targets have the input's dims but for the classes, and weights are one per class.
void backward(BackwardContext& c) {
  if (c.attr_string("reduction") == "none" && c.result_dims(0)) c.set_dims(1, SymDims(*c.result_dims(0)));
  if (c.result_dims(1)) c.set_dims(0, SymDims(*c.result_dims(1)));
  if (!c.dims(0) && c.dims(1)) c.set_rank(0, c.rank(1) + 1);
  if (!c.dims(0) || c.rank(0) < 2) return;
  SymDims dims = *c.dims(0);
  c.set_dims(2, SymDims{dims[1]});
  dims.erase(dims.begin() + 1);
  c.set_dims(1, dims);
}

OpDef base() {
  OpDef op = blank_record(Mapping::many_to_many);
  op.name = "negative_log_likelihood_loss";
  op.onnx = {"", "NegativeLogLikelihoodLoss", {12, 13, 22}};
  op.doc = "minus the log probability of each target's class, weighted, and reduced as asked";
  op.operands = {{"input", float_tensor}, {"target", index_tensor}, {"weight", float_tensor, optional}};
  op.results = {{"loss", float_tensor}};
  op.attrs = {optional_attr("ignore_index", AttrKind::integer), string_attr("reduction", "mean")};
  op.forward = forward;
  op.backward = backward;
  op.value = absent("losses do not occur in shape arithmetic");
  op.eval = [](EvalContext& e) { set_loss(e, widen<double>(e.tensor(0))); };
  op.samples = {{"$(f32[2, 2]{1, 2, 3, 4}, i64[2]{0, 1}, f32[2]{1, 3})", "f32[]{-3.25}"},
                {"$(f32[2, 2]{1, 2, 3, 4}, i64[2]{0, 1}) {reduction = \"none\", ignore_index = 0}", "f32[2]{0, -4}"},
                {"$(f32[2, 3, 4], i32[2, 4]) {reduction = \"sum\"}", "f32[]"},
                {"$(f32[0, 3], i64[0]) {reduction = \"none\"}", "f32[0]"},
                {"$(f32[2, 2], i64[2]{0, 2})", "error: class 2 is outside"},
                {"$(f32[2, 3, 4], i64[2, 3])", "error: targets have shape"}};
  return op;
}

void eval_cross_entropy(EvalContext& e) {
  const Tensor& scores = e.tensor(0);
  if (scores.rank() < 2) fail("the scores have shape {}, but need a batch and classes", to_string(scores.dims()));
  std::vector<double> x = widen<double>(scores);
  for_each_line(x, scores.dims(), 1, [](std::span<double> line) { log_softmax(line); });
  set_loss(e, x);
  e.set(1, narrow<double>(x, scores.dtype(), scores.dims()));
}

OpDef cross_entropy() {
  OpDef op = base();
  op.name = "softmax_cross_entropy_loss";
  op.onnx = {"", "SoftmaxCrossEntropyLoss", {12, 13}};
  op.doc = "minus the log softmax of each label's score, weighted, and reduced as asked";
  op.operands = {{"scores", float_tensor}, {"labels", index_tensor}, {"weights", float_tensor, optional}};
  op.results = {{"output", float_tensor}, {"log_prob", float_tensor, optional}};
  op.eval = eval_cross_entropy;
  op.samples = {{"$(f32[1, 2]{0, 0}, i64[1]{0})", "f32[]{0.6931472}, f32[1, 2]{-0.6931472, -0.6931472}"},
                {"$(f32[2, 3, 4, 5], i64[2, 4, 5], f32[3]) {reduction = \"none\"}", "f32[2, 4, 5], f32[2, 3, 4, 5]"},
                {"$(f32[0, 3], i64[0]) {reduction = \"none\"}", "f32[0]"},
                {"$(f32[1, 2], i64[1]{-1})", "error: class -1 is outside"},
                {"$(f32[1, 2], i64[1]{0}) {reduction = \"most\"}", "error: must be none, mean or sum"}};
  return op;
}

}  // namespace

std::vector<OpDef> loss_family() { return {base(), cross_entropy()}; }

}  // namespace selkie::ops
