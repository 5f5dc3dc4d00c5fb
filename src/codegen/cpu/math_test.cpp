// The errors of the functions that code generation writes as formulas, in units in the last place, over all of f32 (a
// dense sample of its bit patterns) and much of f64, against the C library in a wider type.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "codegen/cpu/compile.h"
#include "codegen/cpu/runnable_isas.h"

namespace selkie::codegen::cpu {
namespace {

struct Function {
  std::string_view name;
  long double (*wide)(long double, long double);
  double (*narrow)(double, double);
  double bound;
  bool binary = false;
  bool periodic = false;  // measured for |x| up to 1e4, and beyond on its own
};

const Function functions[] = {
    {"exp", [](long double x, long double) { return std::exp(x); }, [](double x, double) { return std::exp(x); }, 2},
    {"log", [](long double x, long double) { return std::log(x); }, [](double x, double) { return std::log(x); }, 2},
    {"tanh", [](long double x, long double) { return std::tanh(x); }, [](double x, double) { return std::tanh(x); }, 3},
    {"erf", [](long double x, long double) { return std::erf(x); }, [](double x, double) { return std::erf(x); }, 3},
    {"sigmoid",
     [](long double x, long double) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); },
     [](double x, double) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }, 3},
    {"sin", [](long double x, long double) { return std::sin(x); }, [](double x, double) { return std::sin(x); }, 2,
     false, true},
    {"cos", [](long double x, long double) { return std::cos(x); }, [](double x, double) { return std::cos(x); }, 2,
     false, true},
    {"pow", [](long double x, long double y) { return std::pow(x, y); },
     [](double x, double y) { return std::pow(x, y); }, 4, true},
};

// How far `got` is from the exact value, in units of the last place of T there.
template <class T, class Wide>
double error_in_ulps(T got, Wide exact) {
  if (std::isnan(exact) || std::isnan(got)) return std::isnan(exact) && std::isnan(got) ? 0 : HUGE_VAL;
  auto nearest = static_cast<T>(exact);
  if (nearest == got) return std::signbit(nearest) == std::signbit(got) ? 0 : HUGE_VAL;
  if (std::isinf(got) || std::isinf(nearest)) {
    // One step beyond the largest number is infinity.
    T finite = std::isinf(got) ? nearest : got;
    return std::fabs(finite) == std::numeric_limits<T>::max() ? 1 : HUGE_VAL;
  }
  int exponent = std::max(std::ilogb(exact), std::numeric_limits<T>::min_exponent - 1);
  Wide unit = std::ldexp(Wide{1}, exponent - (std::numeric_limits<T>::digits - 1));
  return static_cast<double>(std::fabs(static_cast<Wide>(got) - exact) / unit);
}

template <class T>
struct Samples {
  std::vector<T> x;
  std::vector<T> y;
};

constexpr double odd_values[] = {0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 4.0, 1e-8, 1e4, 1e20, -1e20};

template <class T>
void add_odd_values(Samples<T>& samples) {
  std::vector<T> odd(std::begin(odd_values), std::end(odd_values));
  using Limits = std::numeric_limits<T>;
  for (T value : {Limits::infinity(), Limits::quiet_NaN(), Limits::max(), Limits::min(), Limits::denorm_min()})
    for (T sign : {T{1}, T{-1}}) odd.push_back(sign * value);
  for (T a : odd)
    for (T b : odd) {
      samples.x.push_back(a);
      samples.y.push_back(b);
    }
}

Samples<float> samples32(bool binary) {
  Samples<float> samples;
  add_odd_values(samples);
  std::mt19937_64 random(7);
  constexpr uint64_t step = 2039;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += step) {
    auto x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    float y = 0;
    if (binary) {  // an exponent whose power is a normal number, mostly
      double most = 87 / std::max(1e-30, std::fabs(std::log(std::fabs(static_cast<double>(x)))));
      y = static_cast<float>((static_cast<double>(random() >> 11) * 0x1p-52 - 1) * most);
      if (random() % 4 == 0) y = std::round(std::fmod(y, 1000.0F));
    }
    samples.x.push_back(x);
    samples.y.push_back(y);
  }
  return samples;
}

Samples<double> samples64(bool binary) {
  Samples<double> samples;
  add_odd_values(samples);
  std::mt19937_64 random(8);
  for (int i = 0; i < 400000; ++i) {
    double unit = static_cast<double>(random() >> 11) * 0x1p-52 - 1;
    double x = i % 4 == 0 ? std::bit_cast<double>(random()) : unit * std::exp2(static_cast<double>(random() % 24) - 12);
    double y = 0;
    if (binary) {
      double most = 700 / std::max(1e-300, std::fabs(std::log(std::fabs(x))));
      y = (static_cast<double>(random() >> 11) * 0x1p-52 - 1) * most;
      if (random() % 4 == 0) y = std::round(std::fmod(y, 1000.0));
    }
    samples.x.push_back(x);
    samples.y.push_back(y);
  }
  return samples;
}

struct Measured {
  double worst = 0;
  double at_x = 0;
  double at_y = 0;
  double worst_beyond = 0;  // of periodic functions, for |x| above 1e4
};

template <class T, class Exact>
Measured measure(const Function& function, program::KernelFunction compiled, const Samples<T>& samples, Exact exact) {
  std::vector<T> results(samples.x.size());
  void* buffers[] = {const_cast<T*>(samples.x.data()), const_cast<T*>(samples.y.data()), results.data()};
  auto count = static_cast<int64_t>(results.size());
  compiled(buffers, &count, nullptr);
  Measured measured;
  for (size_t i = 0; i < results.size(); ++i) {
    double error = error_in_ulps(results[i], exact(samples.x[i], samples.y[i]));
    bool beyond = function.periodic && std::fabs(samples.x[i]) > 1e4;
    double& worst = beyond ? measured.worst_beyond : measured.worst;
    if (error <= worst) continue;
    worst = error;
    if (!beyond) measured.at_x = samples.x[i], measured.at_y = samples.y[i];
  }
  return measured;
}

void check(const Isa& isa, const Function& function, const char* dtype) {
  sym::Context symbols;
  std::string arguments = function.binary ? "x[i], y[i]" : "x[i]";
  kir::Kernel kernel = kir::parse(
      symbols,
      fmt::format("kernel @f(x: {0}[N], y: {0}[N], out r: {0}[N]) sizes(N) {{ vector i < N {{ r[i] = {1}({2}) }} }}",
                  dtype, function.name, arguments));
  kir::verify(kernel);
  const kir::Kernel* kernels[] = {&kernel};
  program::LoadedImage image(compile(kernels, isa));
  bool is_single = std::string_view(dtype) == "f32";
  Measured measured = is_single ? measure(function, image.kernel("f"), samples32(function.binary), function.narrow)
                                : measure(function, image.kernel("f"), samples64(function.binary), function.wide);
  fmt::print("[   ULP    ] {:14} {:8} {}: {:5.2f} (bound {}) at {:.9g}, {:.9g}", isa.name, function.name, dtype,
             measured.worst, function.bound, measured.at_x, measured.at_y);
  if (function.periodic) fmt::print("; {:5.2f} beyond 1e4", measured.worst_beyond);
  fmt::print("\n");
  EXPECT_LE(measured.worst, function.bound) << isa.name << " " << function.name << " " << dtype;
  EXPECT_LE(measured.worst_beyond, function.bound + 1) << isa.name << " " << function.name << " " << dtype;
}

TEST(Math, ErrorsAreWithinBounds) {
  for (const Isa& isa : testing::runnable_isas()) {
    for (const Function& function : functions)
      for (const char* dtype : {"f32", "f64"}) check(isa, function, dtype);
  }
}

}  // namespace
}  // namespace selkie::codegen::cpu
