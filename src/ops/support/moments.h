// Mean and variance of numbers, for normalisations.
#pragma once

#include <cmath>
#include <span>

namespace selkie::ops {

struct Moments {
  double mean = 0;
  double variance = 0;  // of the population
};

inline Moments moments(std::span<const double> x) {
  Moments m;
  auto n = static_cast<double>(x.size());
  for (double v : x) m.mean += v;
  m.mean /= n;
  for (double v : x) m.variance += (v - m.mean) * (v - m.mean);
  m.variance /= n;
  return m;
}

// x = (x − mean) / √(variance + epsilon).
inline Moments standardize(std::span<double> x, double epsilon) {
  Moments m = moments(x);
  double factor = 1 / std::sqrt(m.variance + epsilon);
  for (double& v : x) v = (v - m.mean) * factor;
  return m;
}

}  // namespace selkie::ops
