#include "runtime/library.h"

#include <algorithm>
#include <optional>

#include "kernels/depthwise.h"
#include "kernels/grouped.h"
#include "kernels/strassen.h"
#include "kernels/winograd.h"

namespace selkie::runtime {

void Library::run_one(const kernels::Gemm& gemm) {
  if (kernels::strassen_wins(table_, gemm)) return run_strassen(gemm);
  kernels::GemmPlan plan = kernels::plan_gemm(table_, gemm, workers_.threads());
  workers_.run(plan.tasks(), plan.scratch_bytes, [&](int64_t begin, int64_t end, std::byte* scratch) {
    kernels::run_gemm(table_, gemm, plan, begin, end, scratch);
  });
}

void Library::run_strassen(const kernels::Gemm& gemm) {
  kernels::StrassenPlan plan = kernels::plan_strassen(table_, gemm, workers_.threads());
  void* memory = memory_.provide(plan.memory_bytes);
  for (int64_t step = 0; step < plan.steps(); ++step) {
    workers_.run(plan.sum_tasks(), 0, [&](int64_t begin, int64_t end, std::byte*) {
      kernels::run_strassen_sums(table_, gemm, plan, step, begin, end, memory);
    });
    workers_.run(plan.product_tasks(table_, gemm), plan.scratch_bytes,
                 [&](int64_t begin, int64_t end, std::byte* scratch) {
                   kernels::run_strassen_products(table_, gemm, plan, step, begin, end, memory, scratch);
                 });
  }
}

void Library::run_matrices(const Product& product, int64_t begin, int64_t end, const kernels::GemmPlan& plan,
                           std::byte* scratch) {
  for (int64_t i = begin; i < end; ++i) {
    kernels::Gemm gemm = product.matrices;
    int64_t rest = i;
    for (size_t axis = product.batch.size(); axis-- > 0;) {
      const Product::Batch& batch = product.batch[axis];
      int64_t at = rest % batch.extent;
      rest /= batch.extent;
      gemm.a += at * batch.a_stride;
      gemm.b += at * batch.b_stride;
      gemm.c += at * batch.c_stride;
    }
    kernels::run_gemm(table_, gemm, plan, 0, plan.tasks(), scratch);
  }
}

void Library::run(const Product& product) {
  int64_t count = 1;
  for (const Product::Batch& batch : product.batch) count *= batch.extent;
  if (count == 0) return;
  if (count == 1) return run_one(product.matrices);
  // Whole matrices are the tasks.
  kernels::GemmPlan plan = kernels::plan_gemm(table_, product.matrices, 1);
  workers_.run(count, plan.scratch_bytes, [&](int64_t begin, int64_t end, std::byte* scratch) {
    run_matrices(product, begin, end, plan, scratch);
  });
}

void Library::run(const kernels::HalfGemm& gemm) {
  kernels::HalfPlan plan = kernels::plan_half_gemm(table_, gemm, workers_.threads());
  workers_.run(plan.tasks, plan.scratch_bytes, [&](int64_t begin, int64_t end, std::byte* scratch) {
    kernels::run_half_gemm(table_, gemm, plan, begin, end, scratch);
  });
}

const float* Library::packed(const kernels::ConvolutionShape& shape, const float* weights,
                             kernels::ConvolutionVersion version) {
  using Version = kernels::ConvolutionVersion;
  auto pack = [&](size_t elements, auto into) {
    packed_.resize(std::max(packed_.size(), elements));
    into(packed_.data());
    return packed_.data();
  };
  if (version == Version::depthwise)
    return pack(kernels::packed_depthwise_elements(shape), [&](float* to) { pack_depthwise(shape, weights, to); });
  if (version == Version::grouped)
    return pack(kernels::packed_grouped_elements(table_, shape),
                [&](float* to) { pack_grouped(table_, shape, weights, to); });
  return pack(kernels::packed_convolution_elements(table_, shape),
              [&](float* to) { pack_convolution(table_, shape, weights, to); });
}

void Library::run(const kernels::Convolution& convolution, kernels::ConvolutionVersion version) {
  int threads = workers_.threads();
  if (convolution.shape.output_pixels() == 0) return;
  using Version = kernels::ConvolutionVersion;
  if (version == Version::strassen) return run_strassen(kernels::product_of(convolution));
  if (version == Version::depthwise) {
    kernels::DepthwisePlan plan = kernels::plan_depthwise(convolution, threads);
    return workers_.run(plan.tasks, plan.scratch_bytes, [&](int64_t begin, int64_t end, std::byte* scratch) {
      kernels::run_depthwise(table_, convolution, plan, begin, end, scratch);
    });
  }
  if (version == Version::grouped) {
    kernels::GroupedPlan plan = kernels::plan_grouped(table_, convolution, threads);
    return workers_.run(plan.tasks(), plan.scratch_bytes, [&](int64_t begin, int64_t end, std::byte* scratch) {
      kernels::run_grouped(table_, convolution, plan, begin, end, scratch);
    });
  }
  if (std::optional<kernels::WinogradWeights> weights = kernels::winograd_weights(version))
    return run_winograd(convolution, *weights);
  kernels::ConvolutionPlan plan = kernels::plan_convolution(table_, convolution, threads);
  workers_.run(plan.tasks(), plan.scratch_bytes, [&](int64_t begin, int64_t end, std::byte* scratch) {
    kernels::run_convolution(table_, convolution, plan, begin, end, scratch);
  });
}

void Library::run_winograd(const kernels::Convolution& convolution, kernels::WinogradWeights weights) {
  kernels::WinogradPlan plan = kernels::plan_winograd(table_, convolution, weights, workers_.threads());
  void* memory = memory_.provide(plan.memory_bytes);
  workers_.run(plan.weight_tasks, 0, [&](int64_t begin, int64_t end, std::byte*) {
    kernels::run_winograd_weights(table_, convolution, plan, begin, end, memory);
  });
  workers_.run(plan.tasks, plan.scratch_bytes, [&](int64_t begin, int64_t end, std::byte* scratch) {
    kernels::run_winograd(table_, convolution, plan, begin, end, memory, scratch);
  });
}

void Library::run(std::span<const kernels::ChainLink> chain) {
  kernels::ChainPlan plan = kernels::plan_chain(table_, chain, workers_.threads());
  workers_.run(plan.tasks, plan.scratch_bytes, [&](int64_t begin, int64_t end, std::byte* scratch) {
    kernels::run_chain(table_, chain, plan, begin, end, scratch);
  });
}

void Library::run(const kernels::Attention& attention) {
  kernels::AttentionPlan plan = kernels::plan_attention(table_, attention, workers_.threads());
  workers_.run(plan.tasks, plan.scratch_bytes, [&](int64_t begin, int64_t end, std::byte* scratch) {
    kernels::run_attention(table_, attention, plan, begin, end, scratch);
  });
}

void Library::run(const kernels::IntegerProduct& product) {
  const kernels::IntegerTable& table = kernels::best_integer_table();
  kernels::IntegerPlan plan = kernels::plan_integer(table, product, workers_.threads());
  void* memory = memory_.provide(plan.memory_bytes);
  for (int64_t stage = 0; stage < kernels::IntegerPlan::stages; ++stage)
    workers_.run(plan.tasks(stage), plan.scratch_bytes, [&](int64_t begin, int64_t end, std::byte* scratch) {
      kernels::run_integer_stage(table, product, plan, stage, begin, end, memory, scratch);
    });
}

void Library::run(const kernels::Recurrent& recurrent) {
  kernels::RecurrentPlan plan = kernels::plan_recurrent(table_, recurrent, workers_.threads());
  void* memory = memory_.provide(plan.memory_bytes);
  for (int64_t stage = 0; stage < plan.stages(); ++stage)
    workers_.run(plan.tasks(stage), plan.scratch_bytes, [&](int64_t begin, int64_t end, std::byte* scratch) {
      kernels::run_recurrent_stage(table_, recurrent, plan, stage, begin, end, memory, scratch);
    });
}

}  // namespace selkie::runtime
