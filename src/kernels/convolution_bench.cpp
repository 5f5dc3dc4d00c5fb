// Convolutions of image networks: direct, depthwise and Winograd's.
#include "kernels/bench_support.h"
#include "kernels/block.h"
#include "kernels/convolution.h"
#include "kernels/depthwise.h"
#include "kernels/grouped.h"
#include "kernels/winograd.h"

namespace selkie::kernels::bench {
namespace {

ConvolutionShape square(int64_t size, int64_t channels, int64_t filters, int64_t kernel, int64_t stride) {
  int64_t output = (size - 1) / stride + 1;
  int64_t pad = (kernel - 1) / 2;
  return {.input_channels = channels,
          .output_channels = filters,
          .input = {1, size, size},
          .output = {1, output, output},
          .kernel = {1, kernel, kernel},
          .stride = {1, stride, stride},
          .pad = {0, pad, pad}};
}

std::string text(const ConvolutionShape& s) {
  return fmt::format("{}^2 {}->{} {}x{} s{}", s.input[1], s.input_channels, s.output_channels, s.kernel[1], s.kernel[2],
                     s.stride[1]);
}

typedef float EightFloats __attribute__((vector_size(32), aligned(4), may_alias));

// Values between 0 and 6, as after most convolutions of small networks.
#if defined(__x86_64__)
__attribute__((target_clones("default", "avx2")))
#endif
void clip(void* const* buffers, const int64_t* sizes, const int64_t* ranges) {
  auto* output = static_cast<float*>(buffers[0]);
  const EightFloats zero = {};
  const EightFloats six = zero + 6.0f;
  for (int64_t row = ranges[0]; row < ranges[1]; ++row) {
    for (int64_t column = ranges[2]; column + 8 <= ranges[3]; column += 8) {
      auto* at = reinterpret_cast<EightFloats*>(output + row * sizes[0] + column);
      EightFloats positive = *at > zero ? *at : zero;
      *at = positive < six ? positive : six;
    }
  }
}

// A convolution with memory of its own and a clip after it.
struct Problem {
  Problem(const ConvolutionShape& shape, size_t packed_elements)
      : input(random_floats(shape.input[1] * shape.input[2] * shape.input_channels, 1)),
        weights(random_floats(shape.output_channels * products(shape), 2)),
        bias(random_floats(shape.output_channels, 3)),
        packed(packed_elements),
        output(static_cast<size_t>(shape.output_pixels() * shape.output_channels)),
        buffers{output.data()},
        sizes{shape.output_channels},
        convolution{.shape = shape,
                    .input = input.data(),
                    .input_pixel_stride = shape.input_channels,
                    .packed_weights = packed.data(),
                    .bias = bias.data(),
                    .output = output.data(),
                    .output_pixel_stride = shape.output_channels,
                    .epilogue = {.function = clip, .buffers = buffers, .sizes = sizes}} {}

  static int64_t products(const ConvolutionShape& shape) {
    return shape.taps() * (shape.input_channels / shape.groups);
  }
  // `seconds` with and without the epilogue.
  void report(const Bench& bench, const std::string& kind, std::pair<double, double> seconds) const {
    const ConvolutionShape& shape = convolution.shape;
    auto outputs = static_cast<double>(shape.output_pixels() * shape.output_channels);
    auto inputs = static_cast<double>(shape.input[1] * shape.input[2] * shape.input_channels);
    bench.report(fmt::format("{} {}", kind, text(shape)), 2.0 * outputs * static_cast<double>(products(shape)),
                 4.0 * (outputs + inputs), seconds.second);
    fmt::print("{:36} {:10.1f} us\n", "  with a clip", seconds.first * 1e6);
  }

  Aligned input;
  std::vector<float> weights;
  std::vector<float> bias;
  Aligned packed;
  Aligned output;
  void* buffers[1];
  int64_t sizes[1];
  Convolution convolution;
};

// Seconds, without an epilogue.
double convolution(const Bench& bench, const ConvolutionShape& shape) {
  Problem problem(shape, packed_convolution_elements(bench.table, shape));
  pack_convolution(bench.table, shape, problem.weights.data(), problem.packed.data());
  ConvolutionPlan plan = plan_convolution(bench.table, problem.convolution, 1);
  Aligned scratch(plan.scratch_bytes / 4);
  Convolution bare = problem.convolution;
  bare.epilogue = {};
  auto run = [&](const Convolution& made, int64_t task) {
    run_convolution(bench.table, made, plan, task, task + 1, scratch.data());
  };
  auto seconds = best_of_turns(
      plan.tasks(), [&](int64_t task) { run(problem.convolution, task); }, [&](int64_t task) { run(bare, task); });
  problem.report(bench, "conv", seconds);
  return seconds.second;
}

void depthwise(const Bench& bench, ConvolutionShape shape) {
  shape.groups = shape.input_channels;
  Problem problem(shape, packed_depthwise_elements(shape));
  pack_depthwise(shape, problem.weights.data(), problem.packed.data());
  DepthwisePlan plan = plan_depthwise(problem.convolution, 1);
  Aligned scratch(plan.scratch_bytes / 4);
  Convolution bare = problem.convolution;
  bare.epilogue = {};
  auto run = [&](const Convolution& made) { run_depthwise(bench.table, made, plan, 0, plan.tasks, scratch.data()); };
  problem.report(bench, "depthwise",
                 best_of_turns(1, [&](int64_t) { run(problem.convolution); }, [&](int64_t) { run(bare); }));
}

void grouped(const Bench& bench, ConvolutionShape shape, int64_t groups) {
  shape.groups = groups;
  Problem problem(shape, packed_grouped_elements(bench.table, shape));
  Problem direct(shape, packed_convolution_elements(bench.table, shape));
  pack_grouped(bench.table, shape, problem.weights.data(), problem.packed.data());
  pack_convolution(bench.table, shape, direct.weights.data(), direct.packed.data());
  problem.convolution.epilogue = direct.convolution.epilogue = {};
  GroupedPlan plan = plan_grouped(bench.table, problem.convolution, 1);
  ConvolutionPlan direct_plan = plan_convolution(bench.table, direct.convolution, 1);
  Aligned scratch(std::max(plan.scratch_bytes, direct_plan.scratch_bytes) / 4);
  auto [seconds, direct_seconds] = best_of_turns(
      1, [&](int64_t) { run_grouped(bench.table, problem.convolution, plan, 0, plan.tasks(), scratch.data()); },
      [&](int64_t) {
        run_convolution(bench.table, direct.convolution, direct_plan, 0, direct_plan.tasks(), scratch.data());
      });
  auto outputs = static_cast<double>(shape.output_pixels() * shape.output_channels);
  auto inputs = static_cast<double>(shape.input[1] * shape.input[2] * shape.input_channels);
  bench.report(fmt::format("grouped {}, {} of {}{}", text(shape), groups, shape.input_channels / groups,
                           takes_grouped(bench.table, shape) ? "" : " (not chosen)"),
               2.0 * outputs * static_cast<double>(Problem::products(shape)), 4.0 * (outputs + inputs), seconds);
  fmt::print("{:36} {:10.1f} us, {:.2f} times\n", "  by the direct kernel", direct_seconds * 1e6,
             direct_seconds / seconds);
}

std::string_view name(WinogradWeights form) {
  if (is_for_six(form)) return is_packed(form) ? " of 6x6 packed" : " of 6x6";
  return is_packed(form) ? " packed" : "";
}

// GFLOP/s are those of the direct sum, so that ratios to "conv" are ratios of times.
void winograd(const Bench& bench, const ConvolutionShape& shape, WinogradWeights form, double direct) {
  bool transformed = !is_packed(form);
  std::vector<float> input = random_floats(shape.input[1] * shape.input[2] * shape.input_channels, 1);
  std::vector<float> weights = random_floats(shape.output_channels * shape.input_channels * 9, 2);
  std::vector<float> bias = random_floats(shape.output_channels, 3);
  Aligned packed(transformed ? winograd_weight_elements(bench.table, shape, form)
                             : packed_convolution_elements(bench.table, shape));
  if (transformed)
    winograd_transform_weights(bench.table, shape, form, weights.data(), packed.data());
  else
    pack_convolution(bench.table, shape, weights.data(), packed.data());
  int64_t outputs = shape.output_pixels() * shape.output_channels;
  Aligned output(static_cast<size_t>(outputs));
  Convolution problem{.shape = shape,
                      .input = input.data(),
                      .input_pixel_stride = shape.input_channels,
                      .packed_weights = packed.data(),
                      .bias = bias.data(),
                      .output = output.data(),
                      .output_pixel_stride = shape.output_channels};
  WinogradPlan plan = plan_winograd(bench.table, problem, form, 1);
  Aligned scratch(plan.scratch_bytes / 4);
  Aligned memory(plan.memory_bytes / 4);
  double seconds = best_of_tasks(1, [&](int64_t) {
    run_winograd_weights(bench.table, problem, plan, 0, plan.weight_tasks, memory.data());
    run_winograd(bench.table, problem, plan, 0, plan.tasks, memory.data(), scratch.data());
  });
  bench.report(fmt::format("winograd {}{}{}", text(shape), name(form),
                           winograd_wins(bench.table, shape, form) ? "" : " (not chosen)"),
               18.0 * static_cast<double>(outputs * shape.input_channels),
               4.0 * static_cast<double>(outputs) + 4.0 * static_cast<double>(input.size()), seconds);
  fmt::print("  of the direct kernel's time: {:.2f}, expected {:.2f}\n", seconds / direct,
             winograd_time(bench.table, shape, form));
}

}  // namespace

void convolutions(const Bench& bench) {
  for (auto [size, channels] :
       {std::pair<int64_t, int64_t>{56, 64}, {28, 128}, {14, 256}, {7, 512}, {80, 64}, {40, 128}, {20, 256}})
    convolution(bench, square(size, channels, channels, 3, 1));
  convolution(bench, square(56, 128, 128, 3, 2));
  convolution(bench, square(56, 256, 512, 1, 2));
  for (auto [size, channels, filters] : {std::array<int64_t, 3>{56, 64, 256},
                                         {56, 256, 64},
                                         {28, 512, 128},
                                         {14, 1024, 256},
                                         {7, 2048, 512},
                                         {112, 32, 16},
                                         {112, 16, 96},
                                         {56, 96, 24},
                                         {56, 24, 144},
                                         {56, 144, 24},
                                         {28, 144, 32},
                                         {28, 32, 192},
                                         {14, 192, 64},
                                         {14, 64, 384},
                                         {14, 384, 64},
                                         {14, 576, 96},
                                         {7, 160, 960},
                                         {7, 960, 160},
                                         {7, 320, 1280}})
    convolution(bench, square(size, channels, filters, 1, 1));
}

void stems(const Bench& bench) {
  convolution(bench, square(224, 3, 64, 7, 2));
  convolution(bench, square(224, 3, 32, 3, 2));
  convolution(bench, square(320, 3, 16, 3, 2));
  convolution(bench, square(160, 12, 32, 3, 1));
  convolution(bench, square(320, 3, 32, 6, 2));
  convolution(bench, square(32, 3, 16, 3, 1));
}

void depthwises(const Bench& bench) {
  for (auto [size, channels, kernel, stride] : {std::array<int64_t, 4>{112, 32, 3, 1},
                                                {112, 96, 3, 2},
                                                {56, 144, 3, 1},
                                                {56, 144, 3, 2},
                                                {28, 192, 3, 1},
                                                {14, 384, 3, 1},
                                                {14, 576, 3, 1},
                                                {14, 576, 3, 2},
                                                {7, 960, 3, 1},
                                                {160, 16, 3, 1},
                                                {80, 64, 3, 2},
                                                {40, 128, 3, 1},
                                                {28, 120, 5, 1},
                                                {28, 240, 5, 2},
                                                {20, 256, 5, 1},
                                                {10, 512, 5, 1},
                                                {7, 960, 5, 1},
                                                {14, 480, 7, 1}})
    depthwise(bench, square(size, channels, channels, kernel, stride));
}

void groupeds(const Bench& bench) {
  for (auto [size, channels, stride, groups] : {std::array<int64_t, 4>{56, 128, 1, 32},
                                                {56, 256, 2, 32},
                                                {28, 256, 1, 32},
                                                {28, 512, 2, 32},
                                                {14, 512, 1, 32},
                                                {14, 1024, 2, 32},
                                                {7, 1024, 1, 32},
                                                {28, 256, 1, 128},
                                                {28, 240, 1, 10},
                                                {28, 240, 1, 24},
                                                {28, 232, 1, 29},
                                                {14, 560, 1, 10},
                                                {28, 256, 1, 4},
                                                {14, 512, 1, 2},
                                                {14, 512, 1, 4}})
    grouped(bench, square(size, channels, channels, 3, stride), groups);
  for (auto [size, channels, groups] :
       {std::array<int64_t, 3>{28, 240, 3}, {28, 240, 8}, {28, 240, 30}, {28, 240, 15}, {14, 512, 64}})
    grouped(bench, square(size, channels, channels, 1, 1), groups);
}

void winograds(const Bench& bench) {
  for (auto [size, channels] : {std::pair<int64_t, int64_t>{56, 64},
                                {28, 128},
                                {14, 256},
                                {7, 512},
                                {80, 64},
                                {40, 128},
                                {20, 256},
                                {52, 128},
                                {256, 64},
                                {128, 128},
                                {64, 256},
                                {32, 512},
                                {128, 16},
                                {64, 32},
                                {32, 16},
                                {16, 32},
                                {8, 64}}) {
    for (int64_t stride : {1, 2}) {
      ConvolutionShape shape = square(size * stride, channels, channels, 3, stride);
      double direct = convolution(bench, shape);
      winograd(bench, shape, WinogradWeights::transformed, direct);
      winograd(bench, shape, WinogradWeights::packed, direct);
      if (stride == 2) continue;
      winograd(bench, shape, WinogradWeights::transformed_for_six, direct);
      winograd(bench, shape, WinogradWeights::packed_for_six, direct);
    }
  }
}

}  // namespace selkie::kernels::bench
