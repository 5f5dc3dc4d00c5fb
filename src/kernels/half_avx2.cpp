// Products with weights in small floats for AVX2 with FMA and F16C.
#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#define SELKIE_ISA_LANES 8
#include "kernels/isa/half.h"

namespace selkie::kernels {
extern constinit const HalfTable avx2_half_table = make_half_table("avx2");
}
#endif
