#include "runtime/size_steps.h"

#include <algorithm>
#include <limits>

namespace selkie::runtime {
namespace {

int64_t floor_divide(int64_t a, int64_t b) {
  if (b == -1) return a == std::numeric_limits<int64_t>::min() ? std::numeric_limits<int64_t>::max() : -a;
  int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

// What leaves 64 bits stays at their end: a factor of 0 may still follow, and if none does there is no such memory.
int64_t saturated(bool negative) {
  return negative ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
}

}  // namespace

int64_t result_of(const program::SizeStep& s, int64_t a, int64_t b) {
  using program::SizeStep;
  int64_t result = 0;
  switch (s.op) {
    case SizeStep::Op::constant:
      return s.value;
    case SizeStep::Op::add:
      return __builtin_add_overflow(a, b, &result) ? saturated(a < 0) : result;
    case SizeStep::Op::subtract:
      return __builtin_sub_overflow(a, b, &result) ? saturated(a < 0) : result;
    case SizeStep::Op::multiply:
      return __builtin_mul_overflow(a, b, &result) ? saturated((a < 0) != (b < 0)) : result;
    case SizeStep::Op::divide:
      return b == 0 ? 0 : floor_divide(a, b);
    case SizeStep::Op::modulo:
      return b == 0 ? 0 : a - floor_divide(a, b) * b;
    case SizeStep::Op::minimum:
      return std::min(a, b);
    case SizeStep::Op::maximum:
      return std::max(a, b);
    case SizeStep::Op::less:
      return a < b ? 1 : 0;
  }
  return result;
}

}  // namespace selkie::runtime
