// What kernels do as they store: every one with a finish against the same one without, finished afterwards.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/convolution_reference.h"
#include "kernels/depthwise.h"
#include "kernels/gemm.h"
#include "kernels/grouped.h"
#include "kernels/winograd.h"

namespace selkie::kernels {
namespace {

using namespace testing;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

float finished(float plain, float addend, const Finish& finish) {
  float x = plain + addend;
  x = x < finish.low ? finish.low : x;
  return x > finish.high ? finish.high : x;
}

Finish random_bounds(Random& random) {
  Finish finish;
  if (pick(random, 0, 2)) finish.low = 0;
  if (pick(random, 0, 1)) finish.high = pick(random, 0, 1) ? 1.0f : infinity;
  return finish;
}

// run(finish, output) for some elements: plain, then with bounds, an addend, and an addend that is the output itself.
template <class Run>
void compare(int64_t elements, bool can_add, Random& random, Run run) {
  Guarded plain(elements);
  run(Finish{}, plain.data());
  Guarded addend(elements, random);
  for (int64_t i = 0; i < elements; i += 37) addend.data()[i] = not_a_number;
  for (int way = 0; way < (can_add ? 3 : 1); ++way) {
    SCOPED_TRACE(way == 0 ? "clamped" : way == 1 ? "added" : "added in place");
    Guarded output(elements);
    Finish finish = random_bounds(random);
    if (way == 1) finish.addend = addend.data();
    if (way == 2) {
      std::copy_n(addend.data(), elements, output.data());
      finish.addend = output.data();
    }
    run(finish, output.data());
    for (int64_t i = 0; i < elements; ++i) {
      float want = finished(plain[i], way ? addend[i] : 0.0f, finish);
      if (std::isnan(want))
        ASSERT_TRUE(std::isnan(output[i])) << "element " << i;
      else
        ASSERT_NEAR(output[i], want, 1e-4) << "element " << i;
    }
  }
}

TEST(Finish, Products) {
  Random random(31);
  for (const KernelTable* table : tested_tables()) {
    for (int i = 0; i < 60; ++i) {
      int64_t m = pick(random, 1, pick(random, 0, 3) ? 30 : 400);
      int64_t n = pick(random, 1, 300);
      int64_t k = pick(random, 0, 5) ? pick(random, 0, 70) : pick(random, 1, 3) * 1024;
      int threads = static_cast<int>(pick(random, 1, 3));
      SCOPED_TRACE(fmt::format("{} {}x{}x{} threads {}", table->name, m, n, k, threads));
      Guarded a(m * k, random);
      Guarded b(k * n, random);
      Guarded bias(n, random);
      Guarded packed(static_cast<int64_t>(packed_b_elements(*table, k, n)));
      pack_b(*table, b.data(), n, 1, k, n, packed.data());
      compare(m * n, true, random, [&](const Finish& finish, float* c) {
        Gemm gemm{.m = m,
                  .n = n,
                  .k = k,
                  .a = a.data(),
                  .a_row_stride = k,
                  .packed_b = packed.data(),
                  .c = c,
                  .c_row_stride = n,
                  .bias = bias.data(),
                  .finish = finish,
                  .epilogue = {}};
        GemmPlan plan = plan_gemm(*table, gemm, threads);
        TestScratch scratch(plan.scratch_bytes);
        run_gemm(*table, gemm, plan, 0, plan.tasks(), scratch.data());
      });
    }
  }
}

ConvolutionShape random_shape(Random& random, int64_t channels, int64_t filters, int64_t groups) {
  int64_t stride = pick(random, 1, 2);
  ConvolutionShape shape{.batch = pick(random, 1, 2),
                         .input_channels = channels,
                         .output_channels = filters,
                         .groups = groups,
                         .input = {1, pick(random, 1, 20), pick(random, 1, 20)},
                         .kernel = {1, 3, 3},
                         .stride = {1, stride, stride},
                         .pad = {0, 1, 1}};
  set_output(shape, {0, 1, 1});
  return shape;
}

enum class Kind { direct, winograd, depthwise, grouped };

void check_convolution(const KernelTable& table, const ConvolutionShape& s, Kind kind, Random& random) {
  SCOPED_TRACE(fmt::format("{} {}x{} channels {} -> {} stride {}", table.name, s.input[1], s.input[2], s.input_channels,
                           s.output_channels, s.stride[2]));
  Guarded input(s.batch * s.input[1] * s.input[2] * s.input_channels, random);
  Guarded weights(s.output_channels * (s.input_channels / s.groups) * 9, random);
  Guarded bias(s.output_channels, random);
  Guarded packed(static_cast<int64_t>(kind == Kind::winograd
                                          ? winograd_weight_elements(table, s, WinogradWeights::transformed)
                                      : kind == Kind::depthwise ? packed_depthwise_elements(s)
                                      : kind == Kind::grouped   ? packed_grouped_elements(table, s)
                                                                : packed_convolution_elements(table, s)));
  if (kind == Kind::winograd)
    winograd_transform_weights(table, s, WinogradWeights::transformed, weights.data(), packed.data());
  else if (kind == Kind::depthwise)
    pack_depthwise(s, weights.data(), packed.data());
  else if (kind == Kind::grouped)
    pack_grouped(table, s, weights.data(), packed.data());
  else
    pack_convolution(table, s, weights.data(), packed.data());
  compare(s.output_pixels() * s.output_channels, kind != Kind::depthwise, random,
          [&](const Finish& finish, float* output) {
            Convolution call{.shape = s,
                             .input = input.data(),
                             .input_pixel_stride = s.input_channels,
                             .packed_weights = packed.data(),
                             .bias = bias.data(),
                             .output = output,
                             .output_pixel_stride = s.output_channels,
                             .finish = finish,
                             .epilogue = {}};
            if (kind == Kind::winograd) {
              WinogradPlan plan = plan_winograd(table, call, WinogradWeights::transformed, 2);
              TestScratch scratch(plan.scratch_bytes);
              run_winograd(table, call, plan, 0, plan.tasks, nullptr, scratch.data());
            } else if (kind == Kind::depthwise) {
              DepthwisePlan plan = plan_depthwise(call, 2);
              TestScratch scratch(plan.scratch_bytes);
              run_depthwise(table, call, plan, 0, plan.tasks, scratch.data());
            } else if (kind == Kind::grouped) {
              GroupedPlan plan = plan_grouped(table, call, 2);
              TestScratch scratch(plan.scratch_bytes);
              run_grouped(table, call, plan, 0, plan.tasks(), scratch.data());
            } else {
              ConvolutionPlan plan = plan_convolution(table, call, 2);
              TestScratch scratch(plan.scratch_bytes);
              run_convolution(table, call, plan, 0, plan.tasks(), scratch.data());
            }
          });
}

TEST(Finish, Convolutions) {
  Random random(32);
  for (const KernelTable* table : tested_tables())
    for (int i = 0; i < 20; ++i)
      check_convolution(*table, random_shape(random, pick(random, 1, 40), pick(random, 1, 150), 1), Kind::direct,
                        random);
}

TEST(Finish, Winograd) {
  Random random(33);
  for (const KernelTable* table : tested_tables())
    for (int i = 0; i < 20; ++i)
      check_convolution(*table, random_shape(random, pick(random, 16, 40), pick(random, 16, 70), 1), Kind::winograd,
                        random);
}

TEST(Finish, Grouped) {
  Random random(35);
  for (const KernelTable* table : tested_tables())
    for (int i = 0; i < 20; ++i) {
      int64_t groups = pick(random, 2, 9);
      ConvolutionShape shape = random_shape(random, groups * pick(random, 1, 20), groups * pick(random, 1, 20), groups);
      check_convolution(*table, shape, Kind::grouped, random);
    }
}

TEST(Finish, Depthwise) {
  Random random(34);
  for (const KernelTable* table : tested_tables())
    for (int i = 0; i < 20; ++i) {
      int64_t channels = pick(random, 1, 70);
      check_convolution(*table, random_shape(random, channels, channels, channels), Kind::depthwise, random);
    }
}

}  // namespace
}  // namespace selkie::kernels
