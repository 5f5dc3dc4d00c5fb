// Weights below the least normal float. They add nothing to a sum, but on many processors each of them costs a hundred
// cycles wherever it is multiplied, and trained weights that were decayed are full of them.
#pragma once

#include <span>

namespace selkie::kernels {

bool has_subnormals(std::span<const float> values);
// They become 0.
void flush_subnormals(std::span<float> values);

}  // namespace selkie::kernels
