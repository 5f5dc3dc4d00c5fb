// Maps of ai.onnx.ml: CastMap, DictVectorizer, ZipMap.
#include <algorithm>
#include <charconv>
#include <numeric>

#include "ops/support/blank.h"
#include "ops/support/ml.h"

namespace selkie::ops {
namespace {

constexpr TypeVar map_type{"T1", dtypes::all};

std::vector<std::string> as_texts(const Tensor& t) {
  if (t.dtype() == DType::str) return widen<std::string>(t);
  std::vector<std::string> out;
  for (double v : widen<double>(t)) out.push_back(fmt::format("{}", static_cast<float>(v)));
  return out;
}

std::vector<double> as_numbers(const Tensor& t) {
  if (t.dtype() != DType::str) return widen<double>(t);
  std::vector<double> out;
  for (const std::string& s : t.values<std::string>()) {
    double value = 0;
    auto [end, problem] = std::from_chars(s.data(), s.data() + s.size(), value);
    if (problem != std::errc{} || end != s.data() + s.size()) fail("the value \"{}\" is not a number", s);
    out.push_back(value);
  }
  return out;
}

Tensor cast_values(const Tensor& values, const std::string& to) {
  if (to == "TO_STRING") return narrow<std::string>(as_texts(values), DType::str, values.dims());
  if (to == "TO_FLOAT") return narrow<double>(as_numbers(values), DType::f32, values.dims());
  if (to == "TO_INT64") return narrow<double>(as_numbers(values), DType::i64, values.dims());
  fail("attribute 'cast_to' is \"{}\", but must be TO_FLOAT, TO_STRING or TO_INT64", to);
}

void cast_map(EvalContext& e) {
  const Map& map = e.operand(0).map();
  const std::string& form = e.attr_string("map_form");
  if (map.keys.dtype() != DType::i64) fail("the map's keys are of type {}, but must be i64", name(map.keys.dtype()));
  if (form != "DENSE" && form != "SPARSE") fail("attribute 'map_form' is \"{}\", but must be DENSE or SPARSE", form);
  Tensor values = cast_values(map.values, e.attr_string("cast_to"));
  if (form == "DENSE") return e.set(0, values.reshaped({1, values.count()}));
  Tensor out(values.dtype(), {1, e.attr_int("max_map")});
  dispatch_storage(values.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < values.count(); ++i) {
      int64_t key = map.keys.data<int64_t>()[i];
      if (key < 0 || key >= out.count()) fail("key {} is outside 0..{}", key, out.count() - 1);
      out.mutable_data<T>()[key] = values.data<T>()[i];
    }
  });
  e.set(0, std::move(out));
}

void dict_vectorizer(EvalContext& e) {
  const Map& map = e.operand(0).map();
  bool text = map.keys.dtype() == DType::str;
  Tensor vocabulary = list_tensor(e, text ? "string_vocabulary" : "int64_vocabulary");
  if (vocabulary.count() == 0)
    fail("attribute '{}' is needed for the map's keys", text ? "string_vocabulary" : "int64_vocabulary");
  std::vector<int64_t> places(static_cast<size_t>(vocabulary.count()));
  std::iota(places.begin(), places.end(), int64_t{0});
  Tensor found = look_up(map.keys, vocabulary, Tensor::of_i64(places), Tensor::scalar_i64(-1));
  Tensor out(map.values.dtype(), {vocabulary.count()});
  dispatch_storage(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < found.count(); ++i) {
      int64_t place = found.data<int64_t>()[i];
      if (place < 0) fail("key {} of the map is not in the vocabulary", i);
      out.mutable_data<T>()[place] = map.values.data<T>()[i];
    }
  });
  e.set(0, std::move(out));
}

void zip_map(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  if (x.rank() != 1 && x.rank() != 2) fail("shape {} is neither [C] nor [N, C]", to_string(x.dims()));
  bool text = e.has_attr("classlabels_strings");
  if (text == e.has_attr("classlabels_int64s")) fail("one of 'classlabels_strings' and 'classlabels_int64s' is needed");
  Tensor keys = list_tensor(e, text ? "classlabels_strings" : "classlabels_int64s");
  int64_t width = x.dim(x.rank() - 1);
  if (keys.count() != width) fail("{} labels do not fit {} columns", keys.count(), width);
  std::vector<size_t> order(static_cast<size_t>(width));
  std::iota(order.begin(), order.end(), size_t{0});
  dispatch_wide(keys.dtype(), [&](auto tag) {
    using K = typename decltype(tag)::type;
    if constexpr (std::is_same_v<K, std::string> || std::is_same_v<K, int64_t>) {
      std::vector<K> list = widen<K>(keys);
      std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return list[a] < list[b]; });
      std::vector<K> sorted;
      for (size_t i : order) sorted.push_back(list[i]);
      if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) fail("a label is given twice");
      keys = narrow<K>(sorted, keys.dtype(), keys.dims());
    }
  });
  Sequence out;
  int64_t rows = x.rank() == 1 ? 1 : x.dim(0);
  for (int64_t row = 0; row < rows; ++row) {
    Tensor values(DType::f32, {width});
    for (size_t i = 0; i < order.size(); ++i)
      values.mutable_data<float>()[i] = x.data<float>()[row * width + static_cast<int64_t>(order[i])];
    out.items.emplace_back(Map{keys, values});
  }
  e.set(0, std::move(out));
}

// The values of a map are as many as its keys, which only the run tells.
std::vector<Type> forward_cast_map(const ForwardContext& c) {
  const std::string& to = c.attr_string("cast_to");
  DType dtype = to == "TO_STRING" ? DType::str : to == "TO_INT64" ? DType::i64 : DType::f32;
  bool sparse = c.attr_string("map_form") == "SPARSE";
  return {Type::tensor(dtype, SymDims{c.constant(1), sparse ? c.constant(c.attr_int("max_map")) : c.unknown(0, 1)})};
}

std::vector<Type> forward_dict_vectorizer(const ForwardContext& c) {
  const Type& map = c.type(0);
  if (map.kind != Type::Kind::map || !map.parts[0].is_tensor()) return {Type{}};
  size_t size = map.dtype == DType::str ? list_size<std::string>(c, "string_vocabulary")
                                        : list_size<int64_t>(c, "int64_vocabulary");
  return {Type::tensor(map.parts[0].dtype, SymDims{c.constant(static_cast<int64_t>(size))})};
}

std::vector<Type> forward_zip_map(const ForwardContext& c) {
  DType key = c.find_attr("classlabels_strings") != nullptr ? DType::str : DType::i64;
  return {Type::seq(Type::map(key, Type::tensor(DType::f32)))};
}

// There is a column for each label.
void backward_zip_map(BackwardContext& c) {
  if (sym::Expr columns = row_dims(c, 0).width)
    c.equal(columns, c.constant(static_cast<int64_t>(label_count(c, "classlabels_int64s", "classlabels_strings"))));
}

OpDef record(std::string_view name, std::string_view onnx, std::string_view doc) {
  OpDef op = blank_record();
  op.name = name;
  op.onnx = {ml_domain, onnx, {1}};
  op.doc = doc;
  op.backward = absent("maps have no dims");
  op.lower = absent("maps and strings are handled by the reference evaluator");
  op.grad = absent("lookups have no derivative");
  return op;
}

OpDef cast_map_record() {
  OpDef op = record("cast_map", "CastMap", "a map's values as a row, in the order of its keys or at them");
  op.operands = {{"x", map_type, required, Container::map}};
  op.results = {{"y", {"T2", DTypeSet{DType::str, DType::f32, DType::i64}}}};
  op.attrs = {string_attr("cast_to", "TO_FLOAT"), string_attr("map_form", "DENSE"), int_attr("max_map", 1)};
  op.dynamism = edo({"x"});
  op.forward = forward_cast_map;
  op.eval = cast_map;
  op.samples = {{"$(map(i64[2]{1, 3}, f32[2]{5, 6}))", "f32[1, 2]{5, 6}"},
                {"$(map(i64[2]{1, 3}, str[2]{\"5\", \"-6.5\"})) {map_form = \"SPARSE\", max_map = 4}",
                 "f32[1, 4]{0, 5, 0, -6.5}"},
                {"$(map(i64[0], f32[0])) {cast_to = \"TO_STRING\"}", "str[1, 0]"},
                {"$(map(i64[1]{4}, f32[1])) {map_form = \"SPARSE\"}", "error: key 4 is outside"},
                {"$(map(i64[1]{4}, str[1]{\"x\"}))", "error: not a number"}};
  return op;
}

OpDef dict_vectorizer_record() {
  OpDef op =
      record("dict_vectorizer", "DictVectorizer", "a map's values at the places that a vocabulary gives its keys");
  op.operands = {{"x", map_type, required, Container::map}};
  op.results = {{"y", {"T2", DTypeSet{DType::str, DType::f32, DType::f64, DType::i64}}}};
  op.attrs = {optional_attr("int64_vocabulary", AttrKind::integers),
              optional_attr("string_vocabulary", AttrKind::texts)};
  op.forward = forward_dict_vectorizer;
  op.eval = dict_vectorizer;
  op.samples = {{"$(map(str[2]{\"a\", \"c\"}, i64[2]{4, 8})) {string_vocabulary = [\"a\", \"c\", \"b\", \"z\"]}",
                 "i64[4]{4, 8, 0, 0}"},
                {"$(map(i64[0], f32[0])) {int64_vocabulary = [7]}", "f32[1]{0}"},
                {"$(map(i64[1]{1}, f32[1])) {int64_vocabulary = [7]}", "error: not in the vocabulary"},
                {"$(map(i64[1]{1}, f32[1])) {string_vocabulary = [\"a\"]}", "error: 'int64_vocabulary' is needed"}};
  return op;
}

OpDef zip_map_record() {
  OpDef op = record("zip_map", "ZipMap", "a map per row, from labels to the row's elements");
  op.operands = {{"x", {"f32", dtypes::f32}}};
  op.results = {{"z", any_tensor, required, Container::seq}};
  op.attrs = {optional_attr("classlabels_int64s", AttrKind::integers),
              optional_attr("classlabels_strings", AttrKind::texts)};
  op.forward = forward_zip_map;
  op.backward = backward_zip_map;
  op.eval = zip_map;
  op.samples = {{"$(f32[2, 2]{1, 2, 3, 4}) {classlabels_strings = [\"b\", \"a\"]}",
                 "seq(map(str[2]{\"a\", \"b\"}, f32[2]{2, 1}), map(str[2]{\"a\", \"b\"}, f32[2]{4, 3}))"},
                {"$(f32[1]{5}) {classlabels_int64s = [7]}", "seq(map(i64[1]{7}, f32[1]{5}))"},
                {"$(f32[0, 1]) {classlabels_int64s = [7]}", "seq()"},
                {"$(f32[1, 2]) {classlabels_int64s = [7]}", "error: 1 labels do not fit 2 columns"},
                {"$(f32[1, 2]) {classlabels_int64s = [7, 7]}", "error: given twice"}};
  return op;
}

}  // namespace

std::vector<OpDef> ml_maps_family() { return {cast_map_record(), dict_vectorizer_record(), zip_map_record()}; }

}  // namespace selkie::ops
