// Interpolation between the elements of a grid: kernels, and weighted sums over neighbours along several axes.
#pragma once

#include <cmath>
#include <complex>
#include <span>
#include <vector>

#include "base/convert.h"

namespace selkie::ops {

// An element along one axis and its share of a sum.
struct Weighted {
  int64_t index;
  double weight;
};

inline double linear_kernel(double x) { return std::max(0.0, 1 - std::fabs(x)); }
// Keys, "Cubic convolution interpolation for digital image processing", equation 4.
inline double cubic_kernel(double x, double a) {
  x = std::fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? a * (((x - 5) * x + 8) * x - 4) : 0;
}

// Σ plane[index] · weight over every combination of one neighbour per axis.
template <class T>
T weighted_sum(const T* plane, std::span<const int64_t> dims, std::span<const std::vector<Weighted>> axes) {
  if (axes.empty()) return *plane;
  int64_t stride = 1;
  for (int64_t d : dims.subspan(1)) stride *= d;
  T sum{};
  for (const Weighted& w : axes[0])
    if (w.weight != 0) sum += weighted_sum(plane + w.index * stride, dims.subspan(1), axes.subspan(1)) * w.weight;
  return sum;
}

// Reals as a tensor of any numeric dtype: integers are rounded and saturate.
inline Tensor from_reals(std::vector<double> values, DType dtype, Dims dims) {
  if (is_integer(dtype)) {
    int bits = info(dtype).bits;
    bool negative = is_signed_integer(dtype);
    double top = std::ldexp(1.0, negative ? bits - 1 : bits);
    // The largest double below 2⁶⁴ (or 2⁶³) is the greatest that converts.
    double most = bits == 64 ? std::nextafter(top, 0) : top - 1;
    for (double& v : values) v = std::isnan(v) ? 0 : std::min(std::max(std::nearbyint(v), negative ? -top : 0), most);
    if (bits == 64 && !negative) {
      std::vector<uint64_t> naturals(values.begin(), values.end());
      return narrow<uint64_t>(naturals, dtype, std::move(dims));
    }
  }
  return narrow<double>(values, dtype, std::move(dims));
}
inline Tensor from_reals(const std::vector<std::complex<double>>& values, DType dtype, Dims dims) {
  return narrow<std::complex<double>>(values, dtype, std::move(dims));
}

}  // namespace selkie::ops
