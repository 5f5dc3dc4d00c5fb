// Softmax over one line of numbers.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace selkie::ops {

// x = exp(x − max) / Σ exp(x − max). `sink`, where finite, is a further score that takes its share and is dropped.
inline void softmax(std::span<double> x, double sink = -std::numeric_limits<double>::infinity()) {
  double top = sink;
  for (double v : x) top = std::isnan(v) || v > top ? v : top;
  double sum = std::isfinite(sink) ? std::exp(sink - top) : 0;
  for (double& v : x) sum += v = std::exp(v - top);
  for (double& v : x) v /= sum;
}

// x = x − max − log Σ exp(x − max).
inline void log_softmax(std::span<double> x) {
  double top = -std::numeric_limits<double>::infinity();
  for (double v : x) top = std::isnan(v) || v > top ? v : top;
  double sum = 0;
  for (double v : x) sum += std::exp(v - top);
  double shift = top + std::log(sum);
  for (double& v : x) v -= shift;
}

}  // namespace selkie::ops
