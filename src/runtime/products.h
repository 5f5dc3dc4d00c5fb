// Matrix products of a run, batched and broadcast, through the library's kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/gemm.h"

namespace selkie::runtime {

struct Product {
  const float* a;
  const float* b;
  float* c;
  int64_t m, n, k;
  bool packed;  // b is one packed matrix
  bool transposed_b;
  const float* bias;  // of n elements, or null
  std::vector<int64_t> batch = {};
  std::vector<int64_t> a_strides = {};  // in matrices, per batch dim
  std::vector<int64_t> b_strides = {};
};

class Products {
 public:
  Products();
  void run(const Product& product);

 private:
  void run_one(const Product& product, const float* a, const float* b, float* c);
  std::byte* scratch(size_t bytes);

  const kernels::KernelTable& table_;
  std::vector<std::byte> scratch_;
};

}  // namespace selkie::runtime
