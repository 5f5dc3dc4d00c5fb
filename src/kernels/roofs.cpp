#include "kernels/roofs.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "kernels/table.h"

namespace selkie::kernels {
namespace {

// The best of many repetitions, since other work on the machine only ever adds time.
template <class Function>
double best_seconds(Function function, double budget) {
  using Clock = std::chrono::steady_clock;
  auto since = [](Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  double best = 1e30;
  for (auto start = Clock::now(); best == 1e30 || since(start) < budget;) {
    auto begin = Clock::now();
    function();
    best = std::min(best, since(begin));
  }
  return best;
}

template <int lanes>
struct VectorOf {
  typedef float Type __attribute__((vector_size(lanes * 4)));
};

// Twelve sums are enough to cover the latency of two multiply-adds per cycle.
template <int lanes>
__attribute__((always_inline)) inline void chains(int64_t rounds, float* out) {
  using Vector = typename VectorOf<lanes>::Type;
  Vector sum[12];
  for (int i = 0; i < 12; ++i) sum[i] = Vector{} + static_cast<float>(i);
  Vector factor = Vector{} + 0.999f;
  Vector term = Vector{} + 0.001f;
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < 12; ++i) sum[i] = sum[i] * factor + term;
  }
  for (int i = 1; i < 12; ++i) sum[0] += sum[i];
  *out = sum[0][0];
}

template <int lanes>
__attribute__((always_inline)) inline void read(const float* data, int64_t count, float* out) {
  using Vector = typename VectorOf<lanes>::Type;
  Vector sum[8] = {};
  for (int64_t i = 0; i + 8 * lanes <= count; i += 8 * lanes) {
    __builtin_prefetch(data + i + 512);
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) sum[j] += *reinterpret_cast<const Vector*>(data + i + j * lanes);
  }
  for (int i = 1; i < 8; ++i) sum[0] += sum[i];
  *out = sum[0][0];
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void chains_avx2(int64_t rounds, float* out) { chains<8>(rounds, out); }
__attribute__((target("avx512f"))) void chains_avx512(int64_t rounds, float* out) { chains<16>(rounds, out); }
__attribute__((target("avx2,fma"))) void read_avx2(const float* data, int64_t count, float* out) {
  read<8>(data, count, out);
}
__attribute__((target("avx512f"))) void read_avx512(const float* data, int64_t count, float* out) {
  read<16>(data, count, out);
}
#endif

void run_chains(Isa isa, int64_t rounds, float* out) {
#if defined(__x86_64__)
  if (isa == Isa::avx512) return chains_avx512(rounds, out);
  if (isa == Isa::avx2) return chains_avx2(rounds, out);
#endif
  chains<4>(rounds, out);
}

void run_read(Isa isa, const float* data, int64_t count, float* out) {
#if defined(__x86_64__)
  if (isa == Isa::avx512) return read_avx512(data, count, out);
  if (isa == Isa::avx2) return read_avx2(data, count, out);
#endif
  read<4>(data, count, out);
}

}  // namespace

double fma_roof(Isa isa) {
  constexpr int64_t rounds = 20000;
  volatile float sink = 0;
  float out = 0;
  double seconds = best_seconds(
      [&] {
        run_chains(isa, rounds, &out);
        sink = out;
      },
      0.1);
  return 2.0 * 12 * table(isa).lanes * static_cast<double>(rounds) / seconds * 1e-9;
}

double read_roof(Isa isa, int64_t bytes) {
  std::vector<float> data(static_cast<size_t>(bytes / 4 + 32), 1.0f);
  const float* aligned = data.data() + (64 - reinterpret_cast<uintptr_t>(data.data()) % 64) / 4 % 16;
  volatile float sink = 0;
  float out = 0;
  double seconds = best_seconds(
      [&] {
        run_read(isa, aligned, bytes / 4, &out);
        sink = out;
      },
      0.2);
  return static_cast<double>(bytes) / seconds * 1e-9;
}

}  // namespace selkie::kernels
