// Integer products as VNNI packs and sums them, compiled for any processor: their arithmetic is tested where VNNI is
// not there to run.
#define SELKIE_INTEGER_LANES 16
#define SELKIE_INTEGER_TILE_ROWS 12
#define SELKIE_INTEGER_STEP 4
#include "kernels/isa/integer.h"

namespace selkie::kernels {
extern constinit const IntegerTable wide_integer_table = make_integer_table(IntegerIsa::generic, "wide");
}
