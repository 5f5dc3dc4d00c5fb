// Feature preparation of ai.onnx.ml: ArrayFeatureExtractor, Binarizer, FeatureVectorizer, Imputer, Normalizer,
// OneHotEncoder, Scaler.
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

void extract(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  std::vector<int64_t> picks = ints_of(e.tensor(1));
  if (x.rank() == 0) fail("the data is a scalar");
  int64_t width = features(x);
  for (int64_t pick : picks)
    if (pick < 0 || pick >= width) fail("index {} is outside 0..{}", pick, width - 1);
  Dims dims = x.dims();
  dims.back() = static_cast<int64_t>(picks.size());
  if (x.rank() == 1) dims.insert(dims.begin(), 1);
  Tensor out(x.dtype(), std::move(dims));
  int64_t rows = width == 0 ? 0 : x.count() / width;
  dispatch_storage(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = out.mutable_data<T>();
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t pick : picks) *to++ = x.data<T>()[row * width + pick];
  });
  e.set(0, std::move(out));
}

void vectorize(EvalContext& e) {
  std::vector<int64_t> widths = ints_of(e, "inputdimensions");
  if (e.operand_count() == 0) fail("no operands are given");
  if (!widths.empty() && widths.size() != e.operand_count())
    fail("attribute 'inputdimensions' has {} elements for {} operands", widths.size(), e.operand_count());
  std::vector<Tensor> parts;
  for (size_t i = 0; i < e.operand_count(); ++i) {
    Rows rows = rows_of(e.tensor(i));
    int64_t width = widths.empty() ? rows.width : widths[i];
    Tensor part(DType::f32, {rows.count, width});
    for (int64_t r = 0; r < rows.count; ++r)
      for (int64_t c = 0; c < std::min(width, rows.width); ++c)
        part.mutable_data<float>()[r * width + c] = static_cast<float>(rows[r][static_cast<size_t>(c)]);
    parts.push_back(std::move(part));
  }
  e.set(0, concat(parts, 1));
}

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

void eval_one_hot(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  bool text = x.dtype() == DType::str;
  Tensor keys = list_tensor(e, text ? "cats_strings" : "cats_int64s");
  if (keys.count() == 0)
    fail("attribute '{}' is needed for elements of type {}", text ? "cats_strings" : "cats_int64s", name(x.dtype()));
  std::vector<int64_t> places(static_cast<size_t>(keys.count()));
  for (size_t i = 0; i < places.size(); ++i) places[i] = static_cast<int64_t>(i);
  Tensor wanted = text ? x : narrow<int64_t>(widen<int64_t>(x), DType::i64, x.dims());
  Tensor found = look_up(wanted, keys, Tensor::of_i64(places), Tensor::scalar_i64(-1));
  Dims dims = x.dims();
  dims.push_back(keys.count());
  Tensor out(DType::f32, std::move(dims));
  for (int64_t i = 0; i < x.count(); ++i) {
    int64_t place = found.data<int64_t>()[i];
    if (place >= 0)
      out.mutable_data<float>()[i * keys.count() + place] = 1;
    else if (e.attr_int("zeros") == 0)
      fail("element {} is none of the categories", i);
  }
  e.set(0, std::move(out));
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
  return op;
}

OpDef array_feature_extractor() {
  OpDef op = record("array_feature_extractor", "ArrayFeatureExtractor", "elements of the last axis, picked by indices");
  TypeVar type{"T", ml_numbers | dtypes::string};
  op.operands = {{"x", type}, {"y", i64_tensor}};
  op.results = {{"z", type}};
  op.forward = later::rdp;
  op.mapping = Mapping::shuffle;
  op.eval = extract;
  op.samples = {{"$(f32[2, 3]{0, 1, 2, 3, 4, 5}, i64[2]{2, 0})", "f32[2, 2]{2, 0, 5, 3}"},
                {"$(f32[3], i64[1, 2])", "f32[1, 2]"},
                {"$(f32[0, 3], i64[1])", "f32[0, 1]"},
                {"$(f32[2, 3], i64[1]{3})", "error: index 3 is outside"}};
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

OpDef feature_vectorizer() {
  OpDef op = record("feature_vectorizer", "FeatureVectorizer", "the operands' columns side by side, as f32");
  op.operands = {{"x", {"T1", ml_numbers}, variadic}};
  op.attrs = {optional_attr("inputdimensions", AttrKind::integers)};
  op.forward = later::rdp;
  op.mapping = Mapping::shuffle;
  op.eval = vectorize;
  op.samples = {{"$(i64[2, 1]{1, 2}, i64[2, 2]{3, 4, 5, 6}) {inputdimensions = [1, 2]}", "f32[2, 3]{1, 3, 4, 2, 5, 6}"},
                {"$(f32[2])", "f32[1, 2]"},
                {"$(f32[0, 2], f32[0, 1])", "f32[0, 3]"},
                {"$(f32[1, 1], f32[2, 1])", "error: differ outside axis 1"},
                {"$(f32[2]) {inputdimensions = [1, 1]}", "error: 2 elements for 1 operands"}};
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

OpDef one_hot_encoder() {
  OpDef op = record("one_hot_encoder", "OneHotEncoder", "for each element a row of zeros with a 1 at its category");
  op.operands = {{"x", {"T", ml_numbers | dtypes::string}}};
  op.attrs = {optional_attr("cats_int64s", AttrKind::integers), optional_attr("cats_strings", AttrKind::texts),
              int_attr("zeros", 1)};
  op.forward = later::rdp;
  op.mapping = Mapping::one_to_many;
  op.eval = eval_one_hot;
  op.samples = {{"$(f32[3]{2.5, 5, 7}) {cats_int64s = [5, 2]}", "f32[3, 2]{0, 1, 1, 0, 0, 0}"},
                {"$(str[1, 1]{\"b\"}) {cats_strings = [\"a\", \"b\"]}", "f32[1, 1, 2]{0, 1}"},
                {"$(i64[0]) {cats_int64s = [1]}", "f32[0, 1]"},
                {"$(i64[1]{3}) {cats_int64s = [1], zeros = 0}", "error: none of the categories"},
                {"$(i64[1]) {cats_strings = [\"a\"]}", "error: 'cats_int64s' is needed"}};
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

std::vector<OpDef> ml_features_family() {
  return {array_feature_extractor(), binarizer(), feature_vectorizer(), imputer(), normalizer(),
          one_hot_encoder(),         scaler()};
}

}  // namespace selkie::ops
