#include "ops/support/pairwise.h"

#include <algorithm>
#include <cmath>

namespace selkie::ops {
namespace {

// The probabilities of k classes from those of each pair: method 2 of Wu, Lin and Weng, "Probability estimates for
// multi-class classification by pairwise coupling", JMLR 5 (2004).
std::vector<double> couple(const std::vector<std::vector<double>>& r) {
  size_t k = r.size();
  std::vector<std::vector<double>> q(k, std::vector<double>(k, 0.0));
  for (size_t t = 0; t < k; ++t)
    for (size_t j = 0; j < k; ++j)
      if (j != t) {
        q[t][t] += r[j][t] * r[j][t];
        q[t][j] = -r[j][t] * r[t][j];
      }
  std::vector<double> p(k, 1.0 / static_cast<double>(k));
  std::vector<double> qp(k);
  for (size_t trip = 0; trip < std::max<size_t>(100, k); ++trip) {
    double pqp = 0;
    for (size_t t = 0; t < k; ++t) {
      qp[t] = 0;
      for (size_t j = 0; j < k; ++j) qp[t] += q[t][j] * p[j];
      pqp += p[t] * qp[t];
    }
    double error = 0;
    for (double v : qp) error = std::max(error, std::fabs(v - pqp));
    if (error < 0.005 / static_cast<double>(k)) break;
    for (size_t t = 0; t < k; ++t) {
      double step = (pqp - qp[t]) / q[t][t];
      p[t] += step;
      pqp = (pqp + step * (step * q[t][t] + 2 * qp[t])) / ((1 + step) * (1 + step));
      for (size_t j = 0; j < k; ++j) {
        qp[j] = (qp[j] + step * q[t][j]) / (1 + step);
        p[j] /= 1 + step;
      }
    }
  }
  return p;
}

}  // namespace

std::vector<double> pairwise_probabilities(const std::vector<double>& scores, size_t k, const std::vector<float>& a,
                                           const std::vector<float>& b) {
  std::vector<std::vector<double>> pairs(k, std::vector<double>(k, 0.0));
  size_t at = 0;
  for (size_t i = 0; i < k; ++i)
    for (size_t j = i + 1; j < k; ++j, ++at) {
      pairs[i][j] = std::clamp(1 / (1 + std::exp(scores[at] * a[at] + b[at])), 1e-7, 1 - 1e-7);
      pairs[j][i] = 1 - pairs[i][j];
    }
  return couple(pairs);
}

}  // namespace selkie::ops
