// Kernels for AVX-512: 12 rows of two vectors of 16 floats take 24 of 32 registers.
#if defined(__AVX512F__)
#define SELKIE_ISA_LANES 16
#define SELKIE_ISA_TILE_ROWS 12
#include "kernels/isa/table.h"

namespace selkie::kernels {
extern constinit const KernelTable avx512_table = make_table(Isa::avx512, "avx512");
}
#endif
