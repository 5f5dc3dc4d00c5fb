// Element-wise operators over any number of operands with broadcasting: max, mean, min, sum.
#include <cmath>
#include <numeric>

#include "ops/support/elementwise.h"
#include "ops/support/lower.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

struct Row {
  std::string_view name;
  std::string_view onnx;
  std::string_view doc;
  DTypeSet dtypes;
  std::vector<int> versions;
  double (*real)(double, double);
  int64_t (*integer)(int64_t, int64_t) = nullptr;
  uint64_t (*natural)(uint64_t, uint64_t) = nullptr;
  bool mean = false;
  sym::Expr (*symbolic)(sym::Expr, sym::Expr) = nullptr;
};

double largest(double a, double b) { return std::isnan(a) || a > b ? a : b; }
double smallest(double a, double b) { return std::isnan(a) || a < b ? a : b; }
double plus(double a, double b) { return a + b; }

std::vector<Row> rows() {
  return {
      {"max",
       "Max",
       "the largest",
       dtypes::numeric,
       {1, 6, 8, 12, 13},
       largest,
       [](int64_t a, int64_t b) { return std::max(a, b); },
       [](uint64_t a, uint64_t b) { return std::max(a, b); },
       false,
       sym::max},
      {.name = "mean",
       .onnx = "Mean",
       .doc = "the mean",
       .dtypes = dtypes::floats,
       .versions = {1, 6, 8, 13},
       .real = plus,
       .mean = true},
      {"min",
       "Min",
       "the smallest",
       dtypes::numeric,
       {1, 6, 8, 12, 13},
       smallest,
       [](int64_t a, int64_t b) { return std::min(a, b); },
       [](uint64_t a, uint64_t b) { return std::min(a, b); },
       false,
       sym::min},
      {.name = "sum",
       .onnx = "Sum",
       .doc = "the sum",
       .dtypes = dtypes::floats,
       .versions = {1, 6, 8, 13},
       .real = plus},
  };
}

// Folds all operands in the wide type, so that one rounding happens, at the end.
template <class W, class F>
Tensor fold(EvalContext& e, F&& f, double scale) {
  Dims dims = e.tensor(0).dims();
  for (size_t i = 1; i < e.operand_count(); ++i) dims = broadcast(dims, e.tensor(i).dims());
  std::vector<W> result;
  for (size_t i = 0; i < e.operand_count(); ++i) {
    std::vector<W> values = widen<W>(broadcast_to(e.tensor(i), dims));
    if (i == 0)
      result = std::move(values);
    else
      for (size_t j = 0; j < values.size(); ++j) result[j] = f(result[j], values[j]);
  }
  if (scale != 1)
    for (W& v : result) v = static_cast<W>(v * scale);
  return narrow<W>(result, e.tensor(0).dtype(), dims);
}

void lower(const Row& row, LowerContext& c) {
  lower_elementwise(c, [name = row.name, mean = row.mean](const LowerContext& l, std::span<const kir::Value> x) {
    kir::Value result = x[0];
    for (kir::Value next : x.subspan(1))
      result = name == "max" ? max(result, next) : name == "min" ? min(result, next) : result + next;
    return mean ? result * (1.0 / static_cast<double>(l.operand_count())) : result;
  });
}

void eval(const Row& row, EvalContext& e) {
  dispatch_number(e.tensor(0).dtype(), [&](auto tag) {
    using W = typename decltype(tag)::type;
    if constexpr (std::is_same_v<W, double>)
      e.set(0, fold<W>(e, row.real, row.mean ? 1.0 / static_cast<double>(e.operand_count()) : 1.0));
    else if constexpr (std::is_same_v<W, int64_t>)
      e.set(0, fold<W>(e, row.integer, 1));
    else
      e.set(0, fold<W>(e, row.natural, 1));
  });
}

ir::Hook<void(ValueContext&)> value_of(const Row& row) {
  if (row.symbolic == nullptr) return absent("does not occur in shape arithmetic");
  return [f = row.symbolic](ValueContext& c) {
    value_elementwise(c, [f](std::span<const sym::Expr> x) {
      return std::accumulate(x.begin() + 1, x.end(), x[0], [f](sym::Expr a, sym::Expr b) { return f(a, b); });
    });
  };
}

OpDef record(const Row& row) {
  TypeVar type{"T", row.dtypes};
  return {
      .name = row.name,
      .onnx = {"", row.onnx, row.versions},
      .doc = row.doc,
      .operands = {{"first", type}, {"rest", type, variadic}},
      .results = {{"result", type}},
      .dynamism = isdos(),
      .mapping = Mapping::one_to_one,
      .forward = broadcast_all,
      .backward = backward_broadcast,
      .value = value_of(row),
      .eval = [row](EvalContext& e) { eval(row, e); },
      .lower = [row](LowerContext& c) { lower(row, c); },
      .grad = later::training,
      .upgrades = {{6, drop_attrs({"consumed_inputs"})}},
      .samples = {{"$(f32[2, 3], f32[3], f32[])", "f32[2, 3]"},
                  {"$(f32[2, 0])", "f32[2, 0]"},
                  {"$(f32[1]{2}, f32[1]{2})", row.name == "sum" ? "f32[1]{4}" : "f32[1]{2}"},
                  {"$(f32[2], f32[3])", "error: do not broadcast"},
                  {"$(f32[2], f64[2])", "error: must be f32"}},
  };
}

}  // namespace

std::vector<OpDef> variadic_family() {
  std::vector<OpDef> family;
  for (const Row& row : rows()) family.push_back(record(row));
  return family;
}

}  // namespace selkie::ops
