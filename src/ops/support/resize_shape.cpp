#include "ops/support/resize_shape.h"

#include <cmath>
#include <limits>
#include <numeric>

#include "ops/support/dims.h"

namespace selkie::ops {
namespace {

using ir::ShapeContext;
using ir::SymDims;
using ir::Type;
using sym::Expr;

// The size after scaling, in the precision in which ONNX infers it. By an integer it is exact.
int64_t scaled_size(int64_t input, double scale) {
  if (!(scale > 0) || !std::isfinite(scale)) fail("a scale is {}, but must be above 0", scale);
  double size = scale == std::floor(scale) ? static_cast<double>(input) * scale
                                           : static_cast<double>(static_cast<float>(input) * static_cast<float>(scale));
  if (!(size < 0x1p40)) fail("a scale of {} makes {} elements too many", scale, input);
  return static_cast<int64_t>(std::floor(size));
}

}  // namespace

void set_scales(std::vector<ResizeAxis>& axes, std::span<const double> scales) {
  for (size_t i = 0; i < axes.size(); ++i) {
    axes[i].scale = scales[i];
    axes[i].output = scaled_size(axes[i].input, scales[i]);
  }
}

void set_sizes(std::vector<ResizeAxis>& axes, std::span<const int64_t> sizes, const std::string& policy) {
  double least = std::numeric_limits<double>::infinity();
  double most = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (sizes[i] < 0) fail("'sizes' contains {}", sizes[i]);
    axes[i].output = sizes[i];
    axes[i].scale = axes[i].input == 0 ? 1 : static_cast<double>(sizes[i]) / static_cast<double>(axes[i].input);
    least = std::min(least, axes[i].scale);
    most = std::max(most, axes[i].scale);
  }
  if (policy == "stretch") return;
  if (policy != "not_larger" && policy != "not_smaller") fail("there is no aspect ratio policy '{}'", policy);
  for (ResizeAxis& a : axes) {
    a.scale = policy == "not_larger" ? least : most;
    double size = std::floor(a.scale * static_cast<double>(a.input) + 0.5);
    if (!(size < 0x1p40)) fail("a scale of {} makes {} elements too many", a.scale, a.input);
    a.output = static_cast<int64_t>(size);
  }
}

namespace {

// floor(f32(n)·scale) = floordiv(n·p, q) while n·p is at most `limit`.
struct Fraction {
  int64_t p;
  int64_t q;
  int64_t limit;
};

constexpr int64_t exact_in_f32 = int64_t{1} << 24;

// The quotient p/q of small numbers that a positive f32 scale stands for.
//
// With p/q equal to the scale, products up to 2²⁴/q are exact. Otherwise the scale is (p/q)(1 + e), |e| ≤ 2⁻²⁴, and the
// rounded product is t(1 + d) with t = n·p/q, |d| < 2⁻²². A t that is no integer is at least 1/q away from the next
// ones, which t·d does not reach while n·p ≤ 2²². An integer t stays or grows if e ≥ 0; if −2⁻²⁵ < e, t(1 + e) is less
// than half a unit in the last place below t and rounds to it.
std::optional<Fraction> fraction_of(int64_t numerator, int64_t denominator) {
  int64_t divisor = std::gcd(numerator, denominator);
  numerator /= divisor;
  denominator /= divisor;
  if (numerator <= 4096) return Fraction{numerator, denominator, exact_in_f32};
  double scale = static_cast<double>(numerator) / static_cast<double>(denominator);
  for (int64_t q = 2; q <= 64; ++q) {
    auto p = static_cast<int64_t>(std::llround(scale * static_cast<double>(q)));
    if (p < 1 || p > 4096) continue;
    if (static_cast<float>(static_cast<double>(p) / static_cast<double>(q)) != static_cast<float>(scale)) continue;
    __int128 whole = static_cast<__int128>(p) * denominator;
    __int128 missing = whole - static_cast<__int128>(numerator) * q;
    if (missing > 0 && (missing << 25) >= whole) return std::nullopt;
    return Fraction{p, q, int64_t{1} << 22};
  }
  return std::nullopt;
}

// Whether e ≤ most from now on.
bool holds(const ir::ForwardContext& c, Expr e, int64_t most) {
  sym::Range range = c.facts().range(e);
  if (range.lo && *range.lo > most) return false;
  return c.services().require_less_equal(e, c.constant(most), "where the size after scaling is exact");
}

struct Size {
  Expr size;  // null: only the run tells, within bounds
  ir::Bounds bounds = {};
};

Size scaled(const ir::ForwardContext& c, Expr input, Expr numerator, int64_t denominator) {
  std::optional<int64_t> number = numerator.constant();
  if (number && *number <= 0) fail("a scale is not above 0");
  if (!input) return {};
  if (number && *number % denominator == 0) return {input * (*number / denominator)};
  if (!number) {
    if (denominator == 1) return {input * numerator};
    return {holds(c, input * numerator, exact_in_f32) ? sym::floordiv(input * numerator, denominator) : Expr()};
  }
  double scale = static_cast<double>(*number) / static_cast<double>(denominator);
  if (input.constant()) return {c.constant(scaled_size(*input.constant(), scale))};
  std::optional<Fraction> f = fraction_of(*number, denominator);
  if (f && holds(c, input * f->p, f->limit)) return {sym::floordiv(input * f->p, f->q)};
  // Rounding adds less than one part in 2²².
  auto most = static_cast<int64_t>(std::ceil(scale * (1 + 0x1p-22)));
  return {Expr(), {.least = {}, .most = input * most}};
}

std::vector<Size> by_scales(const ir::ForwardContext& c, size_t operand, std::span<const Expr> input) {
  const ir::Contents* scales = c.rationals(operand);
  std::vector<Size> out(input.size());
  if (scales == nullptr) return out;
  if (scales->elements.size() != input.size())
    fail("'scales' has {} elements, but {} axes are resized", scales->elements.size(), input.size());
  for (size_t i = 0; i < input.size(); ++i) out[i] = scaled(c, input[i], scales->elements[i], scales->denominator);
  return out;
}

// All sizes by the reference, where the axes and the wanted sizes are numbers.
std::optional<std::vector<Size>> numeric_sizes(const ShapeContext& c, const std::string& policy,
                                               std::span<const Expr> input, std::span<const Expr> wanted) {
  std::vector<ResizeAxis> axes;
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < input.size(); ++i) {
    if (!input[i] || !input[i].constant() || !wanted[i].constant()) return std::nullopt;
    axes.push_back({static_cast<int64_t>(i), *input[i].constant(), 0, 1});
    sizes.push_back(*wanted[i].constant());
  }
  set_sizes(axes, sizes, policy);
  std::vector<Size> out;
  for (const ResizeAxis& a : axes) out.push_back({c.constant(a.output)});
  return out;
}

std::vector<Size> by_sizes(const ir::ForwardContext& c, size_t operand, std::span<const Expr> input) {
  std::optional<ir::SymElements> wanted = c.elements(operand);
  std::vector<Size> out(input.size());
  if (!wanted) return out;
  if (wanted->size() != input.size())
    fail("'sizes' has {} elements, but {} axes are resized", wanted->size(), input.size());
  const std::string& policy = c.attr_string("keep_aspect_ratio_policy");
  if (policy != "stretch")
    if (auto numbers = numeric_sizes(c, policy, input, *wanted)) return *numbers;
  for (size_t i = 0; i < input.size(); ++i) {
    // An axis that is empty stays so under any policy but to stretch, whatever size is wanted.
    bool filled = input[i] && c.excludes(input[i], 0);
    if (policy == "stretch" || (input.size() == 1 && filled))
      out[i].size = (*wanted)[i];
    else if (policy == "not_larger")
      out[i].bounds.most = (*wanted)[i];
    else if (filled)
      out[i].bounds.least = (*wanted)[i];
  }
  return out;
}

}  // namespace

std::optional<size_t> deciding_operand(const ShapeContext& c, const ResizeBy& by) {
  auto excluded = [&](size_t i) { return !c.has(i) || count_of(c, i) == 0; };
  if (!by.sizes || excluded(*by.sizes)) return excluded(by.scales) ? std::nullopt : std::optional(by.scales);
  if (excluded(by.scales) || count_of(c, *by.sizes)) return by.sizes;
  return count_of(c, by.scales) ? std::optional(by.scales) : std::nullopt;
}

const std::vector<int64_t>* resized_axes(const ShapeContext& c) {
  const ir::Attribute* axes = c.op().find_attr("axes") != nullptr ? c.find_attr("axes") : nullptr;
  const auto* list = axes == nullptr ? nullptr : &std::get<std::vector<int64_t>>(*axes);
  return list == nullptr || list->empty() ? nullptr : list;
}

namespace {

// Without axes there is one scale or size for each.
std::optional<size_t> rank_from_operand(const ShapeContext& c, std::optional<size_t> operand) {
  std::optional<int64_t> count = operand && resized_axes(c) == nullptr ? count_of(c, *operand) : std::nullopt;
  return count ? std::optional(static_cast<size_t>(*count)) : std::nullopt;
}

}  // namespace

std::vector<Type> resize_forward(const ir::ForwardContext& c, const ResizeBy& by) {
  std::optional<size_t> operand = deciding_operand(c, by);
  std::optional<size_t> rank = c.dims(0) ? c.rank(0) : rank_from_operand(c, operand);
  if (!rank) return {Type::tensor(c.dtype(0))};
  SymDims dims = c.dims(0) ? *c.dims(0) : SymDims(*rank);
  std::vector<size_t> axes = positions_of(resized_axes(c), *rank);
  SymDims input;
  for (size_t axis : axes) input.push_back(dims[axis]);
  std::vector<Size> sizes(axes.size());
  if (operand) sizes = operand == by.sizes ? by_sizes(c, *operand, input) : by_scales(c, *operand, input);
  for (size_t i = 0; i < axes.size(); ++i)
    dims[axes[i]] = sizes[i].size ? sizes[i].size : c.unknown(0, axes[i], sizes[i].bounds);
  return {Type::tensor(c.dtype(0), dims)};
}

void resize_backward(ir::BackwardContext& c, const ResizeBy& by) {
  std::optional<size_t> operand = deciding_operand(c, by);
  if (c.result_dims(0))
    require_same_outside(c, 0, positions_of(resized_axes(c), c.result_dims(0)->size()));
  else if (std::optional<size_t> rank = rank_from_operand(c, operand))
    c.set_rank(0, *rank);
  if (!operand) return;
  std::optional<ir::SymElements> sizes = operand == by.sizes ? c.contents(*operand) : std::nullopt;
  if (sizes) require_natural(c, *sizes);
  if (!c.dims(0)) return;
  const SymDims x = *c.dims(0);
  std::vector<size_t> axes = positions_of(resized_axes(c), x.size());
  if (!axes.empty()) c.set_dims(*operand, SymDims{c.constant(std::ssize(axes))});
  // Nothing cannot be stretched to something.
  if (operand == by.sizes && c.result_dims(0) && c.attr_string("keep_aspect_ratio_policy") == "stretch") {
    const SymDims y = *c.result_dims(0);
    for (size_t axis : axes) {
      Expr from_nothing = y[axis];
      if (x[axis].is_symbol())
        from_nothing = sym::substitute(y[axis], [&](Expr s) { return s == x[axis] ? c.constant(0) : Expr(); });
      if (from_nothing.constant() != 0) c.less_equal(sym::min(y[axis], 1), x[axis]);
    }
  }
}

}  // namespace selkie::ops
