// Lookups of ai.onnx.ml: CategoryMapper, LabelEncoder.
#include <numeric>

#include "ops/support/blank.h"
#include "ops/support/ml.h"

namespace selkie::ops {
namespace {

Tensor one_text(const std::string& text) { return narrow<std::string>(std::vector<std::string>{text}, DType::str, {}); }
Tensor one_float(float value) { return Tensor::from<float>(DType::f32, {}, {&value, 1}); }

void category_mapper(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  Tensor ints = list_tensor(e, "cats_int64s");
  Tensor texts = list_tensor(e, "cats_strings");
  if (x.dtype() == DType::str)
    e.set(0, look_up(x, texts, ints, Tensor::scalar_i64(e.attr_int("default_int64"))));
  else
    e.set(0, look_up(x, ints, texts, one_text(e.attr_string("default_string"))));
}

// The one of several attributes that is given, as a vector tensor.
Tensor given(const EvalContext& e, std::initializer_list<std::string_view> names, std::string_view tensor_name) {
  std::vector<Tensor> found;
  for (std::string_view name : names)
    if (e.has_attr(name)) found.push_back(list_tensor(e, name));
  if (e.has_attr(tensor_name)) found.push_back(e.attr<Tensor>(tensor_name));
  if (found.size() != 1) fail("one attribute like '{}' is needed, but {} are given", tensor_name, found.size());
  return found[0];
}

Tensor default_for(const EvalContext& e, DType dtype) {
  if (e.has_attr("default_tensor")) return e.attr<Tensor>("default_tensor");
  if (dtype == DType::str) return one_text(e.attr_string("default_string"));
  if (dtype == DType::f32) return one_float(e.attr_float("default_float"));
  if (dtype == DType::i64) return Tensor::scalar_i64(e.attr_int("default_int64"));
  return narrow<double>(std::vector<double>{is_float(dtype) ? -0.0 : -1.0}, dtype, {});
}

void label_encoder(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  if (e.has_attr("classes_strings")) {
    Tensor classes = list_tensor(e, "classes_strings");
    std::vector<int64_t> numbers(static_cast<size_t>(classes.count()));
    std::iota(numbers.begin(), numbers.end(), int64_t{0});
    Tensor ints = Tensor::of_i64(numbers);
    return e.set(0, x.dtype() == DType::str ? look_up(x, classes, ints, default_for(e, DType::i64))
                                            : look_up(x, ints, classes, default_for(e, DType::str)));
  }
  Tensor keys = given(e, {"keys_floats", "keys_int64s", "keys_strings"}, "keys_tensor");
  Tensor values = given(e, {"values_floats", "values_int64s", "values_strings"}, "values_tensor");
  e.set(0, look_up(x, keys, values, default_for(e, values.dtype())));
}

std::vector<Type> forward_category_mapper(const ForwardContext& c) {
  return {Type::tensor(c.dtype(0) == DType::str ? DType::i64 : DType::str, c.dims(0))};
}

std::vector<Type> forward_label_encoder(const ForwardContext& c) {
  auto given = [&](std::string_view name) { return c.find_attr(name) != nullptr; };
  DType dtype = DType::str;
  if (given("classes_strings"))
    dtype = c.dtype(0) == DType::str ? DType::i64 : DType::str;
  else if (given("values_tensor"))
    dtype = std::get<Tensor>(*c.find_attr("values_tensor")).dtype();
  else if (given("values_floats"))
    dtype = DType::f32;
  else if (given("values_int64s"))
    dtype = DType::i64;
  return {Type::tensor(dtype, c.dims(0))};
}

OpDef record(std::string_view name, std::string_view onnx, std::string_view doc) {
  OpDef op = blank_record(Mapping::one_to_one);
  op.name = name;
  op.onnx = {ml_domain, onnx, {1}};
  op.doc = doc;
  op.backward = backward_same;
  op.lower = absent("lookups, which are mostly of strings, are handled by the reference evaluator");
  op.grad = absent("lookups have no derivative");
  return op;
}

OpDef category_mapper_record() {
  OpDef op = record("category_mapper", "CategoryMapper", "strings to integers by a list of pairs, or back");
  op.operands = {{"x", {"T1", DTypeSet{DType::str, DType::i64}}}};
  op.results = {{"y", {"T2", DTypeSet{DType::str, DType::i64}}}};
  op.attrs = {optional_attr("cats_int64s", AttrKind::integers), optional_attr("cats_strings", AttrKind::texts),
              int_attr("default_int64", -1), string_attr("default_string", "_Unused")};
  op.forward = forward_category_mapper;
  op.eval = category_mapper;
  op.samples = {{"$(str[2]{\"b\", \"c\"}) {cats_int64s = [1, 2], cats_strings = [\"a\", \"b\"]}", "i64[2]{2, -1}"},
                {"$(i64[2]{1, 9}) {cats_int64s = [1, 2], cats_strings = [\"a\", \"b\"]}", "str[2]{\"a\", \"_Unused\"}"},
                {"$(i64[0, 2]) {cats_int64s = [1], cats_strings = [\"a\"]}", "str[0, 2]"},
                {"$(i64[1]) {cats_int64s = [1]}", "error: do not fit"}};
  return op;
}

OpDef label_encoder_record() {
  const DTypeSet types = ml_numbers | DTypeSet{DType::i16, DType::str};
  OpDef op = record("label_encoder", "LabelEncoder", "each element replaced by the value that belongs to it as a key");
  op.onnx.versions = {1, 2, 4};
  op.operands = {{"x", {"T1", types}}};
  op.results = {{"y", {"T2", types}}};
  // classes_strings is version 1's: keys or values 0, 1, 2, … belong to it, whichever the operand is.
  op.attrs = {optional_attr("classes_strings", AttrKind::texts),
              float_attr("default_float", -0.0f),
              int_attr("default_int64", -1),
              string_attr("default_string", "_Unused"),
              optional_attr("default_tensor", AttrKind::tensor),
              optional_attr("keys_floats", AttrKind::reals),
              optional_attr("keys_int64s", AttrKind::integers),
              optional_attr("keys_strings", AttrKind::texts),
              optional_attr("keys_tensor", AttrKind::tensor),
              optional_attr("values_floats", AttrKind::reals),
              optional_attr("values_int64s", AttrKind::integers),
              optional_attr("values_strings", AttrKind::texts),
              optional_attr("values_tensor", AttrKind::tensor)};
  op.forward = forward_label_encoder;
  op.eval = label_encoder;
  op.samples = {
      {"$(str[3]{\"Dori\", \"Amy\", \"Sally\"}) {keys_strings = [\"Amy\", \"Sally\"], values_int64s = [5, 6]}",
       "i64[3]{-1, 5, 6}"},
      {"$(f32[2]{nan, 1}) {keys_floats = [nan, 1.0, 1.0], values_floats = [1.0, 2.0, 3.0]}", "f32[2]{1, 3}"},
      {"$(f32[2]{1, 2}) {keys_floats = [1.0], values_floats = [4.0], default_float = 9.0}", "f32[2]{4, 9}"},
      {"$(i64[2]{1, 5}) {classes_strings = [\"a\", \"b\"]}", "str[2]{\"b\", \"_Unused\"}"},
      {"$(i64[0]) {keys_int64s = [1], values_floats = [1.0]}", "f32[0]"},
      {"$(i64[1]) {keys_strings = [\"a\"], values_int64s = [1]}", "error: the keys are of str"},
      {"$(i64[1]) {keys_int64s = [1]}", "error: 0 are given"},
      {"$(i64[1]) {keys_int64s = [1], values_int64s = [1, 2]}", "error: do not fit"}};
  return op;
}

}  // namespace

std::vector<OpDef> ml_lookups_family() { return {category_mapper_record(), label_encoder_record()}; }

}  // namespace selkie::ops
