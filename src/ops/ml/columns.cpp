// Columns of features of ai.onnx.ml: ArrayFeatureExtractor picks them, FeatureVectorizer joins them, OneHotEncoder
// makes them.
#include "ops/support/blank.h"
#include "ops/support/dims.h"
#include "ops/support/ml.h"

namespace selkie::ops {
namespace {

void extract(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  std::vector<int64_t> picks = ints_of(e.tensor(1));
  if (x.rank() == 0) fail("the data is a scalar");
  int64_t width = x.dim(x.rank() - 1);
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

std::vector<Type> forward_extract(const ForwardContext& c) {
  if (!c.dims(0) || c.rank(0) == 0) return {Type::tensor(c.dtype(0))};
  SymDims dims = *c.dims(0);
  if (dims.size() == 1) dims.insert(dims.begin(), c.constant(1));
  dims.back() = c.dims(1) ? product(c, *c.dims(1)) : c.unknown(0, dims.size() - 1);
  return {Type::tensor(c.dtype(0), dims)};
}

// A vector gives a matrix, as a matrix does.
void backward_extract(BackwardContext& c) {
  if (c.result_dims(0) && c.result_dims(0)->size() > 2) c.set_rank(0, c.result_dims(0)->size());
}

std::vector<Type> forward_vectorize(const ForwardContext& c) {
  const ir::Attribute* given = c.find_attr("inputdimensions");
  sym::Expr rows;
  sym::Expr width = c.constant(0);
  for (size_t i = 0; i < c.operand_count(); ++i) {
    RowDims x = row_dims(c, i);
    if (!rows) rows = x.count;
    width = width && x.width ? width + x.width : sym::Expr();
  }
  if (given != nullptr && !std::get<std::vector<int64_t>>(*given).empty()) {
    width = c.constant(0);
    for (int64_t w : std::get<std::vector<int64_t>>(*given)) width = width + w;
  }
  return {Type::tensor(DType::f32, SymDims{rows ? rows : c.unknown(0, 0), width ? width : c.unknown(0, 1)})};
}

// All operands have as many rows as the result, which only a matrix has if they are not 1.
void backward_vectorize(BackwardContext& c) {
  if (!c.result_dims(0) || c.result_dims(0)->size() != 2) return;
  sym::Expr rows = c.result_dims(0)->front();
  for (size_t i = 0; i < c.operand_count(); ++i) {
    if (c.excludes(rows, 1)) c.set_rank(i, 2);
    if (sym::Expr own = row_dims(c, i).count) c.equal(own, rows);
  }
}

std::vector<Type> forward_one_hot(const ForwardContext& c) {
  if (!c.dims(0)) return {Type::tensor(DType::f32)};
  size_t categories =
      c.dtype(0) == DType::str ? list_size<std::string>(c, "cats_strings") : list_size<int64_t>(c, "cats_int64s");
  SymDims dims = *c.dims(0);
  dims.push_back(c.constant(static_cast<int64_t>(categories)));
  return {Type::tensor(DType::f32, dims)};
}

void backward_one_hot(BackwardContext& c) {
  if (c.result_dims(0) && !c.result_dims(0)->empty())
    c.set_dims(0, std::span(*c.result_dims(0)).first(c.result_dims(0)->size() - 1));
}

OpDef record(std::string_view name, std::string_view onnx, std::string_view doc, Mapping mapping) {
  OpDef op = blank_record(mapping);
  op.name = name;
  op.onnx = {ml_domain, onnx, {1}};
  op.doc = doc;
  op.results = {{"y", {"f32", dtypes::f32}}};
  return op;
}

OpDef array_feature_extractor() {
  OpDef op = record("array_feature_extractor", "ArrayFeatureExtractor", "elements of the last axis, picked by indices",
                    Mapping::shuffle);
  TypeVar type{"T", ml_numbers | dtypes::string};
  op.operands = {{"x", type}, {"y", i64_tensor}};
  op.results = {{"z", type}};
  op.forward = forward_extract;
  op.backward = backward_extract;
  op.eval = extract;
  op.samples = {{"$(f32[2, 3]{0, 1, 2, 3, 4, 5}, i64[2]{2, 0})", "f32[2, 2]{2, 0, 5, 3}"},
                {"$(f32[3], i64[1, 2])", "f32[1, 2]"},
                {"$(f32[0, 3], i64[1])", "f32[0, 1]"},
                {"$(f32[1, 2, 3], i64[0])", "f32[1, 2, 0]"},
                {"$(f32[2, 3], i64[1]{3})", "error: index 3 is outside"}};
  return op;
}

OpDef feature_vectorizer() {
  OpDef op =
      record("feature_vectorizer", "FeatureVectorizer", "the operands' columns side by side, as f32", Mapping::shuffle);
  op.operands = {{"x", {"T1", ml_numbers}, variadic}};
  op.attrs = {optional_attr("inputdimensions", AttrKind::integers)};
  op.forward = forward_vectorize;
  op.backward = backward_vectorize;
  op.eval = vectorize;
  op.samples = {{"$(i64[2, 1]{1, 2}, i64[2, 2]{3, 4, 5, 6}) {inputdimensions = [1, 2]}", "f32[2, 3]{1, 3, 4, 2, 5, 6}"},
                {"$(f32[2])", "f32[1, 2]"},
                {"$(f32[0, 2], f32[0, 1])", "f32[0, 3]"},
                {"$(f32[2], f32[1, 0]) {inputdimensions = [1, 3]}", "f32[1, 4]"},
                {"$(f32[1, 1], f32[2, 1])", "error: differ outside axis 1"},
                {"$(f32[2]) {inputdimensions = [1, 1]}", "error: 2 elements for 1 operands"}};
  return op;
}

OpDef one_hot_encoder() {
  OpDef op = record("one_hot_encoder", "OneHotEncoder", "for each element a row of zeros with a 1 at its category",
                    Mapping::one_to_many);
  op.operands = {{"x", {"T", ml_numbers | dtypes::string}}};
  op.attrs = {optional_attr("cats_int64s", AttrKind::integers), optional_attr("cats_strings", AttrKind::texts),
              int_attr("zeros", 1)};
  op.forward = forward_one_hot;
  op.backward = backward_one_hot;
  op.eval = eval_one_hot;
  op.samples = {{"$(f32[3]{2.5, 5, 7}) {cats_int64s = [5, 2]}", "f32[3, 2]{0, 1, 1, 0, 0, 0}"},
                {"$(str[1, 1]{\"b\"}) {cats_strings = [\"a\", \"b\"]}", "f32[1, 1, 2]{0, 1}"},
                {"$(i64[0]) {cats_int64s = [1]}", "f32[0, 1]"},
                {"$(i64[]{1}) {cats_int64s = [1]}", "f32[1]{1}"},
                {"$(i64[1]{3}) {cats_int64s = [1], zeros = 0}", "error: none of the categories"},
                {"$(i64[1]) {cats_strings = [\"a\"]}", "error: 'cats_int64s' is needed"}};
  return op;
}

}  // namespace

std::vector<OpDef> ml_columns_family() { return {array_feature_extractor(), feature_vectorizer(), one_hot_encoder()}; }

}  // namespace selkie::ops
