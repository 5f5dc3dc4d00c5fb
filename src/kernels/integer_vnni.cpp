// Integer products for AVX-512 with VNNI: 12 rows of two vectors take 24 of 32 registers.
#if defined(__AVX512VNNI__)
#define SELKIE_INTEGER_LANES 16
#define SELKIE_INTEGER_TILE_ROWS 12
#define SELKIE_INTEGER_STEP 4
#include "kernels/isa/integer.h"

namespace selkie::kernels {
extern constinit const IntegerTable vnni_integer_table = make_integer_table(IntegerIsa::vnni, "vnni");
}
#endif
