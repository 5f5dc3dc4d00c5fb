// Which instruction sets for integer products the processor runs.
#include "kernels/integer_table.h"

#include <array>

#include "base/error.h"

namespace selkie::kernels {

extern const IntegerTable generic_integer_table;
#if defined(__x86_64__)
extern const IntegerTable avx2_integer_table;
extern const IntegerTable vnni_integer_table;
#endif

namespace {

struct Usable {
  std::array<IntegerIsa, 3> isas = {IntegerIsa::generic};
  size_t count = 1;
};

Usable find_usable() {
  Usable usable;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2")) usable.isas[usable.count++] = IntegerIsa::avx2;
  if (usable.count == 2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vnni"))
    usable.isas[usable.count++] = IntegerIsa::vnni;
#endif
  return usable;
}

}  // namespace

std::span<const IntegerIsa> usable_integer_isas() {
  static const Usable usable = find_usable();
  return {usable.isas.data(), usable.count};
}

const IntegerTable& integer_table(IntegerIsa isa) {
  switch (isa) {
#if defined(__x86_64__)
    case IntegerIsa::avx2:
      return avx2_integer_table;
    case IntegerIsa::vnni:
      return vnni_integer_table;
#endif
    case IntegerIsa::generic:
      return generic_integer_table;
    default:
      CHECK(false, "no integer kernels for instruction set {}", static_cast<int>(isa));
  }
}

const IntegerTable& best_integer_table() { return integer_table(usable_integer_isas().back()); }

}  // namespace selkie::kernels
