// The activation functions that recurrent layers name in their attributes.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace selkie::ops {

// One function per name. Functions with parameters take them from `alpha` and `beta` in order, then their defaults.
std::vector<std::function<double(double)>> rnn_activations(const std::vector<std::string>& names,
                                                           const std::vector<float>& alpha,
                                                           const std::vector<float>& beta);

}  // namespace selkie::ops
