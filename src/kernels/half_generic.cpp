// Products with weights in small floats for every other processor: conversions by integers.
#define SELKIE_ISA_LANES 4
#include "kernels/isa/half.h"

namespace selkie::kernels {
extern constinit const HalfTable generic_half_table = make_half_table("generic");
}
