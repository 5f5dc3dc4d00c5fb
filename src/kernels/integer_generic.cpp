// Integer products for every other processor: vectors of 4 sums.
#define SELKIE_INTEGER_LANES 4
#define SELKIE_INTEGER_TILE_ROWS 4
#define SELKIE_INTEGER_STEP 2
#include "kernels/isa/integer.h"

namespace selkie::kernels {
extern constinit const IntegerTable generic_integer_table = make_integer_table(IntegerIsa::generic, "generic");
}
