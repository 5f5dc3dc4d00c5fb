// Random kernels, compiled for every instruction set and compared with the interpreter.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <deque>
#include <numeric>

#include "codegen/cpu/compile.h"
#include "codegen/cpu/guarded_buffer.h"
#include "codegen/cpu/runnable_isas.h"
#include "kir/interpret.h"
#include "kir/random_kernel.h"
#include "kir/scalar.h"

namespace selkie::codegen::cpu {
namespace {

using kir::testing::RandomKernel;
using testing::GuardedBuffer;

struct Counts {
  size_t runs = 0;
  size_t elements = 0;
};

double precision(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 0x1p-52;
    case DType::f32:
      return 0x1p-23;
    case DType::f16:
      return 0x1p-10;
    default:
      return 0x1p-7;
  }
}

// `scale` is what results were rounded at on the way.
bool is_close(DType dtype, kir::Scalar a, kir::Scalar b, double tolerance, double scale) {
  if (!is_float(dtype)) return a.whole == b.whole;
  if (std::isnan(a.real) || std::isnan(b.real)) return std::isnan(a.real) && std::isnan(b.real);
  return a.real == b.real || std::fabs(a.real - b.real) <= tolerance * std::max(scale, std::fabs(b.real));
}

double largest_constant(const kir::Kernel& kernel) {
  double largest = 1;
  for (const kir::Expr& e : kernel.expressions)
    if (e.op == kir::Op::constant && is_float(e.dtype))
      largest = std::max(largest, std::fabs(std::bit_cast<double>(e.bits)));
  return largest;
}

int64_t element_count(const kir::Buffer& buffer, int64_t rows, int64_t columns) {
  return *sym::evaluate(buffer.elements, [&](std::string_view name) { return name == "M" ? rows : columns; });
}

// Runs both on equal data and compares all outputs.
void compare(const RandomKernel& random, program::KernelFunction compiled, int64_t rows, int64_t columns, uint64_t seed,
             Counts& counts) {
  const kir::Kernel& kernel = random.kernel;
  std::mt19937_64 generator(seed);
  std::deque<GuardedBuffer> ours;
  std::vector<std::vector<std::byte>> expected;
  std::vector<void*> pointers;
  std::vector<kir::BufferView> views;
  for (const kir::Buffer& buffer : kernel.buffers) {
    int64_t count = element_count(buffer, rows, columns);
    expected.push_back(kir::testing::random_data(generator, buffer.dtype, count, !random.exact));
    ours.emplace_back(expected.back(), seed % 2 == 0);
    pointers.push_back(ours.back().data());
    views.push_back({.data = expected.back().data(), .count = count});
  }
  int64_t sizes[] = {rows, columns};
  int64_t ranges[] = {0, rows};
  size_t range_count = 2 * kir::range_extents(kernel).size();
  kir::interpret(kernel, views, sizes, {ranges, range_count});
  compiled(pointers.data(), sizes, ranges);
  ++counts.runs;
  for (size_t b = 0; b < kernel.buffers.size(); ++b) {
    const kir::Buffer& buffer = kernel.buffers[b];
    bool is_reduction = buffer.elements == kernel.sizes[0];
    // A sum may begin with a constant and end near zero.
    double scale = is_reduction ? largest_constant(kernel) : 1;
    double tolerance = random.exact ? 0 : precision(buffer.dtype) * (is_reduction ? 4.0 * (2.0 + columns) : 6);
    for (int64_t i = 0; i < views[b].count; ++i, ++counts.elements) {
      kir::Scalar a = kir::load_scalar(buffer.dtype, pointers[b], i);
      kir::Scalar e = kir::load_scalar(buffer.dtype, views[b].data, i);
      if (is_close(buffer.dtype, a, e, tolerance, scale)) continue;
      if (is_float(buffer.dtype))
        ADD_FAILURE() << buffer.name << "[" << i << "] is " << a.real << ", not " << e.real;
      else
        ADD_FAILURE() << buffer.name << "[" << i << "] is " << a.whole << ", not " << e.whole;
      return;
    }
  }
}

void run_batch(const Isa& isa, uint64_t seed, size_t count, Counts& counts) {
  sym::Context symbols;
  std::deque<RandomKernel> kernels;
  std::vector<const kir::Kernel*> pointers;
  for (size_t i = 0; i < count; ++i) {
    kernels.push_back(kir::testing::Generator(symbols, seed + i).run());
    kernels.back().kernel.name = fmt::format("random_{}", i);
    kir::verify(kernels.back().kernel);
    pointers.push_back(&kernels.back().kernel);
  }
  program::LoadedImage image(compile(pointers, isa, 2));
  int64_t lanes = isa.vector_bytes / 4;
  for (size_t i = 0; i < count; ++i) {
    program::KernelFunction compiled = image.kernel(kernels[i].kernel.name);
    for (int64_t columns :
         {int64_t{0}, int64_t{1}, int64_t{2}, lanes - 1, lanes, lanes + 1, int64_t{31}, 8 * lanes + 5, int64_t{257}})
      compare(kernels[i], compiled, static_cast<int64_t>((seed + i + columns) % 4), columns, seed + i, counts);
    if (i % 16 == 0) compare(kernels[i], compiled, 2, 5003, seed + i, counts);
    if (::testing::Test::HasFailure()) {
      ADD_FAILURE() << "isa " << isa.name << ", seed " << seed + i << "\n" << kir::print(kernels[i].kernel);
      return;
    }
  }
}

TEST(RandomKernels, EqualTheInterpreter) {
  for (const Isa& isa : testing::runnable_isas()) {
    Counts counts;
    constexpr size_t batch = 64;
    constexpr size_t batches = 4;
    for (uint64_t seed : kir::testing::seeds())
      for (size_t i = 0; i < batches && !HasFailure(); ++i) run_batch(isa, seed + batch * i, batch, counts);
    fmt::print("[  COUNT   ] {}: {} kernels, {} runs, {} elements\n", isa.name,
               batch * batches * kir::testing::seeds().size(), counts.runs, counts.elements);
  }
}

// Kernels that are equal but for their names share their code.
TEST(Compile, EqualKernelsOnce) {
  sym::Context symbols;
  constexpr std::string_view text = "kernel @{}(a: f32[N], out c: {}[N]) sizes(N) {{ vector i < N {{ c[i] = {} }} }}";
  auto make = [&](std::string_view name, std::string_view dtype, std::string_view value) {
    return kir::parse(symbols, fmt::format(fmt::runtime(text), name, dtype, value));
  };
  kir::Kernel a = make("a", "f32", "a[i]");
  kir::Kernel b = make("b", "f32", "a[i]");
  kir::Kernel c = make("c", "f64", "cast<f64>(a[i])");
  const kir::Kernel* kernels[] = {&a, &b, &c};
  program::Image image = compile(kernels, host_isa());
  EXPECT_EQ(image.entries.at("a"), image.entries.at("b"));
  EXPECT_NE(image.entries.at("a"), image.entries.at("c"));
}

// An output may be the memory of an input that it overwrites element by element.
TEST(Compile, InPlace) {
  for (const Isa& isa : testing::runnable_isas()) {
    sym::Context symbols;
    kir::Kernel kernel = kir::parse(symbols, R"(kernel @k(a: f32[N], b: f32[N], out c: f32[N]) sizes(N) {
      vector i < N { c[i] = add(mul(a[i], f32 2), b[i]) } })");
    const kir::Kernel* kernels[] = {&kernel};
    program::LoadedImage image(compile(kernels, isa));
    for (int64_t n : {1, 7, 8, 33, 100}) {
      std::vector<float> a(static_cast<size_t>(n), 3);
      std::vector<float> b(a.size());
      for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i);
      void* buffers[] = {a.data(), b.data(), a.data()};
      image.kernel("k")(buffers, &n, nullptr);
      for (size_t i = 0; i < a.size(); ++i) ASSERT_EQ(a[i], 6 + static_cast<float>(i)) << isa.name << " " << n;
    }
  }
}

// Of a range loop, only the part that is asked for runs.
TEST(Compile, PartOfARange) {
  sym::Context symbols;
  kir::Kernel kernel = kir::parse(symbols, R"(kernel @k(out c: i32[M*N]) sizes(M, N) {
    range i < M { range j < N { c[N*i + j] = i32 1 } } })");
  const kir::Kernel* kernels[] = {&kernel};
  program::LoadedImage image(compile(kernels, host_isa()));
  std::vector<int32_t> c(20);
  void* buffers[] = {c.data()};
  int64_t sizes[] = {4, 5};
  int64_t ranges[] = {1, 3, 2, 4};
  image.kernel("k")(buffers, sizes, ranges);
  for (size_t i = 0; i < c.size(); ++i) EXPECT_EQ(c[i], i / 5 >= 1 && i / 5 < 3 && i % 5 >= 2 && i % 5 < 4) << i;
}

// Quotients and remainders of a range's variable are counted up from where the range begins.
TEST(Compile, QuotientsOfARange) {
  sym::Context symbols;
  kir::Kernel kernel = kir::parse(symbols, R"(kernel @k(a: i32[A*B*C], out c: i32[A*B*C]) sizes(A, B, C) {
    range i < A*B*C {
      c[A*B*mod(i, C) + A*mod(floordiv(i, C), B) + floordiv(floordiv(i, C), B)] = a[B*C*floordiv(i, B*C) + mod(i, B*C)]
    } })");
  const kir::Kernel* kernels[] = {&kernel};
  for (const Isa& isa : testing::runnable_isas()) {
    program::LoadedImage image(compile(kernels, isa));
    for (std::array<int64_t, 3> sizes :
         {std::array<int64_t, 3>{2, 3, 5}, {4, 1, 1}, {1, 1, 6}, {3, 4, 1}, {0, 2, 3}, {5, 0, 0}}) {
      auto [planes, rows, columns] = sizes;
      int64_t count = planes * rows * columns;
      for (int64_t begin = 0; begin <= count; begin += 7) {
        for (int64_t end = begin; end <= count; ++end) {
          std::vector<int32_t> a(static_cast<size_t>(count) + 1), c(a.size(), -1);
          std::iota(a.begin(), a.end(), 0);
          void* buffers[] = {a.data(), c.data()};
          int64_t ranges[] = {begin, end};
          image.kernel("k")(buffers, sizes.data(), ranges);
          for (int64_t i = 0; i < count; ++i) {
            int64_t at = i % columns * rows * planes + i / columns % rows * planes + i / columns / rows;
            ASSERT_EQ(c[static_cast<size_t>(at)], i >= begin && i < end ? i : -1) << isa.name << " " << i;
          }
        }
      }
    }
  }
}

// Nothing is run: the code of every instruction set must come out without a symbol that nothing defines.
TEST(RandomKernels, CompileForEveryIsa) {
  for (const Isa& isa : all_isas()) {
    sym::Context symbols;
    std::deque<kir::Kernel> kernels;
    std::vector<const kir::Kernel*> pointers;
    for (uint64_t i = 0; i < 48; ++i) {
      kernels.push_back(kir::testing::random_kernel(symbols, 1000 + i));
      kernels.back().name = fmt::format("random_{}", i);
      pointers.push_back(&kernels.back());
    }
    program::Image image = compile(pointers, isa, 2);
    EXPECT_EQ(image.entries.size(), kernels.size());
    EXPECT_EQ(image.code, compile(pointers, isa, 1).code) << "depends on the number of threads";
    fmt::print("[  COUNT   ] {}: {} kernels, {} bytes\n", isa.name, kernels.size(), image.code.size());
  }
}

}  // namespace
}  // namespace selkie::codegen::cpu
