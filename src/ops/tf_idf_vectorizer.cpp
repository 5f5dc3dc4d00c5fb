// TfIdfVectorizer: counts of known n-grams, also with skipped items between their parts.
#include <map>

#include "ops/support/blank.h"

namespace selkie::ops {
namespace {

struct Settings {
  int64_t shortest;
  int64_t longest;
  int64_t skips;
  const std::vector<int64_t>& starts;   // where the n-grams of each length start in the pool
  const std::vector<int64_t>& columns;  // of the result, one per n-gram
};

Settings settings_of(const EvalContext& e) {
  Settings s{e.attr_int("min_gram_length"), e.attr_int("max_gram_length"), e.attr_int("max_skip_count"),
             e.attr_ints("ngram_counts"), e.attr_ints("ngram_indexes")};
  if (s.shortest < 1 || s.longest < s.shortest)
    fail("n-gram lengths {}..{} are no range of positive numbers", s.shortest, s.longest);
  if (s.skips < 0) fail("attribute 'max_skip_count' is {}, but must not be negative", s.skips);
  if (s.columns.empty()) fail("attribute 'ngram_indexes' is empty");
  for (int64_t column : s.columns)
    if (column < 0) fail("attribute 'ngram_indexes' has {}, which is negative", column);
  s.longest = std::min<int64_t>(s.longest, static_cast<int64_t>(s.starts.size()));
  return s;
}

// The known n-grams, each with its place in `ngram_indexes`.
template <class T>
std::map<std::vector<T>, size_t> read_pool(const std::vector<T>& pool, const Settings& s) {
  std::map<std::vector<T>, size_t> known;
  size_t id = 0;
  for (size_t i = 0; i < s.starts.size(); ++i) {
    auto end = i + 1 < s.starts.size() ? s.starts[i + 1] : static_cast<int64_t>(pool.size());
    auto length = static_cast<int64_t>(i) + 1;
    if (s.starts[i] < 0 || end < s.starts[i] || end > static_cast<int64_t>(pool.size()) ||
        (end - s.starts[i]) % length != 0)
      fail("n-grams of length {} at {}..{} do not fit a pool of {} items", length, s.starts[i], end, pool.size());
    for (auto at = pool.begin() + s.starts[i]; at != pool.begin() + end; at += length, ++id)
      if (length >= s.shortest && length <= s.longest) known[std::vector<T>(at, at + length)] = id;
  }
  if (id != s.columns.size()) fail("the pool holds {} n-grams, but attribute 'ngram_indexes' {}", id, s.columns.size());
  return known;
}

// How often each known n-gram occurs in a row. Single items have no gaps, so they count once whatever may be skipped.
template <class T>
std::vector<double> count_row(std::span<const T> row, const std::map<std::vector<T>, size_t>& known,
                              const Settings& s) {
  std::vector<double> counts(s.columns.size(), 0.0);
  auto size = static_cast<int64_t>(row.size());
  for (int64_t length = s.shortest; length <= s.longest; ++length) {
    for (int64_t step = 1; step - 1 <= s.skips; ++step) {
      if ((length == 1 && step > 1) || step > size || (length - 1) > (size - 1) / step) break;
      for (int64_t start = 0; start + step * (length - 1) < size; ++start) {
        std::vector<T> gram;
        for (int64_t i = 0; i < length; ++i) gram.push_back(row[static_cast<size_t>(start + i * step)]);
        if (auto found = known.find(gram); found != known.end()) counts[found->second] += 1;
      }
    }
  }
  return counts;
}

template <class T>
void vectorize(EvalContext& e, const std::vector<T>& pool, const Settings& s) {
  const Tensor& x = e.tensor(0);
  const std::string& mode = e.attr_string("mode");
  bool scaled = mode != "TF" && e.has_attr("weights");
  std::vector<float> weights =
      scaled ? e.attr<std::vector<float>>("weights") : std::vector<float>(s.columns.size(), 1.0f);
  if (weights.size() != s.columns.size()) fail("there are {} weights for {} n-grams", weights.size(), s.columns.size());
  auto known = read_pool(pool, s);
  int64_t width = *std::max_element(s.columns.begin(), s.columns.end()) + 1;
  int64_t rows = x.rank() == 2 ? x.dim(0) : 1;
  size_t items = static_cast<size_t>(x.rank() == 0 ? 1 : x.dim(x.rank() - 1));
  Tensor out(DType::f32, x.rank() == 2 ? Dims{rows, width} : Dims{width});
  std::vector<T> values = widen<T>(x);
  for (int64_t row = 0; row < rows; ++row) {
    std::span<const T> part(values.data() + static_cast<size_t>(row) * items, items);
    std::vector<double> counts = count_row<T>(part, known, s);
    float* to = out.mutable_data<float>() + row * width;
    for (size_t i = 0; i < counts.size(); ++i)
      to[s.columns[i]] += static_cast<float>((mode == "IDF" ? std::min(counts[i], 1.0) : counts[i]) * weights[i]);
  }
  e.set(0, std::move(out));
}

void eval(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  const std::string& mode = e.attr_string("mode");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF")
    fail("attribute 'mode' is \"{}\", but must be TF, IDF or TFIDF", mode);
  if (x.rank() > 2) fail("shape {} is neither [C] nor [N, C]", to_string(x.dims()));
  if (e.has_attr("pool_strings") == e.has_attr("pool_int64s"))
    fail("one of 'pool_strings' and 'pool_int64s' is needed");
  Settings s = settings_of(e);
  if (e.has_attr("pool_strings") != (x.dtype() == DType::str))
    fail("the pool's items are not of the operand's type {}", name(x.dtype()));
  if (x.dtype() == DType::str)
    vectorize<std::string>(e, e.attr<std::vector<std::string>>("pool_strings"), s);
  else
    vectorize<int64_t>(e, e.attr_ints("pool_int64s"), s);
}

std::vector<Type> forward(const ForwardContext& c) {
  if (!c.dims(0)) return {Type::tensor(DType::f32)};
  const std::vector<int64_t>& columns = c.attr_ints("ngram_indexes");
  if (columns.empty()) return {Type::tensor(DType::f32)};
  SymDims dims{c.constant(*std::max_element(columns.begin(), columns.end()) + 1)};
  if (c.dims(0)->size() == 2) dims.insert(dims.begin(), c.dims(0)->front());
  return {Type::tensor(DType::f32, dims)};
}

void backward(BackwardContext& c) {
  if (c.result_dims(0) && c.result_dims(0)->size() == 2) c.set_rank(0, 2);
}

}  // namespace

OpDef tf_idf_vectorizer_op() {
  OpDef op = blank_record();
  op.name = "tf_idf_vectorizer";
  op.onnx = {"", "TfIdfVectorizer", {9}};
  op.doc = "how often each n-gram of a pool occurs in each row, weighted";
  op.operands = {{"x", {"T", DTypeSet{DType::i32, DType::i64, DType::str}}}};
  op.results = {{"y", {"T1", dtypes::f32}}};
  op.attrs = {required_attr("max_gram_length", AttrKind::integer),
              required_attr("max_skip_count", AttrKind::integer),
              required_attr("min_gram_length", AttrKind::integer),
              required_attr("mode", AttrKind::text),
              required_attr("ngram_counts", AttrKind::integers),
              required_attr("ngram_indexes", AttrKind::integers),
              optional_attr("pool_int64s", AttrKind::integers),
              optional_attr("pool_strings", AttrKind::texts),
              optional_attr("weights", AttrKind::reals)};
  op.forward = forward;
  op.backward = backward;
  op.eval = eval;
  op.grad = absent("counts have no derivative");
  op.samples = {
      {"$(i64[5]{1, 2, 1, 3, 2}) {mode = \"TF\", min_gram_length = 1, max_gram_length = 2, max_skip_count = 1, "
       "ngram_counts = [0, 2], "
       "ngram_indexes = [0, 1, 2, 3], pool_int64s = [1, 2, 1, 2, 1, 3]}",
       "f32[4]{2, 2, 2, 1}"},
      {"$(str[2, 2]{\"a\", \"b\", \"b\", \"b\"}) {mode = \"IDF\", min_gram_length = 1, max_gram_length = 1, "
       "max_skip_count = 0, "
       "ngram_counts = [0], ngram_indexes = [1, 0], pool_strings = [\"a\", \"b\"], weights = [2.0, 3.0]}",
       "f32[2, 2]{3, 2, 3, 0}"},
      {"$(i32[0, 2]) {mode = \"TFIDF\", min_gram_length = 1, max_gram_length = 1, max_skip_count = 0, ngram_counts = "
       "[0], "
       "ngram_indexes = [0], pool_int64s = [1]}",
       "f32[0, 1]"},
      {"$(i64[]{1}) {mode = \"TF\", min_gram_length = 1, max_gram_length = 1, max_skip_count = 0, ngram_counts = [0], "
       "ngram_indexes = [0], pool_int64s = [1]}",
       "f32[1]{1}"},
      {"$(i64[2]) {mode = \"TF\", min_gram_length = 1, max_gram_length = 1, max_skip_count = 0, ngram_counts = [0, 9], "
       "ngram_indexes = [0], pool_int64s = [1]}",
       "error: do not fit a pool"},
      {"$(str[2]) {mode = \"TF\", min_gram_length = 1, max_gram_length = 1, max_skip_count = 0, ngram_counts = [0], "
       "ngram_indexes = [0], pool_int64s = [1]}",
       "error: not of the operand's type"}};
  return op;
}

}  // namespace selkie::ops
