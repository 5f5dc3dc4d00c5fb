// The kernels with AVX-512's vector and tile sizes, compiled for any processor: their logic is tested where AVX-512 is
// not there to run.
#define SELKIE_ISA_LANES 16
#define SELKIE_ISA_TILE_ROWS 12
#include "kernels/isa/table.h"

namespace selkie::kernels {
extern constinit const KernelTable wide_table = make_table(Isa::generic, "wide");
}
