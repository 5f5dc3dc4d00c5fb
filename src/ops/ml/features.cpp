// Features of ai.onnx.ml, changed one by one or row by row: Binarizer, Imputer, Normalizer, Scaler.
#include <cmath>
#include <limits>

#include "ops/support/blank.h"
#include "ops/support/elementwise.h"
#include "ops/support/ml.h"

namespace selkie::ops {
namespace {

constexpr TypeVar numbers{"T", ml_numbers};
constexpr TypeVar f32_result{"f32", dtypes::f32};

// Element i of a list of 1 or `width` settings, for the last axis.
template <class T>
T setting(const std::vector<T>& list, int64_t width, size_t element, std::string_view name) {
  if (list.size() == 1) return list[0];
  if (static_cast<int64_t>(list.size()) != width)
    fail("attribute '{}' has {} elements for {} features", name, list.size(), width);
  return list[element % static_cast<size_t>(width)];
}

int64_t features(const Tensor& x) { return x.rank() == 0 ? 1 : x.dim(x.rank() - 1); }

template <class W, class V>
Tensor impute(const Tensor& x, const std::vector<V>& values, W replaced, std::string_view name) {
  std::vector<W> out = widen<W>(x);
  for (size_t i = 0; i < out.size(); ++i)
    if (out[i] == replaced || (replaced != replaced && out[i] != out[i]))
      out[i] = static_cast<W>(setting(values, features(x), i, name));
  return narrow<W>(out, x.dtype(), x.dims());
}

void eval_imputer(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  std::string_view name = is_float(x.dtype()) ? "imputed_value_floats" : "imputed_value_int64s";
  if (!e.has_attr(name)) fail("attribute '{}' is needed for elements of type {}", name, selkie::name(x.dtype()));
  if (is_float(x.dtype()))
    e.set(0, impute<double>(x, e.attr<std::vector<float>>(name), e.attr_float("replaced_value_float"), name));
  else
    e.set(0, impute<int64_t>(x, e.attr_ints(name), e.attr_int("replaced_value_int64"), name));
}

void eval_normalizer(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  const std::string& norm = e.attr_string("norm");
  if (norm != "MAX" && norm != "L1" && norm != "L2")
    fail("attribute 'norm' is \"{}\", but must be MAX, L1 or L2", norm);
  Rows rows = rows_of(x);
  std::vector<double> out;
  for (int64_t r = 0; r < rows.count; ++r) {
    double divisor = 0;
    for (double v : rows[r])
      divisor = norm == "MAX" ? std::max(divisor, std::fabs(v)) : divisor + (norm == "L1" ? std::fabs(v) : v * v);
    if (norm == "L2") divisor = std::sqrt(divisor);
    for (double v : rows[r]) out.push_back(divisor == 0 ? v : v / divisor);
  }
  e.set(0, narrow<double>(out, DType::f32, x.dims()));
}

void eval_scaler(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  std::vector<float> offset = floats_of(e, "offset", {0});
  std::vector<float> scale = floats_of(e, "scale", {1});
  std::vector<double> values = widen<double>(x);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = (values[i] - setting(offset, features(x), i, "offset")) * setting(scale, features(x), i, "scale");
  e.set(0, narrow<double>(values, DType::f32, x.dims()));
}

OpDef record(std::string_view name, std::string_view onnx, std::string_view doc) {
  OpDef op = blank_record();
  op.name = name;
  op.onnx = {ml_domain, onnx, {1}};
  op.doc = doc;
  op.operands = {{"x", numbers}};
  op.results = {{"y", f32_result}};
  op.forward = shaped_like_first(DType::f32);
  op.backward = backward_same;
  return op;
}

OpDef binarizer() {
  OpDef op = record("binarizer", "Binarizer", "1 where x is above the threshold, 0 elsewhere");
  op.results = {{"y", numbers}};
  op.attrs = {float_attr("threshold", 0)};
  op.mapping = Mapping::one_to_one;
  op.forward = same_as_first;
  op.eval = [](EvalContext& e) {
    double threshold = e.attr_float("threshold");
    e.set(0,
          map_elements<double>(e.tensor(0), e.tensor(0).dtype(), [&](double v) { return v > threshold ? 1.0 : 0.0; }));
  };
  op.samples = {{"$(f32[3]{0, 1, 2}) {threshold = 1.0}", "f32[3]{0, 0, 1}"},
                {"$(i64[2]{-1, 1})", "i64[2]{0, 1}"},
                {"$(f32[0, 2])", "f32[0, 2]"},
                {"$(u8[2])", "error: must be one of"}};
  return op;
}

OpDef imputer() {
  OpDef op = record("imputer", "Imputer", "replaces one value, such as NaN, by another, per feature or for all");
  op.results = {{"y", numbers}};
  op.attrs = {optional_attr("imputed_value_floats", AttrKind::reals),
              optional_attr("imputed_value_int64s", AttrKind::integers), float_attr("replaced_value_float", 0),
              int_attr("replaced_value_int64", 0)};
  op.mapping = Mapping::one_to_one;
  op.forward = same_as_first;
  op.eval = eval_imputer;
  op.samples = {{"$(f32[2, 2]{nan, 1, 2, nan}) {imputed_value_floats = [7.0, 8.0], replaced_value_float = nan}",
                 "f32[2, 2]{7, 1, 2, 8}"},
                {"$(i64[3]{0, 1, 0}) {imputed_value_int64s = [5]}", "i64[3]{5, 1, 5}"},
                {"$(f32[0, 2]) {imputed_value_floats = [1.0]}", "f32[0, 2]"},
                {"$(f32[1, 3]{0, 0, 0}) {imputed_value_floats = [1.0, 2.0]}", "error: 2 elements for 3 features"},
                {"$(f32[1]) {imputed_value_int64s = [1]}", "error: 'imputed_value_floats' is needed"}};
  return op;
}

OpDef normalizer() {
  OpDef op = record("normalizer", "Normalizer", "each row divided by its norm");
  op.attrs = {string_attr("norm", "MAX")};
  op.mapping = Mapping::many_to_many;
  op.eval = eval_normalizer;
  op.samples = {{"$(f32[2, 2]{1, -2, 0, 0})", "f32[2, 2]{0.5, -1, 0, 0}"},
                {"$(i64[2]{3, 4}) {norm = \"L2\"}", "f32[2]{0.6, 0.8}"},
                {"$(f32[1, 2]{1, 3}) {norm = \"L1\"}", "f32[1, 2]{0.25, 0.75}"},
                {"$(f32[0, 2])", "f32[0, 2]"},
                {"$(f32[2]) {norm = \"L3\"}", "error: must be MAX, L1 or L2"},
                {"$(f32[1, 1, 1])", "error: neither [C] nor [N, C]"}};
  return op;
}

OpDef scaler() {
  OpDef op = record("scaler", "Scaler", "y = (x − offset) · scale, per feature or for all");
  op.attrs = {optional_attr("offset", AttrKind::reals), optional_attr("scale", AttrKind::reals)};
  op.mapping = Mapping::one_to_one;
  op.eval = eval_scaler;
  op.samples = {{"$(f32[2, 2]{1, 2, 3, 4}) {offset = [1.0, 2.0], scale = [2.0, 0.5]}", "f32[2, 2]{0, 0, 4, 1}"},
                {"$(i64[2]{3, 5}) {offset = [1.0]}", "f32[2]{2, 4}"},
                {"$(f32[0, 3])", "f32[0, 3]"},
                {"$(f32[1, 3]) {scale = [1.0, 2.0]}", "error: 2 elements for 3 features"}};
  return op;
}

}  // namespace

std::vector<OpDef> ml_features_family() { return {binarizer(), imputer(), normalizer(), scaler()}; }

}  // namespace selkie::ops
