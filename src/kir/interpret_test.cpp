// What the interpreter computes and refuses.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "kir/interpret.h"
#include "kir/scalar.h"

namespace selkie::kir {
namespace {

template <class T>
BufferView view(std::vector<T>& values) {
  return {.data = values.data(), .count = static_cast<int64_t>(values.size())};
}

TEST(Interpret, AddRelu) {
  sym::Context symbols;
  Kernel kernel = kir::parse(symbols, R"(kernel @add_relu(a: f32[M*N], b: f32[N], out c: f32[M*N]) sizes(M, N) {
    range i < M { vector j < N { c[N*i + j] = max(add(a[N*i + j], b[j]), f32 0) } } })");
  verify(kernel);
  std::vector<float> a{1, -2, 3, 4, -5, 6};
  std::vector<float> b{1, 1, -10};
  std::vector<float> c(6, 99);
  BufferView buffers[] = {view(a), view(b), view(c)};
  int64_t sizes[] = {2, 3};
  int64_t second_row[] = {1, 2};
  interpret(kernel, buffers, sizes, second_row);
  EXPECT_EQ(c, (std::vector<float>{99, 99, 99, 5, 0, 0}));
  int64_t all[] = {0, 2};
  interpret(kernel, buffers, sizes, all);
  EXPECT_EQ(c, (std::vector<float>{2, 0, 0, 5, 0, 0}));
}

TEST(Interpret, ChecksEveryAccess) {
  sym::Context symbols;
  Kernel kernel = kir::parse(symbols, R"(kernel @shift(a: f32[N], out c: f32[N]) sizes(N) {
    serial i < N { c[i] = load_if(a[i + 1], less([i + 1], [N + 1]), f32 0) } })");
  std::vector<float> a(3, 1);
  std::vector<float> c(3, 0);
  BufferView buffers[] = {view(a), view(c)};
  int64_t sizes[] = {3};
  try {
    interpret(kernel, buffers, sizes, {});
    ADD_FAILURE() << "an access outside of a buffer was not found";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "kernel shift accesses element 3 of a, which has 3");
  }
  EXPECT_THROW(interpret(kernel, buffers, {}, {}), Error);
  EXPECT_THROW(interpret(kernel, {buffers, 1}, sizes, {}), Error);
}

TEST(Interpret, LocalsLoopsAndBranches) {
  sym::Context symbols;
  Kernel kernel = kir::parse(symbols, R"(kernel @k(a: i32[N], out c: i32[2]) sizes(N) {
    local sum: i32 = i32 0
    local odd: i32 = i32 0
    serial i < N {
      sum add= a[i]
      if equal(mod(a[i], i32 2), i32 1) { odd = add(odd, i32 1) }
    }
    c[0] = sum
    c[1] = odd })");
  verify(kernel);
  std::vector<int32_t> a{1, 2, 3, 2147483647};
  std::vector<int32_t> c(2);
  BufferView buffers[] = {view(a), view(c)};
  int64_t sizes[] = {4};
  interpret(kernel, buffers, sizes, {});
  EXPECT_EQ(c, (std::vector<int32_t>{-2147483643, 3}));
}

int64_t apply(Op op, DType dtype, int64_t a, int64_t b) {
  Scalar operands[] = {{.whole = a}, {.whole = b}};
  return apply_scalar(op, dtype, operands).whole;
}

TEST(Scalar, IntegerCorners) {
  EXPECT_EQ(apply(Op::div, DType::i32, 7, 0), 0);
  EXPECT_EQ(apply(Op::mod, DType::i32, 7, 0), 0);
  EXPECT_EQ(apply(Op::div, DType::i32, INT32_MIN, -1), INT32_MIN);
  EXPECT_EQ(apply(Op::mod, DType::i64, INT64_MIN, -1), 0);
  EXPECT_EQ(apply(Op::mod, DType::i64, -7, 3), -1);
  EXPECT_EQ(apply(Op::add, DType::i8, 127, 1), -128);
  EXPECT_EQ(apply(Op::sub, DType::u8, 0, 1), 255);
  EXPECT_EQ(apply(Op::less, DType::u64, -1, 1), 0);
  EXPECT_EQ(apply(Op::shift_left, DType::i32, 1, 32), 0);
  EXPECT_EQ(apply(Op::shift_right, DType::i32, -8, 1), -4);
  EXPECT_EQ(apply(Op::shift_right, DType::i32, -8, 40), 0);
}

TEST(Scalar, Casts) {
  auto cast = [](DType to, double value) { return cast_scalar(DType::f64, to, {.real = value}).whole; };
  EXPECT_EQ(cast(DType::i8, 1000), 127);
  EXPECT_EQ(cast(DType::i8, -1000), -128);
  EXPECT_EQ(cast(DType::u8, -3), 0);
  EXPECT_EQ(cast(DType::i64, 1e30), INT64_MAX);
  EXPECT_EQ(cast(DType::i64, -1e30), INT64_MIN);
  EXPECT_EQ(static_cast<uint64_t>(cast(DType::u64, 1e30)), UINT64_MAX);
  EXPECT_EQ(static_cast<uint64_t>(cast(DType::u64, 1e19)), 10000000000000000000U);
  EXPECT_EQ(cast(DType::i32, std::nan("")), 0);
  EXPECT_EQ(cast(DType::i32, -2.9), -2);
  EXPECT_EQ(cast(DType::boolean, std::nan("")), 1);
  EXPECT_EQ(cast_scalar(DType::f64, DType::f16, {.real = 65520}).real, std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace selkie::kir
