#include "ops/support/rnn_activations.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "base/error.h"

namespace selkie::ops {
namespace {

struct Row {
  std::string_view name;
  double (*f)(double x, double alpha, double beta);
  std::optional<double> alpha = std::nullopt;  // the default, where the function takes it
  std::optional<double> beta = std::nullopt;
};

const Row rows[] = {
    {"relu", [](double x, double, double) { return std::max(x, 0.0); }},
    {"tanh", [](double x, double, double) { return std::tanh(x); }},
    {"sigmoid", [](double x, double, double) { return 1 / (1 + std::exp(-x)); }},
    {"affine", [](double x, double a, double b) { return a * x + b; }, 1, 0},
    {"leakyrelu", [](double x, double a, double) { return x >= 0 ? x : a * x; }, 0.01},
    {"thresholdedrelu", [](double x, double a, double) { return x >= a ? x : 0; }, 1},
    {"scaledtanh", [](double x, double a, double b) { return a * std::tanh(b * x); }, 1, 1},
    {"hardsigmoid", [](double x, double a, double b) { return std::min(std::max(a * x + b, 0.0), 1.0); }, 0.2, 0.5},
    {"elu", [](double x, double a, double) { return x >= 0 ? x : a * std::expm1(x); }, 1},
    {"softsign", [](double x, double, double) { return x / (1 + std::fabs(x)); }},
    {"softplus", [](double x, double, double) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }},
};

}  // namespace

std::vector<std::function<double(double)>> rnn_activations(const std::vector<std::string>& names,
                                                           const std::vector<float>& alpha,
                                                           const std::vector<float>& beta) {
  std::vector<std::function<double(double)>> out;
  size_t next_alpha = 0;
  size_t next_beta = 0;
  for (std::string name : names) {
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    const Row* row = std::find_if(std::begin(rows), std::end(rows), [&](const Row& r) { return r.name == name; });
    if (row == std::end(rows)) fail("there is no activation '{}'", name);
    double a = row->alpha.value_or(0);
    double b = row->beta.value_or(0);
    if (row->alpha && next_alpha < alpha.size()) a = alpha[next_alpha++];
    if (row->beta && next_beta < beta.size()) b = beta[next_beta++];
    out.push_back([f = row->f, a, b](double x) { return f(x, a, b); });
  }
  return out;
}

}  // namespace selkie::ops
