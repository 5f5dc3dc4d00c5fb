// Which products with small floats go with which instruction set.
#include "kernels/half_table.h"

namespace selkie::kernels {

extern const HalfTable generic_half_table;
#if defined(__x86_64__)
extern const HalfTable avx2_half_table;
extern const HalfTable avx512_half_table;
#endif

const HalfTable* half_table(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::avx2) return __builtin_cpu_supports("f16c") ? &avx2_half_table : nullptr;
  if (isa == Isa::avx512) return &avx512_half_table;
#endif
  return isa == Isa::generic ? &generic_half_table : nullptr;
}

}  // namespace selkie::kernels
