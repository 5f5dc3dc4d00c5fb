// Products with weights in small floats for AVX-512.
#if defined(__AVX512F__)
#define SELKIE_ISA_LANES 16
#include "kernels/isa/half.h"

namespace selkie::kernels {
extern constinit const HalfTable avx512_half_table = make_half_table("avx512");
}
#endif
