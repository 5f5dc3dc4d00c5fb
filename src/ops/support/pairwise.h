// Probabilities of classes from scores of all pairs of them.
#pragma once

#include <cstddef>
#include <vector>

namespace selkie::ops {

// Of k classes. The probability that the first of pair i is right, of the two, is 1 / (1 + exp(a[i] · scores[i] +
// b[i])). Pairs are ordered 01, 02, …, 12, ….
std::vector<double> pairwise_probabilities(const std::vector<double>& scores, size_t k, const std::vector<float>& a,
                                           const std::vector<float>& b);

}  // namespace selkie::ops
