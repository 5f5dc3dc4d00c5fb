#include "ops/support/gemm.h"

#include <algorithm>
#include <vector>

#include "base/convert.h"
#include "ops/support/shape.h"

// One clone per instruction set, chosen at load. Sanitizers do not support the resolver that does so.
#if defined(__x86_64__) && !defined(SELKIE_ABORT_ON_BUG)
#define SELKIE_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define SELKIE_CLONES
#endif

namespace selkie::ops {
namespace {

// acc[j] += Σ_p a[p] · b[p, j] for one row and a block of columns.
SELKIE_CLONES void row_times_block(const float* a, const float* b, int64_t ldb, double* acc, int64_t n, int64_t k) {
  for (int64_t p = 0; p < k; ++p) {
    double x = a[p];
    const float* row = b + p * ldb;
    for (int64_t j = 0; j < n; ++j) acc[j] += x * static_cast<double>(row[j]);
  }
}

template <class T>
void row_times_block(const T* a, const T* b, int64_t ldb, T* acc, int64_t n, int64_t k) {
  for (int64_t p = 0; p < k; ++p) {
    T x = a[p];
    const T* row = b + p * ldb;
    for (int64_t j = 0; j < n; ++j) {
      // Signed products wrap, as the dtype does.
      if constexpr (std::is_same_v<T, int64_t>)
        acc[j] = static_cast<int64_t>(static_cast<uint64_t>(acc[j]) +
                                      static_cast<uint64_t>(x) * static_cast<uint64_t>(row[j]));
      else
        acc[j] += x * row[j];
    }
  }
}

// Blocks of b that stay in cache while all rows of a pass by.
template <class T, class Acc>
void blocked(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k) {
  constexpr int64_t columns = 256;
  constexpr int64_t depth = 128;
  std::vector<Acc> acc(static_cast<size_t>(m * std::min(n, columns)));
  for (int64_t j = 0; j < n; j += columns) {
    int64_t width = std::min(columns, n - j);
    std::fill(acc.begin(), acc.end(), Acc{});
    for (int64_t p = 0; p < k; p += depth)
      for (int64_t i = 0; i < m; ++i)
        row_times_block(a + i * k + p, b + p * n + j, n, acc.data() + i * width, width, std::min(depth, k - p));
    for (int64_t i = 0; i < m; ++i)
      for (int64_t q = 0; q < width; ++q) c[i * n + j + q] = static_cast<T>(acc[static_cast<size_t>(i * width + q)]);
  }
}

}  // namespace

void gemm(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k) {
  blocked<float, double>(a, b, c, m, n, k);
}
void gemm(const double* a, const double* b, double* c, int64_t m, int64_t n, int64_t k) {
  blocked<double, double>(a, b, c, m, n, k);
}
void gemm(const int64_t* a, const int64_t* b, int64_t* c, int64_t m, int64_t n, int64_t k) {
  blocked<int64_t, int64_t>(a, b, c, m, n, k);
}
void gemm(const uint64_t* a, const uint64_t* b, uint64_t* c, int64_t m, int64_t n, int64_t k) {
  blocked<uint64_t, uint64_t>(a, b, c, m, n, k);
}

Tensor matmul(const Tensor& a, const Tensor& b) {
  if (a.rank() == 0 || b.rank() == 0) fail("scalars cannot be multiplied as matrices");
  Tensor x = a.rank() == 1 ? a.reshaped({1, a.dim(0)}) : a;
  Tensor y = b.rank() == 1 ? b.reshaped({b.dim(0), 1}) : b;
  int64_t m = x.dim(x.rank() - 2);
  int64_t k = x.dim(x.rank() - 1);
  int64_t n = y.dim(y.rank() - 1);
  if (y.dim(y.rank() - 2) != k)
    fail("shapes {} and {} do not multiply: {} is not {}", to_string(a.dims()), to_string(b.dims()), k,
         y.dim(y.rank() - 2));
  Dims batch =
      broadcast(std::span(x.dims()).first(x.dims().size() - 2), std::span(y.dims()).first(y.dims().size() - 2));
  auto batch_strides = [&](const Tensor& t, int64_t matrix) {
    std::vector<int64_t> strides = broadcast_strides(std::span(t.dims()).first(t.dims().size() - 2), batch);
    for (int64_t& s : strides) s *= matrix;
    return strides;
  };
  Dims full = batch;
  full.insert(full.end(), {m, n});
  auto run = [&](auto tag) {
    using W = typename decltype(tag)::type;
    bool direct = std::is_same_v<W, float>;
    std::vector<W> wide_x = direct ? std::vector<W>{} : widen<W>(x);
    std::vector<W> wide_y = direct ? std::vector<W>{} : widen<W>(y);
    const W* px = wide_x.data();
    const W* py = wide_y.data();
    if constexpr (std::is_same_v<W, float>) {
      px = x.data<float>();
      py = y.data<float>();
    }
    std::vector<W> out(static_cast<size_t>(element_count(full)));
    W* at = out.data();
    Walk<2> walk(batch, {batch_strides(x, m * k), batch_strides(y, k * n)});
    for (; !walk.done(); walk.next(), at += m * n) gemm(px + walk.offset(0), py + walk.offset(1), at, m, n, k);
    return narrow<W>(out, a.dtype(), full);
  };
  Tensor result = a.dtype() == DType::f32 ? run(TypeTag<float>{}) : dispatch_number(a.dtype(), run);
  Dims dims = batch;
  if (a.rank() > 1) dims.push_back(m);
  if (b.rank() > 1) dims.push_back(n);
  return result.reshaped(dims);
}

}  // namespace selkie::ops
