#include "ops/support/fourier.h"

#include <cmath>
#include <numbers>

namespace selkie::ops {
namespace {

using Complex = std::complex<double>;

// exp(±2πi · k / n), with k reduced first, so that large products lose nothing.
Complex root(uint64_t k, uint64_t n, double sign) {
  return std::polar(1.0, sign * 2 * std::numbers::pi * static_cast<double>(k % n) / static_cast<double>(n));
}

// Cooley and Tukey: halves while the size is even, then sums directly.
void transform(std::vector<Complex>& x, double sign) {
  size_t n = x.size();
  if (n < 2) return;
  std::vector<Complex> out(n);
  if (n % 2 == 0) {
    std::vector<Complex> even(n / 2), odd(n / 2);
    for (size_t i = 0; i < n / 2; ++i) {
      even[i] = x[2 * i];
      odd[i] = x[2 * i + 1];
    }
    transform(even, sign);
    transform(odd, sign);
    for (size_t i = 0; i < n / 2; ++i) {
      Complex turned = odd[i] * root(i, n, sign);
      out[i] = even[i] + turned;
      out[i + n / 2] = even[i] - turned;
    }
  } else {
    std::vector<Complex> roots(n);
    for (size_t i = 0; i < n; ++i) roots[i] = root(i, n, sign);
    for (size_t k = 0; k < n; ++k)
      for (size_t i = 0; i < n; ++i) out[k] += x[i] * roots[k * i % n];
  }
  x = std::move(out);
}

}  // namespace

std::vector<Complex> fourier(std::vector<Complex> x, bool inverse) {
  transform(x, inverse ? 1 : -1);
  if (inverse)
    for (Complex& v : x) v /= static_cast<double>(x.size());
  return x;
}

}  // namespace selkie::ops
