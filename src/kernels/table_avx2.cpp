// Kernels for AVX2 with FMA: 6 rows of two vectors of 8 floats take 12 of 16 registers.
#if defined(__AVX2__) && defined(__FMA__)
#define SELKIE_ISA_LANES 8
#define SELKIE_ISA_TILE_ROWS 6
#include "kernels/isa/table.h"

namespace selkie::kernels {
extern constinit const KernelTable avx2_table = make_table(Isa::avx2, "avx2");
}
#endif
