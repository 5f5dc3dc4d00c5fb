// The discrete Fourier transform of one line of numbers.
#pragma once

#include <complex>
#include <vector>

namespace selkie::ops {

// X[k] = Σ x[n] · exp(∓2πi·k·n / N), any N; the inverse has the plus sign and divides by N.
std::vector<std::complex<double>> fourier(std::vector<std::complex<double>> x, bool inverse);

}  // namespace selkie::ops
