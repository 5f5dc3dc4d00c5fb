// How near the kernels come to the roofs of one core, on the shapes of transformers and image networks.
// Pin it to a core: taskset -c 1 kernels_bench [roofs|gemm|convolution|depthwise|winograd|attention|recurrent]… ;
// without a name everything is run.
#include <fmt/core.h>

#include <string_view>

#include "kernels/attention.h"
#include "kernels/bench_support.h"
#include "kernels/block.h"
#include "kernels/convolution.h"
#include "kernels/depthwise.h"
#include "kernels/gemm.h"
#include "kernels/recurrent.h"
#include "kernels/winograd.h"

namespace selkie::kernels::bench {
namespace {

struct Bench {
  const KernelTable& table;
  double roof;

  void report(const std::string& name, double flops, double bytes, double seconds) const {
    double rate = flops / seconds * 1e-9;
    fmt::print("{:36} {:10.1f} us {:8.1f} GFLOP/s {:5.1f} % of FMA roof {:7.1f} GB/s\n", name, seconds * 1e6, rate,
               100 * rate / roof, bytes / seconds * 1e-9);
    std::fflush(stdout);
  }
};

void roofs(const Bench& bench) {
  fmt::print("{}: FMA {:.1f} GFLOP/s; caches {} KB, {} KB\n", bench.table.name, bench.roof, cache_sizes().l1 >> 10,
             cache_sizes().l2 >> 10);
  for (int64_t kilobytes : {16, 256, 1024, 4096, 16384, 262144})
    fmt::print("read {:7} KB {:8.1f} GB/s\n", kilobytes, read_roof(bench.table.isa, kilobytes << 10));
}

// Memory aligned to cache lines.
class Aligned {
 public:
  explicit Aligned(size_t floats) : values_(floats + 16) {}
  explicit Aligned(const std::vector<float>& values) : Aligned(values.size()) {
    std::copy(values.begin(), values.end(), data());
  }
  float* data() { return values_.data() + (64 - reinterpret_cast<uintptr_t>(values_.data()) % 64) / 4 % 16; }

 private:
  std::vector<float> values_;
};

void gemm(const Bench& bench, int64_t m, int64_t n, int64_t k) {
  std::vector<float> a = random_floats(m * k, 1);
  std::vector<float> b = random_floats(k * n, 2);
  std::vector<float> bias = random_floats(n, 3);
  std::vector<float> c(static_cast<size_t>(m * n));
  Aligned packed(packed_b_elements(bench.table, k, n));
  pack_b(bench.table, b.data(), n, 1, k, n, packed.data());
  Gemm problem{.m = m,
               .n = n,
               .k = k,
               .a = a.data(),
               .a_row_stride = k,
               .packed_b = packed.data(),
               .c = c.data(),
               .c_row_stride = n,
               .bias = bias.data()};
  GemmPlan plan = plan_gemm(bench.table, problem, 1);
  Aligned scratch(plan.scratch_bytes / 4);
  double seconds = best_of_tasks(
      plan.tasks(), [&](int64_t task) { run_gemm(bench.table, problem, plan, task, task + 1, scratch.data()); });
  bench.report(fmt::format("gemm {} x {} x {}", m, n, k), 2.0 * static_cast<double>(m * n * k),
               4.0 * static_cast<double>(m * k + k * n + m * n), seconds);
}

void gemms(const Bench& bench) {
  std::vector<int64_t> rows;
  for (int64_t m = 1; m <= 64; ++m) rows.push_back(m);
  rows.insert(rows.end(), {96, 128, 512});
  for (auto [n, k] : {std::pair<int64_t, int64_t>{768, 768}, {3072, 768}, {768, 3072}})
    for (int64_t m : rows) gemm(bench, m, n, k);
}

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

void convolution(const Bench& bench, const ConvolutionShape& shape) {
  int64_t pixels = shape.output_pixels();
  int64_t products = shape.taps() * (shape.input_channels / shape.groups);
  std::vector<float> input = random_floats(shape.input[1] * shape.input[2] * shape.input_channels, 1);
  std::vector<float> weights = random_floats(shape.output_channels * products, 2);
  std::vector<float> bias = random_floats(shape.output_channels, 3);
  Aligned packed(packed_convolution_elements(bench.table, shape));
  pack_convolution(bench.table, shape, weights.data(), packed.data());
  Aligned output(static_cast<size_t>(pixels * shape.output_channels));
  Convolution problem{.shape = shape,
                      .input = input.data(),
                      .input_pixel_stride = shape.input_channels,
                      .packed_weights = packed.data(),
                      .bias = bias.data(),
                      .output = output.data(),
                      .output_pixel_stride = shape.output_channels};
  ConvolutionPlan plan = plan_convolution(bench.table, problem, 1);
  Aligned scratch(plan.scratch_bytes / 4);
  double seconds = best_of_tasks(
      plan.tasks(), [&](int64_t task) { run_convolution(bench.table, problem, plan, task, task + 1, scratch.data()); });
  bench.report("conv " + text(shape), 2.0 * static_cast<double>(pixels * shape.output_channels * products),
               4.0 * static_cast<double>(pixels * shape.output_channels) + 4.0 * static_cast<double>(input.size()),
               seconds);
}

void convolutions(const Bench& bench) {
  for (auto [size, channels] :
       {std::pair<int64_t, int64_t>{56, 64}, {28, 128}, {14, 256}, {7, 512}, {80, 64}, {40, 128}, {20, 256}})
    convolution(bench, square(size, channels, channels, 3, 1));
  convolution(bench, square(56, 128, 128, 3, 2));
  convolution(bench, square(56, 64, 256, 1, 1));
  convolution(bench, square(56, 256, 64, 1, 1));
  convolution(bench, square(28, 512, 128, 1, 1));
  convolution(bench, square(14, 1024, 256, 1, 1));
  convolution(bench, square(7, 2048, 512, 1, 1));
  convolution(bench, square(56, 256, 512, 1, 2));
  convolution(bench, square(112, 16, 96, 1, 1));
  convolution(bench, square(56, 144, 24, 1, 1));
  convolution(bench, square(224, 3, 64, 7, 2));
  convolution(bench, square(224, 3, 32, 3, 2));
}

void depthwise(const Bench& bench, ConvolutionShape shape) {
  shape.groups = shape.input_channels;
  int64_t outputs = shape.output_pixels() * shape.output_channels;
  std::vector<float> input = random_floats(shape.input[1] * shape.input[2] * shape.input_channels, 1);
  std::vector<float> weights = random_floats(shape.output_channels * shape.taps(), 2);
  std::vector<float> bias = random_floats(shape.output_channels, 3);
  Aligned packed(packed_depthwise_elements(shape));
  pack_depthwise(shape, weights.data(), packed.data());
  Aligned output(static_cast<size_t>(outputs));
  Convolution problem{.shape = shape,
                      .input = input.data(),
                      .input_pixel_stride = shape.input_channels,
                      .packed_weights = packed.data(),
                      .bias = bias.data(),
                      .output = output.data(),
                      .output_pixel_stride = shape.output_channels};
  DepthwisePlan plan = plan_depthwise(problem, 1);
  Aligned scratch(plan.scratch_bytes / 4);
  double seconds = best_seconds([&] { run_depthwise(bench.table, problem, plan, 0, plan.tasks, scratch.data()); }, 0.3);
  bench.report("depthwise " + text(shape), 2.0 * static_cast<double>(outputs * shape.taps()),
               4.0 * static_cast<double>(outputs) + 4.0 * static_cast<double>(input.size()), seconds);
}

void depthwises(const Bench& bench) {
  depthwise(bench, square(112, 32, 32, 3, 1));
  depthwise(bench, square(112, 96, 96, 3, 2));
  depthwise(bench, square(56, 144, 144, 3, 1));
  depthwise(bench, square(28, 192, 192, 3, 1));
  depthwise(bench, square(14, 384, 384, 3, 1));
  depthwise(bench, square(14, 576, 576, 3, 1));
  depthwise(bench, square(14, 576, 576, 3, 2));
  depthwise(bench, square(7, 960, 960, 3, 1));
  depthwise(bench, square(28, 120, 120, 5, 1));
  depthwise(bench, square(28, 240, 240, 5, 2));
  depthwise(bench, square(14, 480, 480, 7, 1));
}

// GFLOP/s are those of the direct sum, so that ratios to "conv" are ratios of times.
void winograd(const Bench& bench, const ConvolutionShape& shape) {
  std::vector<float> input = random_floats(shape.input[1] * shape.input[2] * shape.input_channels, 1);
  std::vector<float> weights = random_floats(shape.output_channels * shape.input_channels * 9, 2);
  std::vector<float> bias = random_floats(shape.output_channels, 3);
  Aligned transformed(winograd_weight_elements(bench.table, shape));
  winograd_transform_weights(bench.table, shape, weights.data(), transformed.data());
  int64_t outputs = shape.output_pixels() * shape.output_channels;
  Aligned output(static_cast<size_t>(outputs));
  Convolution problem{.shape = shape,
                      .input = input.data(),
                      .input_pixel_stride = shape.input_channels,
                      .packed_weights = transformed.data(),
                      .bias = bias.data(),
                      .output = output.data(),
                      .output_pixel_stride = shape.output_channels};
  WinogradPlan plan = plan_winograd(bench.table, problem, 1);
  Aligned scratch(plan.scratch_bytes / 4);
  double seconds = best_of_tasks(
      plan.tasks, [&](int64_t task) { run_winograd(bench.table, problem, plan, task, task + 1, scratch.data()); });
  bench.report(fmt::format("winograd {}{}", text(shape), winograd_wins(bench.table, shape) ? "" : " (not chosen)"),
               18.0 * static_cast<double>(outputs * shape.input_channels),
               4.0 * static_cast<double>(outputs) + 4.0 * static_cast<double>(input.size()), seconds);
}

void winograds(const Bench& bench) {
  for (auto [size, channels] : {std::pair<int64_t, int64_t>{56, 64},
                                {28, 128},
                                {14, 256},
                                {7, 512},
                                {80, 64},
                                {40, 128},
                                {20, 256},
                                {32, 16},
                                {16, 32},
                                {8, 64}}) {
    ConvolutionShape shape = square(size, channels, channels, 3, 1);
    convolution(bench, shape);
    winograd(bench, shape);
  }
}

// One head as two matrix products with a softmax between them, all scores stored.
class SeparateAttention {
 public:
  SeparateAttention(const KernelTable& table, const Attention& attention)
      : table_(table),
        attention_(attention),
        score_stride_(round_up(attention.keys, table.tile_columns)),
        scores_(static_cast<size_t>(attention.queries * score_stride_)),
        scratch_(std::max(plan(0).first.scratch_bytes, plan(0).second.scratch_bytes) / 4) {}

  void run(int64_t head) {
    auto [first, second] = plan(head);
    run_gemm(table_, scores_of(head), first, 0, first.tasks(), scratch_.data());
    for (int64_t row = 0; row < attention_.queries; ++row) {
      float maximum = -1e30f;
      float sum = 0;
      float* scores = scores_.data() + row * score_stride_;
      table_.softmax_row({.scores = scores,
                          .columns = attention_.keys,
                          .width = 0,
                          .added = nullptr,
                          .allowed = nullptr,
                          .maximum = &maximum,
                          .sum = &sum,
                          .output = nullptr,
                          .output_columns = 0});
      table_.scale_row(scores, attention_.keys, 1 / sum, scores);
    }
    run_gemm(table_, outputs_of(head), second, 0, second.tasks(), scratch_.data());
  }

 private:
  Gemm scores_of(int64_t head) {
    return {.m = attention_.queries,
            .n = attention_.keys,
            .k = attention_.depth,
            .a = attention_.query + head * attention_.query_strides.head,
            .a_row_stride = attention_.query_strides.row,
            .b = attention_.key + head * attention_.key_strides.head,
            .b_row_stride = 1,
            .b_column_stride = attention_.key_strides.row,
            .c = scores_.data(),
            .c_row_stride = score_stride_};
  }
  Gemm outputs_of(int64_t head) {
    return {.m = attention_.queries,
            .n = attention_.columns,
            .k = attention_.keys,
            .a = scores_.data(),
            .a_row_stride = score_stride_,
            .b = attention_.value + head * attention_.value_strides.head,
            .b_row_stride = attention_.value_strides.row,
            .c = attention_.output + head * attention_.output_strides.head,
            .c_row_stride = attention_.output_strides.row};
  }
  std::pair<GemmPlan, GemmPlan> plan(int64_t head) {
    return {plan_gemm(table_, scores_of(head), 1), plan_gemm(table_, outputs_of(head), 1)};
  }

  const KernelTable& table_;
  const Attention& attention_;
  int64_t score_stride_;
  Aligned scores_;
  Aligned scratch_;
};

// Heads of 64 side by side in memory, [rows, heads, 64], as a projection leaves them.
void attention(const Bench& bench, int64_t queries, int64_t keys) {
  constexpr int64_t heads = 12;
  constexpr int64_t size = 64;
  Aligned q(random_floats(queries * heads * size, 1));
  Aligned k(random_floats(keys * heads * size, 2));
  Aligned v(random_floats(keys * heads * size, 3));
  Aligned output(static_cast<size_t>(queries * heads * size));
  // A cache of keys is kept head by head.
  HeadStrides rows{.head = size, .row = heads * size};
  HeadStrides cache = queries == 1 ? HeadStrides{.head = keys * size, .row = size} : rows;
  Attention problem{.heads = heads,
                    .key_heads = heads,
                    .queries = queries,
                    .keys = keys,
                    .depth = size,
                    .columns = size,
                    .scale = 0.125f,
                    .query = q.data(),
                    .query_strides = rows,
                    .key = k.data(),
                    .key_strides = cache,
                    .value = v.data(),
                    .value_strides = cache,
                    .output = output.data(),
                    .output_strides = rows};
  AttentionPlan plan = plan_attention(bench.table, problem, 1);
  Aligned scratch(plan.scratch_bytes / 4);
  plan.units_of_task = plan.row_blocks;
  SeparateAttention separate(bench.table, problem);
  auto [seconds, apart] = best_of_turns(
      heads, [&](int64_t head) { run_attention(bench.table, problem, plan, head, head + 1, scratch.data()); },
      [&](int64_t head) { separate.run(head); });
  bench.report(fmt::format("attention {} x {}, 12 heads of 64", queries, keys),
               4.0 * static_cast<double>(heads * queries * keys * size),
               8.0 * static_cast<double>(heads * (queries + keys) * size), seconds);
  fmt::print("{:36} {:10.1f} us, {:.2f} times that\n", "  as gemm, softmax, gemm", apart * 1e6, apart / seconds);
}

void attentions(const Bench& bench) {
  for (int64_t length : {16, 64, 128, 384}) attention(bench, length, length);
  for (int64_t past : {16, 128, 511}) attention(bench, 1, past + 1);
}

// One sequence; GB/s are those of reading the recurrent weights, held against reading as many bytes in a plain loop.
void recurrent(const Bench& bench, RecurrentKind kind, int64_t gates, int64_t steps) {
  constexpr int64_t input = 300;
  constexpr int64_t hidden = 512;
  RecurrentShape shape{.kind = kind, .steps = steps, .input = input, .hidden = hidden, .linear_before_reset = true};
  std::vector<float> w = random_floats(gates * hidden * input, 1);
  std::vector<float> r = random_floats(gates * hidden * hidden, 2);
  Aligned packed(packed_recurrent_elements(bench.table, shape));
  pack_recurrent(bench.table, shape, {.w = w.data(), .r = r.data()}, packed.data());
  Aligned x(random_floats(steps * input, 3));
  Aligned y(static_cast<size_t>(steps * hidden));
  Recurrent problem{.shape = shape,
                    .functions = serves({.kind = kind}, nullptr).value(),
                    .packed = packed.data(),
                    .x = x.data(),
                    .y = y.data(),
                    .y_step_stride = hidden};
  RecurrentPlan plan = plan_recurrent(bench.table, problem, 1);
  Aligned memory(plan.memory_bytes / 4);
  Aligned scratch(plan.scratch_bytes / 4);
  auto [projection, in_steps] = best_of_stages(plan.stages(), [&](int64_t stage) {
    run_recurrent_stage(bench.table, problem, plan, stage, 0, plan.tasks(stage), memory.data(), scratch.data());
  });
  double bytes = 4.0 * static_cast<double>(gates * hidden * hidden);
  double rate = bytes * static_cast<double>(steps) / in_steps * 1e-9;
  double roof = read_roof(bench.table.isa, static_cast<int64_t>(bytes));
  fmt::print(
      "{} 300->512, T {:3}: {:8.1f} us, a step {:5.1f} and its input {:4.1f}; weights {:5.1f} GB/s, {:.0f} % of "
      "reading\n",
      kind == RecurrentKind::lstm ? "lstm" : "gru ", steps, (projection + in_steps) * 1e6,
      in_steps / static_cast<double>(steps) * 1e6, projection / static_cast<double>(steps) * 1e6, rate,
      100 * rate / roof);
}

void recurrents(const Bench& bench) {
  for (int64_t steps : {8, 32, 128}) recurrent(bench, RecurrentKind::lstm, 4, steps);
  for (int64_t steps : {8, 32, 128}) recurrent(bench, RecurrentKind::gru, 3, steps);
}

struct Section {
  std::string_view name;
  void (*function)(const Bench&);
};
constexpr Section sections[] = {{"roofs", roofs},          {"gemm", gemms},         {"convolution", convolutions},
                                {"depthwise", depthwises}, {"winograd", winograds}, {"attention", attentions},
                                {"recurrent", recurrents}};

int run(int count, char** names) {
  Isa isa = best_isa();
  Bench bench{.table = table(isa), .roof = fma_roof(isa)};
  for (const Section& section : sections) {
    bool chosen = count == 0;
    for (int i = 0; i < count; ++i) chosen |= section.name == names[i];
    if (chosen) section.function(bench);
  }
  return 0;
}

}  // namespace
}  // namespace selkie::kernels::bench

int main(int count, char** arguments) { return selkie::kernels::bench::run(count - 1, arguments + 1); }
