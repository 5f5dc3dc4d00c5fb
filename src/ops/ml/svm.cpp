// SVMClassifier and SVMRegressor of ai.onnx.ml.
#include <cmath>

#include "ops/support/blank.h"
#include "ops/support/ml.h"
#include "ops/support/pairwise.h"

namespace selkie::ops {
namespace {

using Row = std::span<const double>;

struct Kernel {
  std::string type;
  double gamma = 0;
  double coef0 = 0;
  double degree = 0;

  double operator()(Row x, std::span<const float> vector) const {
    double sum = 0;
    for (size_t i = 0; i < x.size(); ++i)
      sum += type == "RBF" ? (x[i] - vector[i]) * (x[i] - vector[i]) : x[i] * vector[i];
    if (type == "RBF") return std::exp(-gamma * sum);
    if (type == "POLY") return std::pow(gamma * sum + coef0, degree);
    return type == "SIGMOID" ? std::tanh(gamma * sum + coef0) : sum;
  }
};

Kernel kernel_of(const EvalContext& e) {
  Kernel kernel{.type = e.attr_string("kernel_type")};
  if (kernel.type != "LINEAR" && kernel.type != "POLY" && kernel.type != "RBF" && kernel.type != "SIGMOID")
    fail("attribute 'kernel_type' is \"{}\", but must be LINEAR, POLY, RBF or SIGMOID", kernel.type);
  std::vector<float> params = floats_of(e, "kernel_params");
  if (!params.empty() && params.size() != 3)
    fail("attribute 'kernel_params' has {} elements, but must have 3", params.size());
  if (!params.empty()) {
    kernel.gamma = params[0];
    kernel.coef0 = params[1];
    kernel.degree = std::trunc(params[2]);
  }
  return kernel;
}

struct Machine {
  Kernel kernel;
  std::vector<float> coefficients;
  std::vector<float> vectors;  // support vectors, one after another
  std::vector<float> rho;
  size_t width;  // features
  size_t vector_count;

  std::span<const float> vector(size_t i) const { return std::span(vectors).subspan(i * width, width); }
};

Machine machine_of(const EvalContext& e, int64_t width, size_t vector_count) {
  Machine m{kernel_of(e),        floats_of(e, "coefficients"), floats_of(e, "support_vectors"),
            floats_of(e, "rho"), static_cast<size_t>(width),   vector_count};
  if (m.rho.empty()) fail("attribute 'rho' is needed");
  if (m.vectors.size() / std::max<size_t>(vector_count, 1) < m.width && vector_count > 0)
    fail("{} elements are too few for {} support vectors of {} features", m.vectors.size(), vector_count, width);
  return m;
}

// One score per pair of classes, and how many pairs each class wins.
struct Duels {
  std::vector<double> scores;
  std::vector<double> votes;
};

Duels duel(const Machine& m, const std::vector<int64_t>& per_class, Row x) {
  std::vector<double> kernels;
  for (size_t i = 0; i < m.vector_count; ++i) kernels.push_back(m.kernel(x, m.vector(i)));
  std::vector<size_t> starts{0};
  for (int64_t n : per_class) starts.push_back(starts.back() + static_cast<size_t>(n));
  size_t k = per_class.size();
  Duels out{{}, std::vector<double>(k, 0.0)};
  for (size_t i = 0; i < k; ++i)
    for (size_t j = i + 1; j < k; ++j) {
      double sum = m.rho[out.scores.size()];
      for (size_t v = starts[i]; v < starts[i + 1]; ++v)
        sum += m.coefficients[(j - 1) * m.vector_count + v] * kernels[v];
      for (size_t v = starts[j]; v < starts[j + 1]; ++v) sum += m.coefficients[i * m.vector_count + v] * kernels[v];
      out.scores.push_back(sum);
      out.votes[sum > 0 ? i : j] += 1;
    }
  return out;
}

// The class a row belongs to, and its scores after the transform.
struct Verdict {
  size_t winner;
  std::vector<double> scores;
};

Verdict decide(std::vector<double> scores, std::span<const double> votes, size_t labels, bool binary,
               bool positive_weights, bool has_probabilities, PostTransform transform) {
  std::span<const double> ranking = votes.empty() ? std::span<const double>(scores) : votes;
  size_t winner = largest(ranking);
  if (binary && labels == 2 && !has_probabilities && positive_weights && ranking[winner] >= 0.5) winner = 1;
  if (labels < 2) winner = ranking[winner] > 0;
  bool mirrored = scores.size() == 1 && binary && labels == 2 && transform != PostTransform::probit;
  if (mirrored) scores.insert(scores.begin(), -scores[0]);
  if (scores.size() > 1 || transform == PostTransform::probit) apply_transform(transform, scores);
  return {winner, std::move(scores)};
}

void check_classes(const Machine& m, const std::vector<int64_t>& per_class, size_t k, const std::vector<float>& prob_a,
                   const std::vector<float>& prob_b) {
  size_t pairs = k * (k - 1) / 2;
  if (per_class.size() != k) fail("attribute 'vectors_per_class' has {} elements for {} classes", per_class.size(), k);
  if (m.coefficients.size() < (k - 1) * m.vector_count)
    fail("{} coefficients are too few for {} classes and {} support vectors", m.coefficients.size(), k, m.vector_count);
  if (m.rho.size() < pairs) fail("attribute 'rho' has {} elements for {} pairs of classes", m.rho.size(), pairs);
  if (!prob_a.empty() && (prob_a.size() < pairs || prob_b.size() < pairs))
    fail("attributes 'prob_a' and 'prob_b' have fewer elements than {} pairs of classes", pairs);
}

void check_class_size(int64_t n) {
  if (n < 0 || n > int64_t{1} << 40) fail("attribute 'vectors_per_class' has {}", n);
}

void classify(EvalContext& e) {
  Rows rows = rows_of(e.tensor(0));
  Labels labels = labels_of(e, "classlabels_ints", "classlabels_strings");
  PostTransform transform = post_transform(e.attr_string("post_transform"));
  std::vector<int64_t> per_class = ints_of(e, "vectors_per_class");
  std::vector<float> prob_a = floats_of(e, "prob_a");
  std::vector<float> prob_b = floats_of(e, "prob_b");
  int64_t vector_count = 0;
  for (int64_t n : per_class) {
    check_class_size(n);
    vector_count += n;
  }
  Machine m = machine_of(e, rows.width, static_cast<size_t>(vector_count));
  size_t k = std::max<size_t>(labels.size(), 1);
  bool linear = m.vector_count == 0;
  if (linear && m.coefficients.size() != k * m.width)
    fail("{} coefficients do not fit {} classes of {} features", m.coefficients.size(), k, m.width);
  if (!linear) check_classes(m, per_class, k, prob_a, prob_b);
  bool positive = std::all_of(m.coefficients.begin(), m.coefficients.end(), [](float c) { return c >= 0; });
  bool has_probabilities = !prob_a.empty() && !linear;
  std::vector<size_t> classes;
  std::vector<std::vector<double>> scores;
  for (int64_t row = 0; row < rows.count; ++row) {
    Duels duels;
    if (linear) {
      for (size_t c = 0; c < k; ++c)
        duels.scores.push_back(
            m.rho[0] + Kernel{.type = "LINEAR"}(rows[row], std::span(m.coefficients).subspan(c * m.width, m.width)));
    } else {
      duels = duel(m, per_class, rows[row]);
      if (has_probabilities) duels.scores = pairwise_probabilities(duels.scores, k, prob_a, prob_b);
    }
    Verdict v = duels.scores.empty() ? Verdict{0, {}}
                                     : decide(duels.scores, duels.votes, labels.size(), m.rho.size() == 1, positive,
                                              has_probabilities, transform);
    classes.push_back(v.winner);
    scores.push_back(std::move(v.scores));
  }
  size_t raw = linear || has_probabilities ? k : k * (k - 1) / 2;
  bool mirrored = raw == 1 && m.rho.size() == 1 && labels.size() == 2 && transform != PostTransform::probit;
  set_classes(e, labels, classes, scores, mirrored ? 2 : raw);
}

void regress(EvalContext& e) {
  Rows rows = rows_of(e.tensor(0));
  PostTransform transform = post_transform(e.attr_string("post_transform"));
  int64_t supports = e.attr_int("n_supports");
  if (supports < 0) fail("attribute 'n_supports' is {}, but must not be negative", supports);
  Machine m = machine_of(e, rows.width, static_cast<size_t>(supports));
  size_t needed = supports > 0 ? m.vector_count : m.width;
  if (m.coefficients.size() < needed)
    fail("{} coefficients are given, but {} are needed", m.coefficients.size(), needed);
  std::vector<double> out;
  for (int64_t row = 0; row < rows.count; ++row) {
    double sum = m.rho[0];
    if (supports == 0) sum += Kernel{.type = "LINEAR"}(rows[row], m.coefficients);
    for (size_t i = 0; i < m.vector_count; ++i) sum += m.coefficients[i] * m.kernel(rows[row], m.vector(i));
    if (e.attr_int("one_class") != 0) sum = sum > 0 ? 1 : -1;
    apply_transform(transform, {&sum, 1});
    out.push_back(sum);
  }
  e.set(0, narrow<double>(out, DType::f32, {rows.count, 1}));
}

int64_t vector_count(const ir::ShapeContext& c) {
  const ir::Attribute* given = c.find_attr("vectors_per_class");
  if (given == nullptr) return 0;
  int64_t count = 0;
  for (int64_t n : std::get<std::vector<int64_t>>(*given)) {
    check_class_size(n);
    count += n;
  }
  return count;
}

std::vector<Type> forward_classifier(const ForwardContext& c) {
  size_t labels = label_count(c, "classlabels_ints", "classlabels_strings");
  size_t k = std::max<size_t>(labels, 1);
  bool per_class = vector_count(c) == 0 || list_size<float>(c, "prob_a") > 0;
  size_t width = per_class ? k : k * (k - 1) / 2;
  if (width == 1 && list_size<float>(c, "rho") == 1 && labels == 2 && c.attr_string("post_transform") != "PROBIT")
    width = 2;
  return classes_types(c, "classlabels_strings", c.constant(static_cast<int64_t>(width)));
}

// Without support vectors, there are `outputs` linear functions of the features; else vectors have that many elements.
void require_features(BackwardContext& c, int64_t vectors, bool exact, int64_t outputs) {
  require_rows(c);
  sym::Expr features = row_dims(c, 0).width;
  if (!features || vectors < 0) return;
  sym::Expr coefficients = c.constant(static_cast<int64_t>(list_size<float>(c, "coefficients")));
  if (vectors > 0)
    c.less_equal(features, c.constant(static_cast<int64_t>(list_size<float>(c, "support_vectors")) / vectors));
  else if (exact)
    c.equal(features * outputs, coefficients);
  else
    c.less_equal(features, coefficients);
}

void backward_classifier(BackwardContext& c) {
  size_t labels = label_count(c, "classlabels_ints", "classlabels_strings");
  require_features(c, vector_count(c), true, static_cast<int64_t>(std::max<size_t>(labels, 1)));
}

std::vector<ir::AttrDef> shared_attrs() {
  return {optional_attr("coefficients", AttrKind::reals), optional_attr("kernel_params", AttrKind::reals),
          string_attr("kernel_type", "LINEAR"),           string_attr("post_transform", "NONE"),
          optional_attr("rho", AttrKind::reals),          optional_attr("support_vectors", AttrKind::reals)};
}

OpDef classifier() {
  OpDef op = blank_record(Mapping::many_to_many);
  op.name = "svm_classifier";
  op.onnx = {ml_domain, "SVMClassifier", {1}};
  op.doc = "the class that a support vector machine gives each row, and its scores or probabilities";
  op.operands = {{"x", {"T1", ml_numbers}}};
  op.results = {{"y", {"T2", DTypeSet{DType::str, DType::i64}}}, {"z", {"f32", dtypes::f32}}};
  op.attrs = shared_attrs();
  op.attrs.insert(op.attrs.end(),
                  {optional_attr("classlabels_ints", AttrKind::integers),
                   optional_attr("classlabels_strings", AttrKind::texts), optional_attr("prob_a", AttrKind::reals),
                   optional_attr("prob_b", AttrKind::reals), optional_attr("vectors_per_class", AttrKind::integers)});
  op.forward = forward_classifier;
  op.backward = backward_classifier;
  op.eval = classify;
  op.samples = {
      {"$(f32[2, 1]{1, -1}) {coefficients = [1.0, -1.0], support_vectors = [1.0, -1.0], vectors_per_class = [1, 1], "
       "rho = [0.5], classlabels_ints = [3, 4]}",
       "i64[2]{3, 4}, f32[2, 2]{-2.5, 2.5, 1.5, -1.5}"},
      {"$(f32[1, 2]{1, 2}) {coefficients = [1.0, 0.0, 0.0, 1.0, 0.5, 0.5], rho = [0.0], classlabels_strings = [\"a\", "
       "\"b\", \"c\"]}",
       "str[1]{\"b\"}, f32[1, 3]{1, 2, 1.5}"},
      {"$(f32[1, 1]{1}) {coefficients = [1.0, -1.0], support_vectors = [1.0, -1.0], vectors_per_class = [1, 1], rho = "
       "[0.0], prob_a = [-1.0], prob_b = [0.0], "
       "classlabels_ints = [0, 1]}",
       "i64[1]{0}, f32[1, 2]{0.880797078, 0.119202922}"},
      {"$(f32[0, 1]) {coefficients = [1.0, 2.0], rho = [0.0], classlabels_ints = [0, 1]}", "i64[0], f32[0, 2]"},
      {"$(f32[1, 1]) {coefficients = [1.0], vectors_per_class = [1, 1], support_vectors = [1.0, 2.0], rho = [0.0], "
       "classlabels_ints = [0, 1]}",
       "error: too few"},
      {"$(f32[1, 1]) {coefficients = [1.0], rho = [0.0], kernel_type = \"CUBE\"}", "error: must be LINEAR"}};
  return op;
}

OpDef regressor() {
  OpDef op = blank_record(Mapping::many_to_many);
  op.name = "svm_regressor";
  op.onnx = {ml_domain, "SVMRegressor", {1}};
  op.doc = "what a support vector machine predicts for each row, or whether the row belongs to its one class";
  op.operands = {{"x", {"T", ml_numbers}}};
  op.results = {{"y", {"f32", dtypes::f32}}};
  op.attrs = shared_attrs();
  op.attrs.insert(op.attrs.end(), {int_attr("n_supports", 0), int_attr("one_class", 0)});
  op.forward = [](const ForwardContext& c) { return std::vector<Type>{scores_type(c, 0, DType::f32, c.constant(1))}; };
  op.backward = [](BackwardContext& c) { require_features(c, c.attr_int("n_supports"), false, 1); };
  op.eval = regress;
  op.samples = {
      {"$(f32[2, 1]{0, 1}) {coefficients = [2.0], support_vectors = [1.0], n_supports = 1, kernel_type = \"RBF\", "
       "kernel_params = [1.0, 0.0, 0.0], rho = [0.5]}",
       "f32[2, 1]{1.23575888, 2.5}"},
      {"$(f32[1, 2]{1, 2}) {coefficients = [1.0], support_vectors = [1.0, 1.0], n_supports = 1, kernel_type = "
       "\"POLY\", kernel_params = [1.0, 1.0, 2.0], rho = [0.0]}",
       "f32[1, 1]{16}"},
      {"$(f32[2, 1]{1, -1}) {coefficients = [2.0], rho = [0.0], one_class = 1}", "f32[2, 1]{1, -1}"},
      {"$(f32[0, 1]) {coefficients = [2.0], rho = [0.0]}", "f32[0, 1]"},
      {"$(f32[1, 1]) {coefficients = [2.0]}", "error: 'rho' is needed"},
      {"$(f32[1, 2]) {coefficients = [2.0], n_supports = 1, support_vectors = [1.0], rho = [0.0]}", "error: too few"}};
  return op;
}

}  // namespace

std::vector<OpDef> ml_svm_family() { return {classifier(), regressor()}; }

}  // namespace selkie::ops
