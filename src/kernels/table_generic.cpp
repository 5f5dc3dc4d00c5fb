// Kernels for every other processor: vectors of 4 floats, which are SSE on x86 (no FMA: a product needs a register) and
// NEON on ARM (32 registers).
#define SELKIE_ISA_LANES 4
#if defined(__aarch64__)
#define SELKIE_ISA_TILE_ROWS 8
#else
#define SELKIE_ISA_TILE_ROWS 4
#endif
#include "kernels/isa/table.h"

namespace selkie::kernels {
extern constinit const KernelTable generic_table = make_table(Isa::generic, "generic");
}
