// Interval arithmetic on Range. Every result holds for all values within the arguments for which it is defined.
#pragma once

#include "sym/expr.h"

namespace selkie::sym {

Range point(int64_t value);
Range operator+(const Range& a, const Range& b);
Range operator*(const Range& a, const Range& b);
Range scale(const Range& a, int64_t factor);
Range power(const Range& a, int64_t exponent);
Range floordiv(const Range& a, const Range& b);
Range mod(const Range& a, const Range& b);
Range min(const Range& a, const Range& b);
Range max(const Range& a, const Range& b);
Range intersect(const Range& a, const Range& b);  // May be empty: lo > hi.

inline bool is_natural(const Range& a) { return a.lo && *a.lo >= 0; }
inline bool is_positive(const Range& a) { return a.lo && *a.lo > 0; }
inline bool is_negative(const Range& a) { return a.hi && *a.hi < 0; }
inline bool is_nonzero(const Range& a) { return is_positive(a) || is_negative(a); }
inline bool is_empty(const Range& a) { return a.lo && a.hi && *a.lo > *a.hi; }

// Rounds to minus infinity; the divisor must not be 0, and the caller excludes INT64_MIN / -1.
inline int64_t floor_quotient(int64_t a, int64_t b) {
  int64_t quotient = a / b;
  return quotient - ((a % b != 0 && (a % b < 0) != (b < 0)) ? 1 : 0);
}
inline int64_t floor_remainder(int64_t a, int64_t b) {
  if (b == -1) return 0;
  int64_t remainder = a % b;
  return remainder + ((remainder != 0 && (remainder < 0) != (b < 0)) ? b : 0);
}

}  // namespace selkie::sym
