// LinearClassifier and LinearRegressor of ai.onnx.ml.
#include "ops/support/blank.h"
#include "ops/support/ml.h"

namespace selkie::ops {
namespace {

// Each row's scores: row · coefficients + intercepts, with `outputs` sets of coefficients.
std::vector<std::vector<double>> scores_of(const EvalContext& e, const Rows& rows, size_t outputs) {
  std::vector<float> coefficients = floats_of(e, "coefficients");
  std::vector<float> intercepts = floats_of(e, "intercepts");
  auto width = static_cast<size_t>(rows.width);
  if (outputs == 0 || coefficients.size() / outputs != width || coefficients.size() % outputs != 0)
    fail("{} coefficients do not fit {} features and {} outputs", coefficients.size(), width, outputs);
  if (!intercepts.empty() && intercepts.size() != outputs)
    fail("{} intercepts do not fit {} outputs", intercepts.size(), outputs);
  std::vector<std::vector<double>> scores;
  for (int64_t row = 0; row < rows.count; ++row) {
    std::vector<double>& out = scores.emplace_back(outputs, 0.0);
    for (size_t i = 0; i < outputs; ++i) {
      for (size_t c = 0; c < width; ++c) out[i] += rows[row][c] * coefficients[i * width + c];
      if (!intercepts.empty()) out[i] += intercepts[i];
    }
  }
  return scores;
}

void classify(EvalContext& e) {
  Rows rows = rows_of(e.tensor(0));
  Labels labels = labels_of(e, "classlabels_ints", "classlabels_strings");
  PostTransform transform = post_transform(e.attr_string("post_transform"));
  size_t size = floats_of(e, "coefficients").size();
  size_t outputs = rows.width == 0 ? labels.size() : size / static_cast<size_t>(rows.width);
  std::vector<std::vector<double>> scores = scores_of(e, rows, outputs);
  bool mirrored = outputs == 1 && labels.size() == 2;
  if (!mirrored && labels.size() > 0 && labels.size() != outputs)
    fail("{} labels do not fit {} classes", labels.size(), outputs);
  std::vector<size_t> classes;
  for (std::vector<double>& row : scores) {
    if (mirrored) row.insert(row.begin(), -row[0]);
    apply_transform(transform, row);
    bool single = row.size() == 1;
    classes.push_back(single ? row[0] >= (transform == PostTransform::none ? 0 : 0.5) : largest(row));
  }
  set_classes(e, labels, classes, scores, mirrored ? 2 : outputs);
}

void regress(EvalContext& e) {
  Rows rows = rows_of(e.tensor(0));
  PostTransform transform = post_transform(e.attr_string("post_transform"));
  int64_t targets = e.attr_int("targets");
  if (targets < 1) fail("attribute 'targets' is {}, but must be positive", targets);
  std::vector<double> out;
  for (std::vector<double>& row : scores_of(e, rows, static_cast<size_t>(targets))) {
    apply_transform(transform, row);
    out.insert(out.end(), row.begin(), row.end());
  }
  e.set(0, narrow<double>(out, DType::f32, {rows.count, targets}));
}

// Scores are one per label, if there are labels: of two labels the first one's may be the negative of the other's.
std::vector<Type> forward_classifier(const ForwardContext& c) {
  size_t labels = label_count(c, "classlabels_ints", "classlabels_strings");
  auto coefficients = static_cast<int64_t>(list_size<float>(c, "coefficients"));
  sym::Expr features = row_dims(c, 0).width;
  sym::Expr width;
  if (labels > 0)
    width = c.constant(static_cast<int64_t>(labels));
  else if (features)
    width = sym::floordiv(c.constant(coefficients), features);
  return classes_types(c, "classlabels_strings", width);
}

// There is one coefficient per feature and output.
void require_coefficients(BackwardContext& c, int64_t outputs) {
  require_rows(c);
  if (sym::Expr features = row_dims(c, 0).width)
    c.equal(features * outputs, c.constant(static_cast<int64_t>(list_size<float>(c, "coefficients"))));
}

void backward_classifier(BackwardContext& c) {
  size_t labels = label_count(c, "classlabels_ints", "classlabels_strings");
  if (labels == 0 || labels == 2)  // one output or two
    require_rows(c);
  else
    require_coefficients(c, static_cast<int64_t>(labels));
}

std::vector<Type> forward_regressor(const ForwardContext& c) {
  return {scores_type(c, 0, DType::f32, c.constant(c.attr_int("targets")))};
}

OpDef classifier() {
  OpDef op = blank_record(Mapping::many_to_many);
  op.name = "linear_classifier";
  op.onnx = {ml_domain, "LinearClassifier", {1}};
  op.doc = "the class with the largest linear score, and the scores";
  op.operands = {{"x", {"T1", ml_numbers}}};
  op.results = {{"y", {"T2", DTypeSet{DType::str, DType::i64}}}, {"z", {"f32", dtypes::f32}}};
  op.attrs = {optional_attr("classlabels_ints", AttrKind::integers),
              optional_attr("classlabels_strings", AttrKind::texts),
              required_attr("coefficients", AttrKind::reals),
              optional_attr("intercepts", AttrKind::reals),
              int_attr("multi_class", 0),
              string_attr("post_transform", "NONE")};
  op.forward = forward_classifier;
  op.backward = backward_classifier;
  op.eval = classify;
  op.samples = {
      {"$(f32[2, 2]{1, 0, 0, 1}) {coefficients = [1.0, 0.0, 0.0, 2.0, -1.0, -1.0], intercepts = [0.0, 0.5, 0.0], "
       "classlabels_ints = [7, 8, 9]}",
       "i64[2]{7, 8}, f32[2, 3]{1, 0.5, -1, 0, 2.5, -1}"},
      {"$(f32[2, 1]{1, -1}) {coefficients = [2.0], classlabels_strings = [\"no\", \"yes\"], post_transform = "
       "\"LOGISTIC\"}",
       "str[2]{\"yes\", \"no\"}, f32[2, 2]{0.119202922, 0.880797078, 0.880797078, 0.119202922}"},
      {"$(i64[0, 2]) {coefficients = [1.0, 2.0], classlabels_ints = [0, 1]}", "i64[0], f32[0, 2]"},
      {"$(f32[2]) {coefficients = [1.0, 2.0, 3.0, 4.0]}", "i64[1], f32[1, 2]"},
      {"$(f32[1, 1]) {coefficients = [1.0], classlabels_ints = [7]}", "i64[1], f32[1, 1]"},
      {"$(f32[1, 0]) {coefficients = [], classlabels_ints = [5, 6, 7]}", "i64[1], f32[1, 3]"},
      {"$(f32[1, 2]) {coefficients = [1.0, 2.0, 3.0], classlabels_ints = [0, 1]}", "error: 3 coefficients do not fit"},
      {"$(f32[1, 1]) {coefficients = [1.0, 2.0], classlabels_ints = [0, 1, 2]}",
       "error: 3 labels do not fit 2 classes"},
      {"$(f32[1, 1]) {coefficients = [1.0], post_transform = \"CUBE\"}", "error: does not exist"}};
  return op;
}

OpDef regressor() {
  OpDef op = blank_record(Mapping::many_to_many);
  op.name = "linear_regressor";
  op.onnx = {ml_domain, "LinearRegressor", {1}};
  op.doc = "linear functions of each row, one per target";
  op.operands = {{"x", {"T", ml_numbers}}};
  op.results = {{"y", {"f32", dtypes::f32}}};
  op.attrs = {optional_attr("coefficients", AttrKind::reals), optional_attr("intercepts", AttrKind::reals),
              string_attr("post_transform", "NONE"), int_attr("targets", 1)};
  op.forward = forward_regressor;
  op.backward = [](BackwardContext& c) { require_coefficients(c, c.attr_int("targets")); };
  op.eval = regress;
  op.samples = {
      {"$(f32[2, 2]{1, 2, 3, 4}) {coefficients = [1.0, 1.0, 0.0, -1.0], intercepts = [0.0, 1.0], targets = 2}",
       "f32[2, 2]{3, -1, 7, -3}"},
      {"$(f32[1, 1]{0.975}) {coefficients = [1.0], post_transform = \"PROBIT\"}", "f32[1, 1]{1.95996398}"},
      {"$(f32[1, 2]{0, 1}) {coefficients = [1.0, 0.0, 0.0, 1.0], targets = 2, post_transform = \"SOFTMAX_ZERO\"}",
       "f32[1, 2]{0, 1}"},
      {"$(f32[0, 1]) {coefficients = [1.0]}", "f32[0, 1]"},
      {"$(f32[2]) {coefficients = [1.0, 2.0]}", "f32[1, 1]"},
      {"$(f32[1, 1]) {coefficients = [1.0], intercepts = [1.0, 2.0]}", "error: 2 intercepts"},
      {"$(f32[1, 1]) {coefficients = [1.0], targets = 0}", "error: must be positive"}};
  return op;
}

}  // namespace

std::vector<OpDef> ml_linear_family() { return {classifier(), regressor()}; }

}  // namespace selkie::ops
