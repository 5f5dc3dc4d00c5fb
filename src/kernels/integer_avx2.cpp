// Integer products for AVX2. Its product of bytes saturates, so pairs of 16 bits are multiplied: 6 rows of two vectors
// take 12 of 16 registers.
#if defined(__AVX2__)
#define SELKIE_INTEGER_LANES 8
#define SELKIE_INTEGER_TILE_ROWS 6
#define SELKIE_INTEGER_STEP 2
#include "kernels/isa/integer.h"

namespace selkie::kernels {
extern constinit const IntegerTable avx2_integer_table = make_integer_table(IntegerIsa::avx2, "avx2");
}
#endif
