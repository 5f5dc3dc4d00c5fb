// Rotary position embedding: pairs of elements of each head, rotated by the angles of a position.
#pragma once

#include "ops/support/attention.h"

namespace selkie::ops {

// Rotates the first elements of each head, two for each column of the caches [rows, columns]. `rows` has the caches'
// row of each token [batch, length], all of them inside. Pairs are neighbours where `interleaved`, else a half apart.
void rotate_heads(Heads& x, const std::vector<int64_t>& rows, const Tensor& cosines, const Tensor& sines,
                  bool interleaved);

}  // namespace selkie::ops
