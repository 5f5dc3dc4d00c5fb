// Interval arithmetic in 128 bits, rounded outwards to what fits.
#include "sym/range.h"

#include <algorithm>
#include <limits>

namespace selkie::sym {
namespace {

// A bound on the extended line, wide enough that no operation on two 64-bit bounds wraps.
struct Bound {
  int infinite;  // -1, 0 or 1
  __int128 value;
};

constexpr __int128 lowest = std::numeric_limits<int64_t>::min();
constexpr __int128 highest = std::numeric_limits<int64_t>::max();

Bound lower(const Range& a) { return a.lo ? Bound{0, *a.lo} : Bound{-1, 0}; }
Bound upper(const Range& a) { return a.hi ? Bound{0, *a.hi} : Bound{1, 0}; }

int sign(const Bound& a) { return a.infinite ? a.infinite : (a.value > 0) - (a.value < 0); }

bool less(const Bound& a, const Bound& b) {
  return a.infinite != b.infinite ? a.infinite < b.infinite : a.value < b.value;
}

Bound times(const Bound& a, const Bound& b) {
  if (a.infinite || b.infinite) return {sign(a) * sign(b), 0};
  return {0, a.value * b.value};
}

// floor(a / b) for a divisor of known sign; a bounded dividend over an unbounded divisor tends to 0 or -1.
Bound divide(const Bound& a, const Bound& b) {
  if (a.infinite) return {a.infinite * sign(b), 0};
  if (b.infinite) return {0, sign(a) * sign(b) < 0 ? -1 : 0};
  __int128 quotient = a.value / b.value;
  if (a.value % b.value != 0 && (a.value < 0) != (b.value < 0)) --quotient;
  return {0, quotient};
}

// A bound that does not fit is replaced by the nearest one that is still true.
Range make(const Bound& lo, const Bound& hi) {
  Range result;
  if (lo.infinite == 0 && lo.value >= lowest) result.lo = static_cast<int64_t>(std::min(lo.value, highest));
  if (hi.infinite == 0 && hi.value <= highest) result.hi = static_cast<int64_t>(std::max(hi.value, lowest));
  return result;
}

template <class Operation>
Range over_corners(const Range& a, const Range& b, Operation operation) {
  Bound corners[] = {operation(lower(a), lower(b)), operation(lower(a), upper(b)), operation(upper(a), lower(b)),
                     operation(upper(a), upper(b))};
  auto [lo, hi] = std::minmax_element(std::begin(corners), std::end(corners), less);
  return make(*lo, *hi);
}

Range hull(const Range& a, const Range& b) {
  Range result;
  if (a.lo && b.lo) result.lo = std::min(*a.lo, *b.lo);
  if (a.hi && b.hi) result.hi = std::max(*a.hi, *b.hi);
  return result;
}

// Applies an operation to the parts of the divisor below and above zero, where it is monotone in the divisor.
template <class Operation>
Range over_divisor_signs(const Range& a, const Range& b, Operation operation) {
  Range positive = intersect(b, {.lo = 1, .hi = {}});
  Range negative = intersect(b, {.lo = {}, .hi = -1});
  if (is_empty(positive) && is_empty(negative)) return {};
  if (is_empty(negative)) return operation(a, positive);
  if (is_empty(positive)) return operation(a, negative);
  return hull(operation(a, positive), operation(a, negative));
}

Range mod_of_sign(const Range& a, const Range& b) {
  bool positive = is_positive(b);
  const std::optional<int64_t>& extreme = positive ? b.hi : b.lo;
  Range result = positive ? Range{.lo = 0, .hi = {}} : Range{.lo = {}, .hi = 0};
  if (extreme) (positive ? result.hi : result.lo) = *extreme + (positive ? -1 : 1);
  if (positive && is_natural(a) && a.hi) result.hi = result.hi ? std::min(*result.hi, *a.hi) : *a.hi;
  return result;
}

}  // namespace

Range point(int64_t value) { return {.lo = value, .hi = value}; }

Range operator+(const Range& a, const Range& b) {
  auto plus = [](Bound x, Bound y) {
    return x.infinite || y.infinite ? Bound{x.infinite ? x.infinite : y.infinite, 0} : Bound{0, x.value + y.value};
  };
  return make(plus(lower(a), lower(b)), plus(upper(a), upper(b)));
}

Range operator*(const Range& a, const Range& b) { return over_corners(a, b, times); }

Range scale(const Range& a, int64_t factor) {
  auto times_factor = [&](Bound x) {
    return x.infinite ? Bound{factor > 0 ? x.infinite : factor < 0 ? -x.infinite : 0, 0} : Bound{0, x.value * factor};
  };
  Bound lo = times_factor(lower(a));
  Bound hi = times_factor(upper(a));
  return factor < 0 ? make(hi, lo) : make(lo, hi);
}

Range power(const Range& a, int64_t exponent) {
  Range result = a;
  for (int64_t i = 1; i < exponent; ++i) result = result * a;
  if (exponent % 2 == 0) result = intersect(result, {.lo = 0, .hi = {}});
  return result;
}

Range floordiv(const Range& a, const Range& b) {
  return over_divisor_signs(a, b, [](const Range& x, const Range& y) { return over_corners(x, y, divide); });
}

Range mod(const Range& a, const Range& b) { return over_divisor_signs(a, b, mod_of_sign); }

Range min(const Range& a, const Range& b) {
  Range result;
  if (a.lo && b.lo) result.lo = std::min(*a.lo, *b.lo);
  if (a.hi || b.hi) result.hi = std::min(a.hi.value_or(highest), b.hi.value_or(highest));
  return result;
}

Range max(const Range& a, const Range& b) {
  Range result;
  if (a.hi && b.hi) result.hi = std::max(*a.hi, *b.hi);
  if (a.lo || b.lo) result.lo = std::max(a.lo.value_or(lowest), b.lo.value_or(lowest));
  return result;
}

Range intersect(const Range& a, const Range& b) {
  Range result = a;
  if (b.lo) result.lo = a.lo ? std::max(*a.lo, *b.lo) : *b.lo;
  if (b.hi) result.hi = a.hi ? std::min(*a.hi, *b.hi) : *b.hi;
  return result;
}

}  // namespace selkie::sym
