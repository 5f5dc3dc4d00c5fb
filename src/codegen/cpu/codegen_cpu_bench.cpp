// Speed of generated code, in bytes moved per second, beside plain C++ loops compiled for this machine and memcpy; and
// the time that compiling takes. Ratios within one run are what counts.
#include <benchmark/benchmark.h>
#include <fmt/core.h>

#include <cmath>
#include <cstring>
#include <deque>

#include "codegen/cpu/compile.h"

namespace selkie::codegen::cpu {
namespace {

constexpr std::string_view add_text = R"(kernel @add(a: f32[N], b: f32[N], out c: f32[N]) sizes(N) {
  vector i < N { c[i] = add(a[i], b[i]) } })";
constexpr std::string_view bias_relu_text = R"(kernel @bias_relu(a: f32[M*N], b: f32[N], out c: f32[M*N]) sizes(M, N) {
  range i < M { vector j < N { c[N*i + j] = max(add(a[N*i + j], b[j]), f32 0) } } })";
constexpr std::string_view softmax_text = R"(kernel @softmax(x: f32[M*N], out y: f32[M*N]) sizes(M, N) {
  range i < M {
    local top: f32 = f32 -inf
    vector j < N { top max= x[N*i + j] }
    local sum: f32 = f32 0
    vector j < N {
      local e: f32 = exp(sub(x[N*i + j], top))
      sum add= e
      y[N*i + j] = e
    }
    local scale: f32 = div(f32 1, sum)
    vector j < N { y[N*i + j] = mul(y[N*i + j], scale) }
  } })";
constexpr std::string_view gelu_text = R"(kernel @gelu(x: f32[N], out y: f32[N]) sizes(N) {
  vector i < N { y[i] = mul(mul(f32 0.5, x[i]), add(f32 1, erf(mul(x[i], f32 0.7071067811865476)))) } })";
constexpr std::string_view layer_norm_text =
    R"(kernel @norm(x: f32[M*N], g: f32[N], b: f32[N], out y: f32[M*N]) sizes(M, N) {
  range i < M {
    local sum: f32 = f32 0
    vector j < N { sum add= x[N*i + j] }
    local mean: f32 = div(sum, cast<f32>([N]))
    local squares: f32 = f32 0
    vector j < N {
      local d: f32 = sub(x[N*i + j], mean)
      squares add= mul(d, d)
    }
    local scale: f32 = div(f32 1, sqrt(add(div(squares, cast<f32>([N])), f32 1e-05)))
    vector j < N { y[N*i + j] = add(mul(mul(sub(x[N*i + j], mean), scale), g[j]), b[j]) }
  } })";

struct Compiled {
  explicit Compiled(std::string_view text) : image(make(text)) {}
  static program::LoadedImage make(std::string_view text) {
    sym::Context symbols;
    kir::Kernel kernel = kir::parse(symbols, text);
    kir::verify(kernel);
    kernel.name = "kernel";
    const kir::Kernel* kernels[] = {&kernel};
    return program::LoadedImage(compile(kernels, host_isa()));
  }
  program::LoadedImage image;
};

std::vector<float> numbers(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 97) * 0.05F - 2;
  return values;
}

void report(benchmark::State& state, double bytes) {
  state.counters["GB/s"] =
      benchmark::Counter(bytes * static_cast<double>(state.iterations()) * 1e-9, benchmark::Counter::kIsRate);
}

void copy_memory(benchmark::State& state) {
  std::vector<float> a = numbers(state.range(0));
  std::vector<float> c(a.size());
  for (auto _ : state) {
    std::memcpy(c.data(), a.data(), 4 * a.size());
    benchmark::ClobberMemory();
  }
  report(state, 8.0 * static_cast<double>(a.size()));
}

void add_generated(benchmark::State& state) {
  Compiled add(add_text);
  int64_t n = state.range(0);
  std::vector<float> a = numbers(n), b = numbers(n), c(a.size());
  void* buffers[] = {a.data(), b.data(), c.data()};
  auto kernel = add.image.kernel("kernel");
  for (auto _ : state) {
    kernel(buffers, &n, nullptr);
    benchmark::ClobberMemory();
  }
  report(state, 12.0 * static_cast<double>(n));
}

void add_plain(benchmark::State& state) {
  int64_t n = state.range(0);
  std::vector<float> a = numbers(n), b = numbers(n), c(a.size());
  for (auto _ : state) {
    const float* x = a.data();
    const float* y = b.data();
    float* z = c.data();
    for (int64_t i = 0; i < n; ++i) z[i] = x[i] + y[i];
    benchmark::ClobberMemory();
  }
  report(state, 12.0 * static_cast<double>(n));
}

void rows_generated(benchmark::State& state, std::string_view text, int vectors) {
  Compiled compiled(text);
  int64_t sizes[] = {64, state.range(0)};
  int64_t ranges[] = {0, sizes[0]};
  std::vector<float> x = numbers(sizes[0] * sizes[1]), y(x.size());
  std::vector<float> b = numbers(sizes[1]);
  std::vector<void*> buffers{x.data()};
  for (int i = 0; i < vectors; ++i) buffers.push_back(b.data());
  buffers.push_back(y.data());
  auto kernel = compiled.image.kernel("kernel");
  for (auto _ : state) {
    kernel(buffers.data(), sizes, ranges);
    benchmark::ClobberMemory();
  }
  report(state, 8.0 * static_cast<double>(x.size()));
}

void bias_relu_plain(benchmark::State& state) {
  int64_t m = 64, n = state.range(0);
  std::vector<float> x = numbers(m * n), y(x.size()), b = numbers(n);
  for (auto _ : state) {
    for (int64_t i = 0; i < m; ++i) {
      const float* row = &x[static_cast<size_t>(i * n)];
      float* out = &y[static_cast<size_t>(i * n)];
      for (int64_t j = 0; j < n; ++j) out[j] = std::max(row[j] + b[static_cast<size_t>(j)], 0.0F);
    }
    benchmark::ClobberMemory();
  }
  report(state, 8.0 * static_cast<double>(x.size()));
}

void softmax_plain(benchmark::State& state) {
  int64_t m = 64, n = state.range(0);
  std::vector<float> x = numbers(m * n), y(x.size());
  for (auto _ : state) {
    for (int64_t i = 0; i < m; ++i) {
      const float* row = &x[static_cast<size_t>(i * n)];
      float* out = &y[static_cast<size_t>(i * n)];
      float top = -HUGE_VALF, sum = 0;
      for (int64_t j = 0; j < n; ++j) top = std::max(top, row[j]);
      for (int64_t j = 0; j < n; ++j) sum += out[j] = std::exp(row[j] - top);
      for (int64_t j = 0; j < n; ++j) out[j] /= sum;
    }
    benchmark::ClobberMemory();
  }
  report(state, 8.0 * static_cast<double>(x.size()));
}

// As many kernels as a program of BERT's size has, all different.
void compile_program(benchmark::State& state) {
  sym::Context symbols;
  std::deque<kir::Kernel> kernels;
  std::vector<const kir::Kernel*> pointers;
  constexpr std::string_view texts[] = {add_text, bias_relu_text, softmax_text, gelu_text, layer_norm_text};
  for (size_t i = 0; i < 150; ++i) {
    std::string text(texts[i % std::size(texts)]);
    for (size_t at = text.find('N'); at != text.npos; at = text.find('N', at + 1))
      text.insert(at + 1, fmt::format("{}", i));
    kernels.push_back(kir::parse(symbols, text));
    kernels.back().name = fmt::format("kernel_{}", i);
    pointers.push_back(&kernels.back());
  }
  size_t bytes = 0;
  for (auto _ : state) bytes = compile(pointers, host_isa(), static_cast<unsigned>(state.range(0))).code.size();
  double compiled = static_cast<double>(pointers.size()) * static_cast<double>(state.iterations());
  state.counters["time/kernel"] =
      benchmark::Counter(compiled, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["bytes/kernel"] = static_cast<double>(bytes) / static_cast<double>(pointers.size());
}

BENCHMARK(copy_memory)->Arg(4096)->Arg(1 << 22);
BENCHMARK(add_plain)->Arg(4096)->Arg(4099)->Arg(1 << 22);
BENCHMARK(add_generated)->Arg(4096)->Arg(4099)->Arg(1 << 22);
BENCHMARK(bias_relu_plain)->Arg(64)->Arg(768)->Arg(769);
BENCHMARK_CAPTURE(rows_generated, bias_relu, bias_relu_text, 1)->Arg(64)->Arg(768)->Arg(769);
BENCHMARK(softmax_plain)->Arg(128)->Arg(768);
BENCHMARK_CAPTURE(rows_generated, softmax, softmax_text, 0)->Arg(7)->Arg(128)->Arg(768);
BENCHMARK_CAPTURE(rows_generated, layer_norm, layer_norm_text, 2)->Arg(768);
BENCHMARK_CAPTURE(rows_generated, gelu, R"(kernel @gelu(x: f32[M*N], out y: f32[M*N]) sizes(M, N) { range i < M {
  vector j < N { y[N*i + j] = mul(mul(f32 0.5, x[N*i + j]), add(f32 1, erf(mul(x[N*i + j], f32 0.7071067811865476)))) } } })",
                  0)
    ->Arg(768);
BENCHMARK_CAPTURE(rows_generated, silu, R"(kernel @silu(x: f32[M*N], out y: f32[M*N]) sizes(M, N) { range i < M {
  vector j < N { y[N*i + j] = mul(x[N*i + j], sigmoid(x[N*i + j])) } } })",
                  0)
    ->Arg(768);
BENCHMARK(compile_program)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime()->UseRealTime();

}  // namespace
}  // namespace selkie::codegen::cpu
