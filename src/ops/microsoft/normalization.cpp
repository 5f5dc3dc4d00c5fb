// LayerNormalization, SkipLayerNormalization and EmbedLayerNormalization of com.microsoft.
#include "ops/support/blank.h"
#include "ops/support/dims.h"
#include "ops/support/elementwise.h"
#include "ops/support/lower.h"
#include "ops/support/moments.h"
#include "ops/support/moments_lower.h"

namespace selkie::ops {
namespace {

constexpr TypeVar half_or_single{"T", DTypeSet{DType::f32, DType::f16, DType::bf16}};
constexpr TypeVar statistic{"U", dtypes::f32};

struct Normalized {
  std::vector<double> values;
  std::vector<double> means;
  std::vector<double> inverses;  // of the standard deviations
};

// Rows of `size` elements, each standardised, scaled by gamma and shifted by beta.
Normalized normalize(std::vector<double> x, size_t size, const Tensor& gamma, const Tensor* beta, double epsilon) {
  std::vector<double> scale = widen<double>(gamma);
  std::vector<double> shift = beta != nullptr ? widen<double>(*beta) : std::vector<double>(size, 0.0);
  if (scale.size() != size || shift.size() != size)
    fail("{} scales and {} shifts do not fit rows of {}", scale.size(), shift.size(), size);
  Normalized out{std::move(x), {}, {}};
  for (size_t at = 0; size > 0 && at < out.values.size(); at += size) {
    std::span<double> row = std::span(out.values).subspan(at, size);
    Moments m = standardize(row, epsilon);
    for (size_t i = 0; i < size; ++i) row[i] = row[i] * scale[i] + shift[i];
    out.means.push_back(m.mean);
    out.inverses.push_back(1 / std::sqrt(m.variance + epsilon));
  }
  return out;
}

void eval_layer(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  int64_t axis = normalize_axis(e.attr_int("axis"), x.rank());
  DType stash = e.attr_dtype("stash_type");
  if (!is_float(stash)) fail("attribute 'stash_type' is {}, which is no float", name(stash));
  auto size = static_cast<size_t>(product(x.dims(), axis, x.rank()));
  Normalized y = normalize(widen<double>(x), size, e.tensor(1), optional_tensor(e, 2), e.attr_float("epsilon"));
  Dims dims = x.dims();
  std::fill(dims.begin() + axis, dims.end(), 1);
  y.means.resize(static_cast<size_t>(element_count(dims)), NAN);  // rows without elements have none
  y.inverses.resize(y.means.size(), NAN);
  e.set(0, narrow<double>(y.values, e.tensor(1).dtype(), x.dims()));
  e.set(1, narrow<double>(y.means, stash, dims));
  e.set(2, narrow<double>(y.inverses, stash, dims));
}

void eval_skip(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  if (x.rank() != 2 && x.rank() != 3) fail("shape {} is not of rank 2 or 3", to_string(x.dims()));
  auto plus = [](double a, double b) { return a + b; };
  Tensor sum = map_pairs<double>(x, broadcast_to(e.tensor(1), x.dims()), DType::f64, plus);
  if (e.has(4)) sum = map_pairs<double>(sum, broadcast_to(e.tensor(4), x.dims()), DType::f64, plus);
  auto size = static_cast<size_t>(x.dim(x.rank() - 1));
  Normalized y = normalize(widen<double>(sum), size, e.tensor(2), optional_tensor(e, 3), e.attr_float("epsilon"));
  Dims dims = x.dims();
  dims.back() = 1;
  y.means.resize(static_cast<size_t>(element_count(dims)), NAN);
  y.inverses.resize(y.means.size(), NAN);
  e.set(0, narrow<double>(y.values, x.dtype(), x.dims()));
  e.set(1, narrow<double>(y.means, DType::f32, dims));
  e.set(2, narrow<double>(y.inverses, DType::f32, dims));
  e.set(3, narrow<double>(widen<double>(sum), x.dtype(), x.dims()));
}

// Adds the rows of a table that ids name to rows of `sum`. Ids [1, length] serve every sample.
void add_rows(std::vector<double>& sum, const Tensor& table, const std::vector<int64_t>& ids, std::string_view what) {
  std::vector<double> values = widen<double>(table);
  auto width = static_cast<size_t>(table.dim(1));
  for (size_t i = 0; width > 0 && i < sum.size() / width; ++i) {
    int64_t id = ids[i % ids.size()];
    if (id < 0 || id >= table.dim(0)) fail("{} id {} is outside 0..{}", what, id, table.dim(0) - 1);
    for (size_t j = 0; j < width; ++j) sum[i * width + j] += values[static_cast<size_t>(id) * width + j];
  }
}

void check_table(const EvalContext& e, size_t i, int64_t width) {
  const Tensor& t = e.tensor(i);
  if (t.rank() != 2 || t.dim(1) != width)
    fail("'{}' has shape {}, but must have [n, {}]", e.op().operands[i].name, to_string(t.dims()), width);
}

void check_ids(const EvalContext& e, size_t i, const Dims& dims, bool shared = false) {
  if (!e.has(i) || e.tensor(i).dims() == dims || (shared && e.tensor(i).dims() == Dims{1, dims[1]})) return;
  fail("'{}' has shape {}, but must have {}", e.op().operands[i].name, to_string(e.tensor(i).dims()), to_string(dims));
}

std::vector<int64_t> positions_of(const EvalContext& e, int64_t length) {
  if (e.has(8)) return ints_of(e.tensor(8));
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < length; ++i) positions.push_back(i);
  return positions;
}

void eval_embed(EvalContext& e) {
  const Tensor& ids = e.tensor(0);
  if (ids.rank() != 2) fail("'input_ids' has shape {}, but must be of rank 2", to_string(ids.dims()));
  if (e.has(1) != e.has(4)) fail("'segment_ids' and 'segment_embedding' are only taken together");
  if (e.tensor(2).rank() != 2) fail("'word_embedding' must be of rank 2");
  int64_t width = e.tensor(2).dim(1);
  check_table(e, 3, width);
  check_ids(e, 1, ids.dims());
  check_ids(e, 7, ids.dims());
  check_ids(e, 8, ids.dims(), true);
  Dims dims{ids.dim(0), ids.dim(1), width};
  std::vector<double> sum(static_cast<size_t>(element_count(dims)));
  add_rows(sum, e.tensor(2), ints_of(ids), "word");
  add_rows(sum, e.tensor(3), positions_of(e, ids.dim(1)), "position");
  if (e.has(1)) {
    check_table(e, 4, width);
    add_rows(sum, e.tensor(4), ints_of(e.tensor(1)), "segment");
  }
  DType dtype = e.tensor(2).dtype();
  e.set(0, narrow<double>(
               normalize(sum, static_cast<size_t>(width), e.tensor(5), &e.tensor(6), e.attr_float("epsilon")).values,
               dtype, dims));
  std::vector<int64_t> counts(static_cast<size_t>(ids.dim(0)), 0);
  if (e.has(7)) {
    std::vector<int64_t> mask = ints_of(e.tensor(7));
    for (size_t i = 0; i < mask.size(); ++i) counts[i / static_cast<size_t>(ids.dim(1))] += mask[i] == 1;
  }
  e.set(1, narrow<int64_t>(counts, DType::i32, {ids.dim(0)}));
  e.set(2, narrow<double>(sum, dtype, dims));
}

// The dims of statistics: 1 from an axis on.
Type statistics(const ForwardContext& c, DType dtype, std::optional<SymDims> dims, int64_t axis) {
  if (dims) {
    auto first = normalize_axis(axis, static_cast<int64_t>(dims->size()));
    std::fill(dims->begin() + first, dims->end(), c.constant(1));
  }
  return Type::tensor(dtype, std::move(dims));
}

std::vector<Type> forward_layer(const ForwardContext& c) {
  std::optional<DType> stash = dtype_from_onnx(c.attr_int("stash_type"));
  Type statistic_type = stash ? statistics(c, *stash, c.dims(0), c.attr_int("axis")) : Type{};
  return {Type::tensor(c.dtype(1), c.dims(0)), statistic_type, statistic_type};
}

// Scales and shifts have an element for each of a row.
void backward_layer(BackwardContext& c) {
  backward_same(c);
  if (!c.dims(0)) return;
  const SymDims x = *c.dims(0);
  auto axis = static_cast<size_t>(normalize_axis(c.attr_int("axis"), static_cast<int64_t>(x.size())));
  for (size_t i : {1, 2}) require_count(c, i, product(c, std::span(x).subspan(axis)));
}

std::vector<Type> forward_skip(const ForwardContext& c) {
  Type statistic_type = statistics(c, DType::f32, c.dims(0), -1);
  return {c.type(0), statistic_type, statistic_type, c.type(0)};
}

void backward_skip(BackwardContext& c) {
  backward_same(c);
  if (!c.dims(0) || c.rank(0) == 0) return;
  const SymDims x = *c.dims(0);
  for (size_t i : {1, 4})
    if (c.dims(i)) require_broadcast_to(c, SymDims(*c.dims(i)), x);
  for (size_t i : {2, 3}) require_count(c, i, x.back());
}

std::vector<Type> forward_embed(const ForwardContext& c) {
  SymDims dims = c.unknown_dims(0, 3);
  if (c.dims(0) && c.rank(0) == 2) std::copy_n(c.dims(0)->begin(), 2, dims.begin());
  if (c.dims(2) && c.rank(2) == 2) dims[2] = c.dims(2)->at(1);
  Type sum = Type::tensor(c.dtype(2), dims);
  return {sum, Type::tensor(DType::i32, SymDims{dims[0]}), sum};
}

void backward_embed(BackwardContext& c) {
  c.set_rank(0, 2);
  c.set_rank(2, 2);
  const SymDims ids = *c.dims(0);
  sym::Expr width = c.dims(2)->at(1);
  for (size_t table : {3, 4}) c.set_dims(table, SymDims{sym::Expr(), width});
  for (size_t i : {1, 7}) c.set_dims(i, ids);
  // Position ids of one sample serve all.
  c.set_dims(8, SymDims{sym::Expr(), ids[1]});
  if (c.has(8) && c.excludes(c.dims(8)->at(0), 1)) c.set_dims(8, ids);
  for (size_t i : {5, 6}) require_count(c, i, width);
}

using kir::Value;

// Rows from an axis on, normalised, and scaled and shifted by two operands.
struct RowNorm {
  size_t first;  // of the axes that belong to a row
  size_t scale;
  size_t shift;  // an operand that may be left out
  std::function<Value(const Index&)> element;
};

// The axes of a row, with an index that has all axes.
MomentValues row_moments(const LowerContext& c, const RowNorm& n, const Index& at) {
  auto first = static_cast<std::ptrdiff_t>(n.first);
  SymDims extents(c.dims(0)->begin() + first, c.dims(0)->end());
  return moments_over(c, extents, compute_dtype(c.dtype(0)), [&](const Index& k) {
    Index from(at.begin(), at.begin() + first);
    from.insert(from.end(), k.begin(), k.end());
    return n.element(from);
  });
}

// Parameters have one element for each of a row, under the same dims.
void check_parameters(const LowerContext& c, const RowNorm& n) {
  for (size_t i : {n.scale, n.shift}) {
    if (!c.has(i)) continue;
    if (c.rank(i) != c.rank(0) - n.first) c.refuse("parameters of other dims than a row");
    for (size_t k = 0; k < c.rank(i); ++k)
      if (!c.proves_equal(c.dims(i)->at(k), c.dims(0)->at(n.first + k))) c.refuse("parameters may not fit a row");
  }
}

void define_rows(LowerContext& c, const RowNorm& n) {
  check_parameters(c, n);
  auto deviation = [&c](const MomentValues& m) { return inverse_deviation(c, m.variance, c.attr_float("epsilon")); };
  c.define(0, [&c, n, deviation](const Index& at) {
    DType dtype = compute_dtype(c.dtype(0));
    MomentValues m = row_moments(c, n, at);
    Index row(at.begin() + static_cast<std::ptrdiff_t>(n.first), at.end());
    Value y = (n.element(at) - m.mean) * deviation(m) * cast(c.operand(n.scale, row), dtype);
    if (c.has(n.shift)) y = y + cast(c.operand(n.shift, row), dtype);
    return cast(y, c.result_dtype());
  });
  if (c.result_count() > 1)
    c.define(1, [&c, n](const Index& at) { return cast(row_moments(c, n, at).mean, c.result_dtype(1)); });
  if (c.result_count() > 2)
    c.define(2,
             [&c, n, deviation](const Index& at) { return cast(deviation(row_moments(c, n, at)), c.result_dtype(2)); });
}

void lower_layer(LowerContext& c) {
  DType dtype = compute_dtype(c.dtype(0));
  define_rows(c, {.first = static_cast<size_t>(normalize_axis(c.attr_int("axis"), std::ssize(*c.dims(0)))),
                  .scale = 1,
                  .shift = 2,
                  .element = [&c, dtype](const Index& at) { return cast(c.operand(0, at), dtype); }});
}

void lower_skip(LowerContext& c) {
  if (c.rank(0) != 2 && c.rank(0) != 3) c.refuse("the input is not of rank 2 or 3");
  auto sum = [&c](const Index& at) {
    Value x = broadcast_operand(c, 0, at, DType::f32) + broadcast_operand(c, 1, at, DType::f32);
    return c.has(4) ? x + broadcast_operand(c, 4, at, DType::f32) : x;
  };
  define_rows(c, {.first = c.rank(0) - 1, .scale = 2, .shift = 3, .element = sum});
  if (c.result_count() > 3) c.define(3, [&c, sum](const Index& at) { return cast(sum(at), c.result_dtype(3)); });
}

OpDef record(std::string_view name, std::string_view onnx, std::string_view doc) {
  OpDef op = blank_record(Mapping::many_to_many);
  op.name = name;
  op.onnx = {"com.microsoft", onnx, {1}};
  op.doc = doc;
  return op;
}

OpDef layer() {
  OpDef op = record("ms_layer_normalization", "LayerNormalization",
                    "(x − mean) / √(variance + epsilon) · scale + b over the axes from `axis` on");
  TypeVar scale{"V", dtypes::floats};
  op.operands = {{"x", float_tensor}, {"scale", scale}, {"b", scale, optional}};
  op.results = {
      {"y", scale}, {"mean", {"U", dtypes::floats}, optional}, {"invstddev", {"U", dtypes::floats}, optional}};
  op.attrs = {int_attr("axis", -1), float_attr("epsilon", 1e-5f), int_attr("stash_type", 1)};
  op.forward = forward_layer;
  op.backward = backward_layer;
  op.eval = eval_layer;
  op.lower = lower_layer;
  op.samples = {{"$(f32[2, 3]{-0.99000001, 0.639999986, 0.589999974, -0.0599999987, -0.389999986, -0.439999998}, "
                 "f32[3]{-0.49000001, -0.109999999, 0.00999999978}, f32[3]{0.109999999, 0.99000001, 0.589999974}) "
                 "{epsilon = 0.01}",
                 "f32[2, 3]{0.796744585, 0.909314394, 0.596680164, -0.481618762, 1.04237676, 0.582687676}, f32[2, "
                 "1]{0.0799999982, -0.296666652}, f32[2, 1]{1.30983138, 5.10162783}"},
                {"$(f16[2, 3, 4], f32[3, 4]) {axis = 1}", "f32[2, 3, 4], f32[2, 1, 1], f32[2, 1, 1]"},
                {"$(f32[0, 4], f32[4])", "f32[0, 4]"},
                {"$(f32[1, 0], f32[0], f32[1, 0])", "f32[1, 0], f32[1, 1], f32[1, 1]"},
                {"$(f32[2, 4], f32[3])", "error: do not fit rows of 4"}};
  return op;
}

OpDef skip() {
  OpDef op =
      record("ms_skip_layer_normalization", "SkipLayerNormalization", "layer normalisation of input + skip + bias");
  op.operands = {{"input", half_or_single},
                 {"skip", half_or_single},
                 {"gamma", half_or_single},
                 {"beta", half_or_single, optional},
                 {"bias", half_or_single, optional}};
  op.results = {{"output", half_or_single},
                {"mean", statistic, optional},
                {"inv_std_var", statistic, optional},
                {"input_skip_bias_sum", half_or_single, optional}};
  op.attrs = {float_attr("epsilon", 1e-12f)};
  op.forward = forward_skip;
  op.backward = backward_skip;
  op.eval = eval_skip;
  op.lower = lower_skip;
  op.samples = {{"$(f32[1, 2, 3]{0.239999995, 0.980000019, -0.569999993, -0.680000007, 0.230000004, -0.910000026}, "
                 "f32[2, 3]{-0.930000007, 0.0299999993, -0.0700000003, 0.829999983, 0.25999999, 0.0299999993}, "
                 "f32[3]{-0.49000001, -0.109999999, 0.00999999978}, f32[3]{0.109999999, 0.99000001, 0.589999974}, "
                 "f32[3]{-0.00999999978, -0.5, -0.980000019}) {epsilon = 0.01}",
                 "f32[1, 2, 3]{0.163950533, 0.850510716, 0.578420162, -0.273789346, 0.921876013, 0.575974464}, f32[1, "
                 "2, 1]{-0.603333354, -0.576666653}, f32[1, 2, 1]{1.13899779, 1.09289801}, f32[1, 2, 3]{-0.699999988, "
                 "0.50999999, -1.62, 0.140000001, -0.00999999978, -1.86000001}"},
                {"$(f32[2, 3, 4], f32[3, 4], f32[4])", "f32[2, 3, 4]"},
                {"$(f32[2, 0, 4], f32[2, 0, 4], f32[4])", "f32[2, 0, 4]"},
                {"$(f32[3, 1], f32[1, 1], f32[1], f32[1], f32[1])", "f32[3, 1], f32[3, 1], f32[3, 1], f32[3, 1]"},
                {"$(f32[2, 3, 4], f32[2, 4], f32[4])", "error: does not broadcast"},
                {"$(f32[2, 3, 4], f32[2, 3, 4], f32[3])", "error: do not fit rows of 4"}};
  return op;
}

OpDef embed() {
  OpDef op = record("ms_embed_layer_normalization", "EmbedLayerNormalization",
                    "layer normalisation of the sum of word, position and segment embeddings");
  TypeVar id{"T1", DTypeSet{DType::i32}};
  TypeVar real{"T", DTypeSet{DType::f32, DType::f16}};
  op.operands = {{"input_ids", id},
                 {"segment_ids", id, optional},
                 {"word_embedding", real},
                 {"position_embedding", real},
                 {"segment_embedding", real, optional},
                 {"gamma", real},
                 {"beta", real},
                 {"mask", id, optional},
                 {"position_ids", id, optional}};
  op.results = {{"output", real}, {"mask_index", id, optional}, {"embedding_sum", real, optional}};
  op.attrs = {float_attr("epsilon", 1e-12f), int_attr("mask_index_type", 1)};
  op.forward = forward_embed;
  op.backward = backward_embed;
  op.eval = eval_embed;
  op.lower = absent("ids are not checked to be natural before a kernel runs");
  op.samples = {
      {"$(i32[2, 2]{1, 0, 2, 2}, i32[2, 2]{0, 1, 1, 1}, f32[3, 3]{-0.620000005, 0.379999995, -0.600000024, "
       "-0.25999999, -0.99000001, 0.660000026, -0.689999998, -0.460000008, 0.75999999}, f32[2, 3]{0.0199999996, "
       "0.689999998, 0.280000001, 0.479999989, -0.819999993, 0.0799999982}, f32[2, 3]{0.0199999996, 0.74000001, "
       "-0.280000001, 0.200000003, -0.879999995, -0.219999999}, f32[3]{-0.49000001, -0.109999999, 0.00999999978}, "
       "f32[3]{0.109999999, 0.99000001, 0.589999974}, i32[2, 2]{1, 0, 1, 1}) {epsilon = 0.01}",
       "f32[2, 2, 3]{0.759841502, 0.948319197, 0.59947288, -0.509749055, 1.11508691, 0.5887236, 0.383755893, "
       "1.08135259, 0.603891611, -0.0978712216, 1.14135408, 0.599517226}, i32[2]{1, 2}, f32[2, 2, 3]{-0.219999999, "
       "0.439999998, 0.660000026, 0.0599999987, -1.32000005, -0.74000001, -0.469999999, -0.649999976, 0.819999993, "
       "-0.00999999978, -2.16000009, 0.620000005}"},
      {"$(i32[0, 2], _, f32[3, 4], f32[5, 4], _, f32[4], f32[4])", "f32[0, 2, 4], i32[0]"},
      {"$(i32[3, 2], i32[3, 2], f32[3, 4], f32[5, 4], f32[2, 4], f32[4], f32[4], i32[3, 2], i32[1, 2])",
       "f32[3, 2, 4], i32[3], f32[3, 2, 4]"},
      {"$(i32[1, 2]{0, 3}, _, f32[3, 4], f32[5, 4], _, f32[4], f32[4])", "error: word id 3 is outside"},
      {"$(i32[1, 6], _, f32[3, 4], f32[5, 4], _, f32[4], f32[4])", "error: position id 5 is outside"},
      {"$(i32[1, 2], i32[1, 2], f32[3, 4], f32[5, 4], _, f32[4], f32[4])", "error: only taken together"}};
  return op;
}

}  // namespace

std::vector<OpDef> ms_normalization_family() { return {embed(), layer(), skip()}; }

}  // namespace selkie::ops
