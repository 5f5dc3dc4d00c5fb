// Library kernels of a run: matrix products, batched and broadcast, and convolutions, shared among threads.
#pragma once

#include "kernels/attention.h"
#include "kernels/chain.h"
#include "kernels/convolution.h"
#include "kernels/gemm.h"
#include "kernels/half_gemm.h"
#include "kernels/integer_gemm.h"
#include "kernels/recurrent.h"
#include "kernels/versions.h"
#include "runtime/workers.h"

namespace selkie::runtime {

// Strides are in elements.
struct Product {
  struct Batch {
    int64_t extent;
    int64_t a_stride, b_stride, c_stride;
  };
  kernels::Gemm matrices;  // the first of each
  std::vector<Batch> batch;
};

class Library {
 public:
  explicit Library(Workers& workers) : table_(kernels::table(kernels::best_isa())), workers_(workers) {}

  void run(const Product& product);
  void run(const kernels::HalfGemm& gemm);
  // Weights that lie as ONNX has them, as `version` takes them; they last until the next call.
  const float* packed(const kernels::ConvolutionShape& shape, const float* weights,
                      kernels::ConvolutionVersion version);
  // With weights as `version` takes them.
  void run(const kernels::Convolution& convolution, kernels::ConvolutionVersion version);
  void run(std::span<const kernels::ChainLink> chain);
  void run(const kernels::IntegerProduct& product);
  void run(const kernels::Attention& attention);
  void run(const kernels::Recurrent& recurrent);

 private:
  void run_one(const kernels::Gemm& gemm);
  void run_strassen(const kernels::Gemm& gemm);
  void run_winograd(const kernels::Convolution& convolution, kernels::WinogradWeights weights);
  void run_matrices(const Product& product, int64_t begin, int64_t end, const kernels::GemmPlan& plan,
                    std::byte* scratch);

  const kernels::KernelTable& table_;
  Workers& workers_;
  Scratch memory_;  // that stages of one call share
  std::vector<float> packed_;
};

}  // namespace selkie::runtime
