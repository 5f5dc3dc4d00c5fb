// Reductions over axes: a table row each.
#include <cmath>
#include <limits>

#include "ops/support/lower.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

// A reduction as a fold: value of nothing, how an element enters, and what becomes of the sum at the end (n: how many).
struct Fold {
  double start;
  double (*step)(double sum, double x);
  double (*finish)(double sum, double n) = [](double sum, double) { return sum; };
};

struct Row {
  std::string_view name;
  std::string_view onnx;
  std::vector<int> versions;
  std::string_view doc;
  DTypeSet dtypes;
  Fold fold;
  // Exact folds for 64-bit integers, where double would round; null if the result is not an integer by nature.
  int64_t (*integer)(int64_t, int64_t) = nullptr;
  uint64_t (*natural)(uint64_t, uint64_t) = nullptr;
  bool shifted_exp = false;                               // log Σ exp: subtract the maximum first
  sym::Expr (*symbolic)(sym::Expr, sym::Expr) = nullptr;  // for shape arithmetic
};

constexpr double infinity = std::numeric_limits<double>::infinity();
const DTypeSet numbers = dtypes::floats | DTypeSet{DType::i32, DType::i64, DType::u32, DType::u64};
const DTypeSet ordered = numbers | DTypeSet{DType::i8, DType::u8, DType::boolean};

double plus(double s, double x) { return s + x; }
double square_plus(double s, double x) { return s + x * x; }
double abs_plus(double s, double x) { return s + std::fabs(x); }
double greater(double s, double x) { return std::isnan(x) || x > s ? x : s; }
double lesser(double s, double x) { return std::isnan(x) || x < s ? x : s; }

std::vector<Row> rows() {
  std::vector<int> v{1, 11, 13, 18};
  std::vector<int> minmax{1, 11, 12, 13, 18, 20};
  return {
      {"reduce_l1", "ReduceL1", v, "Σ |x|", numbers, {0, abs_plus}},
      {"reduce_l2", "ReduceL2", v, "√Σ x²", numbers, {0, square_plus, [](double s, double) { return std::sqrt(s); }}},
      {"reduce_log_sum",
       "ReduceLogSum",
       v,
       "log Σ x",
       numbers,
       {0, plus, [](double s, double) { return std::log(s); }}},
      {.name = "reduce_log_sum_exp",
       .onnx = "ReduceLogSumExp",
       .versions = v,
       .doc = "log Σ exp x",
       .dtypes = numbers,
       .fold = {0, plus},
       .shifted_exp = true},
      {"reduce_max",
       "ReduceMax",
       minmax,
       "the largest",
       ordered,
       {-infinity, greater},
       [](int64_t s, int64_t x) { return std::max(s, x); },
       [](uint64_t s, uint64_t x) { return std::max(s, x); },
       false,
       sym::max},
      {"reduce_mean", "ReduceMean", v, "the mean", numbers, {0, plus, [](double s, double n) { return s / n; }}},
      {"reduce_min",
       "ReduceMin",
       minmax,
       "the smallest",
       ordered,
       {infinity, lesser},
       [](int64_t s, int64_t x) { return std::min(s, x); },
       [](uint64_t s, uint64_t x) { return std::min(s, x); },
       false,
       sym::min},
      {"reduce_prod",
       "ReduceProd",
       v,
       "the product",
       numbers,
       {1, [](double s, double x) { return s * x; }},
       [](int64_t s, int64_t x) { return static_cast<int64_t>(static_cast<uint64_t>(s) * static_cast<uint64_t>(x)); },
       [](uint64_t s, uint64_t x) { return s * x; },
       false,
       [](sym::Expr s, sym::Expr x) { return s * x; }},
      {"reduce_sum",
       "ReduceSum",
       {1, 11, 13},
       "the sum",
       numbers,
       {0, plus},
       [](int64_t s, int64_t x) { return static_cast<int64_t>(static_cast<uint64_t>(s) + static_cast<uint64_t>(x)); },
       [](uint64_t s, uint64_t x) { return s + x; },
       false,
       [](sym::Expr s, sym::Expr x) { return s + x; }},
      {"reduce_sum_square", "ReduceSumSquare", v, "Σ x²", numbers, {0, square_plus}},
  };
}

// The axes to reduce: all if none are given, or none at all if noop_with_empty_axes says so.
std::vector<int64_t> axes_of(const EvalContext& e, int64_t rank) {
  std::vector<int64_t> axes = e.has(1) ? ints_of(e.tensor(1)) : std::vector<int64_t>{};
  if (!axes.empty() || e.attr_int("noop_with_empty_axes") != 0) return normalize_axes(axes, rank);
  for (int64_t i = 0; i < rank; ++i) axes.push_back(i);
  return axes;
}

struct Shapes {
  Dims kept;                     // with 1 along reduced axes
  std::vector<int64_t> strides;  // of the result under the operand's index
  Dims result;
};

Shapes shapes_of(const Tensor& x, const std::vector<int64_t>& axes, bool keep) {
  Shapes s{x.dims(), {}, {}};
  for (int64_t axis : axes) s.kept[static_cast<size_t>(axis)] = 1;
  s.strides = strides_of(s.kept);
  for (int64_t i = 0; i < x.rank(); ++i) {
    bool reduced = std::find(axes.begin(), axes.end(), i) != axes.end();
    if (reduced) s.strides[static_cast<size_t>(i)] = 0;
    if (!reduced || keep) s.result.push_back(s.kept[static_cast<size_t>(i)]);
  }
  return s;
}

template <class W, class F>
std::vector<W> fold(const Tensor& x, const Shapes& s, const std::vector<W>& values, W start, F&& step) {
  std::vector<W> sums(static_cast<size_t>(element_count(s.kept)), start);
  size_t i = 0;
  for (Walk<1> walk(x.dims(), {s.strides}); !walk.done(); walk.next()) {
    W& sum = sums[static_cast<size_t>(walk.offset(0))];
    sum = step(sum, values[i++]);
  }
  return sums;
}

Tensor reduce_reals(const Row& row, const Tensor& x, const Shapes& s) {
  std::vector<double> values = widen<double>(x);
  std::vector<double> top;
  if (row.shifted_exp) {
    top = fold<double>(x, s, values, -infinity, greater);
    for (double& t : top) t = std::isfinite(t) ? t : 0;
    size_t i = 0;
    for (Walk<1> walk(x.dims(), {s.strides}); !walk.done(); walk.next(), ++i)
      values[i] = std::exp(values[i] - top[static_cast<size_t>(walk.offset(0))]);
  }
  std::vector<double> sums = fold<double>(x, s, values, row.fold.start, row.fold.step);
  double n = sums.empty() ? 0 : static_cast<double>(x.count()) / static_cast<double>(sums.size());
  for (size_t i = 0; i < sums.size(); ++i)
    sums[i] = row.shifted_exp ? std::log(sums[i]) + top[i] : row.fold.finish(sums[i], n);
  return narrow<double>(sums, x.dtype(), s.result);
}

// What an exact fold starts with: the least element reaches every maximum, the greatest every minimum.
template <class W>
W start_of(const Row& row, DType dtype) {
  if (row.fold.start == 0 || row.fold.start == 1) return static_cast<W>(row.fold.start);
  bool largest = row.fold.start > 0;
  if (dtype == DType::boolean) return largest ? 1 : 0;
  int bits = info(dtype).bits;
  if constexpr (std::is_signed_v<W>) {
    W top = std::numeric_limits<W>::max() >> (64 - bits);
    return largest ? top : -top - 1;
  } else {
    return largest ? std::numeric_limits<W>::max() >> (64 - bits) : 0;
  }
}

void eval(const Row& row, EvalContext& e) {
  const Tensor& x = e.tensor(0);
  Shapes s = shapes_of(x, axes_of(e, x.rank()), e.attr_int("keepdims") != 0);
  if (row.integer != nullptr && is_signed_integer(x.dtype())) {
    auto sums = fold<int64_t>(x, s, widen<int64_t>(x), start_of<int64_t>(row, x.dtype()), row.integer);
    e.set(0, narrow<int64_t>(sums, x.dtype(), s.result));
  } else if (row.natural != nullptr && !is_float(x.dtype())) {
    auto sums = fold<uint64_t>(x, s, widen<uint64_t>(x), start_of<uint64_t>(row, x.dtype()), row.natural);
    e.set(0, narrow<uint64_t>(sums, x.dtype(), s.result));
  } else {
    e.set(0, reduce_reals(row, x, s));
  }
}

// Which axes of operand 0 are reduced, where that is known.
std::optional<std::vector<bool>> reduced_axes(const ir::ShapeContext& c, size_t rank) {
  std::optional<std::vector<int64_t>> axes = c.has(1) ? c.numbers(1) : std::vector<int64_t>{};
  if (!axes) return std::nullopt;
  std::vector<bool> reduced(rank, axes->empty() && c.attr_int("noop_with_empty_axes") == 0);
  for (int64_t axis : normalize_axes(*axes, static_cast<int64_t>(rank))) reduced[static_cast<size_t>(axis)] = true;
  return reduced;
}

std::vector<Type> forward(const ForwardContext& c) {
  if (!c.dims(0)) return {Type::tensor(c.dtype(0))};
  bool keep = c.attr_int("keepdims") != 0;
  std::optional<std::vector<bool>> reduced = reduced_axes(c, c.rank(0));
  if (!reduced && !keep) return {Type::tensor(c.dtype(0))};
  SymDims dims;
  for (size_t i = 0; i < c.rank(0); ++i) {
    sym::Expr dim = (*c.dims(0))[i];
    if (!reduced)  // either 1 or the whole
      dims.push_back(c.unknown(0, i, {.least = {}, .most = sym::max(dim, 1)}));
    else if (!(*reduced)[i])
      dims.push_back(dim);
    else if (keep)
      dims.push_back(c.constant(1));
  }
  return {Type::tensor(c.dtype(0), dims)};
}

void backward(BackwardContext& c) {
  if (!c.result_dims(0) || c.attr_int("keepdims") == 0) return;
  size_t rank = c.result_dims(0)->size();
  std::optional<std::vector<bool>> reduced = reduced_axes(c, rank);
  SymDims dims = *c.result_dims(0);
  for (size_t i = 0; i < rank; ++i)
    if (!reduced || (*reduced)[i]) dims[i] = {};
  c.set_dims(0, dims);
}

using kir::Value;

// Σ f(x), the largest or the smallest of the elements that one result reduces.
Value fold(const LowerContext& c, const std::vector<bool>& reduced, const Index& at, kir::Op combine, Value start,
           const std::function<Value(Value)>& f) {
  SymDims extents;
  for (size_t i = 0; i < reduced.size(); ++i)
    if (reduced[i]) extents.push_back((*c.dims(0))[i]);
  auto element = [&](const Index& k) {
    Index from;
    size_t next_reduced = 0;
    size_t next_kept = 0;
    for (bool is_reduced : reduced) {
      from.push_back(is_reduced ? k[next_reduced++] : at[next_kept]);
      if (!is_reduced || c.attr_int("keepdims") != 0) ++next_kept;
    }
    return f(cast(c.operand(0, from), start.dtype()));
  };
  if (extents.empty()) return element({});
  return c.builder().reduce(combine, start, extents, element);
}

Value reduced_element(const Row& row, const LowerContext& c, const std::vector<bool>& reduced, const Index& at) {
  bool exact = row.integer != nullptr && !is_float(c.dtype(0));
  DType dtype = exact ? c.dtype(0) : is_float(c.dtype(0)) ? compute_dtype(c.dtype(0)) : DType::f64;
  if (dtype == DType::boolean) dtype = DType::u8;
  auto same = [](Value x) { return x; };
  auto over = [&](kir::Op combine, double start, const std::function<Value(Value)>& f) {
    return fold(c, reduced, at, combine, c.builder().number(dtype, start), f);
  };
  auto extreme = [&](kir::Op combine) {
    return fold(c, reduced, at, combine, extreme_of(c.builder(), dtype, combine == kir::Op::min), same);
  };
  if (row.name == "reduce_max") return extreme(kir::Op::max);
  if (row.name == "reduce_min") return extreme(kir::Op::min);
  if (row.name == "reduce_prod") return over(kir::Op::mul, 1, same);
  if (row.name == "reduce_sum") return over(kir::Op::add, 0, same);
  if (row.name == "reduce_l1") return over(kir::Op::add, 0, [](Value x) { return unary(kir::Op::abs, x); });
  if (row.name == "reduce_log_sum") return unary(kir::Op::log, over(kir::Op::add, 0, same));
  auto square = [](Value x) { return x * x; };
  if (row.name == "reduce_l2") return unary(kir::Op::sqrt, over(kir::Op::add, 0, square));
  if (row.name == "reduce_sum_square") return over(kir::Op::add, 0, square);
  if (row.name == "reduce_mean") {
    sym::Expr count = c.constant(1);
    for (size_t i = 0; i < reduced.size(); ++i)
      if (reduced[i]) count = count * (*c.dims(0))[i];
    return over(kir::Op::add, 0, same) / cast(c.size(count), dtype);
  }
  CHECK(row.shifted_exp, "no kernel for {}", row.name);
  Value top = extreme(kir::Op::max);
  Value finite = c.builder().hoist(select(unary(kir::Op::abs, top) < infinity, top, top - top));
  Value shift = select(is_nan(finite), c.builder().number(dtype, 0), finite);
  return unary(kir::Op::log, over(kir::Op::add, 0, [&](Value x) { return unary(kir::Op::exp, x - shift); })) + shift;
}

void lower(const Row& row, LowerContext& c) {
  std::optional<std::vector<bool>> reduced = reduced_axes(c, c.rank(0));
  if (!reduced) c.refuse("the axes are not known before the run");
  if (!is_float(c.dtype(0)) && row.shifted_exp) c.refuse("of integers, to which a last bit may matter");
  c.define(0, [&c, row, reduced = *reduced](const Index& at) {
    Value result = reduced_element(row, c, reduced, at);
    return is_float(result.dtype()) ? from_real(result, c.result_dtype()) : cast(result, c.result_dtype());
  });
}

ir::Hook<void(ValueContext&)> value_of(const Row& row) {
  if (row.symbolic == nullptr) return absent("does not occur in shape arithmetic");
  return [f = row.symbolic](ValueContext& c) {
    const ir::Contents* x = c.partial(0);
    std::optional<Dims> dims = ir::small_dims(c.type(0));
    std::optional<Dims> result = c.small_dims(0);
    if (x == nullptr || !dims || !result || x->elements.empty() || x->denominator != 1 || x->rounded) return;
    std::optional<std::vector<bool>> reduced = reduced_axes(c, dims->size());
    if (!reduced) return;
    Dims kept = *dims;
    for (size_t i = 0; i < kept.size(); ++i)
      if ((*reduced)[i]) kept[i] = 1;
    std::vector<int64_t> strides = strides_of(kept);
    for (size_t i = 0; i < kept.size(); ++i)
      if ((*reduced)[i]) strides[i] = 0;
    ir::SymElements sums(static_cast<size_t>(element_count(kept)));
    std::vector<bool> seen(sums.size());
    size_t at = 0;
    for (Walk<1> walk(*dims, {strides}); !walk.done(); walk.next()) {
      auto to = static_cast<size_t>(walk.offset(0));
      sym::Expr e = x->elements[at++];
      if (!seen[to])
        sums[to] = e;
      else
        sums[to] = e && sums[to] ? f(sums[to], e) : sym::Expr();
      seen[to] = true;
    }
    for (sym::Expr& e : sums)
      if (e && !c.exact(e, c.result(0).dtype)) e = {};
    c.set(0, std::move(sums));
  };
}

OpDef record(const Row& row) {
  TypeVar type{"T", row.dtypes};
  return {
      .name = row.name,
      .onnx = {"", row.onnx, row.versions},
      .doc = row.doc,
      .operands = {{"data", type}, {"axes", i64_tensor, optional}},
      .results = {{"reduced", type}},
      .attrs = {int_attr("keepdims", 1), int_attr("noop_with_empty_axes", 0)},
      .dynamism = isvdos({"axes"}),
      .mapping = Mapping::many_to_many,
      .forward = forward,
      .backward = backward,
      .value = value_of(row),
      .eval = [row](EvalContext& e) { eval(row, e); },
      .lower = [row](LowerContext& c) { lower(row, c); },
      .grad = later::training,
      .upgrades = {{row.onnx == "ReduceSum" ? 13 : 18, attr_to_operand("axes", 1)}},
      .samples = {{"$(f32[2, 3], i64[1]{1})", "f32[2, 1]"},
                  {"$(f32[2, 3], i64[1]{-1}) {keepdims = 0}", "f32[2]"},
                  {"$(f32[2, 3])", "f32[1, 1]"},
                  {"$(f32[2, 0], i64[1]{1})", "f32[2, 1]"},
                  {"$(f32[2, 3], i64[0]) {noop_with_empty_axes = 1}", "f32[2, 3]"},
                  {"$(f32[2, 3], i64[1]{2})", "error: axis 2 is outside"},
                  {"$(f32[2, 3], i64[2]{1, -1})", "error: given twice"}},
  };
}

}  // namespace

std::vector<OpDef> reduce_family() {
  std::vector<OpDef> family;
  for (const Row& row : rows()) family.push_back(record(row));
  return family;
}

}  // namespace selkie::ops
