// How near the kernels come to the roofs of one core, on the shapes of transformers and image networks.
// Pin it to a core: taskset -c 1 kernels_bench
// [roofs|gemm|layers|strassen|convolution|stem|depthwise|grouped|winograd|attention|recurrent|integer|half]…; without a
// name everything is run.
#include <random>
#include <string_view>

#include "kernels/attention.h"
#include "kernels/bench_support.h"
#include "kernels/block.h"
#include "kernels/gemm.h"
#include "kernels/recurrent.h"
#include "kernels/roofs.h"
#include "kernels/subnormals.h"

namespace selkie::kernels::bench {

std::vector<float> random_floats(int64_t count, uint32_t seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> distribution(-1, 1);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = distribution(generator);
  return values;
}

namespace {

void roofs(const Bench& bench) {
  fmt::print("{}: FMA {:.1f} GFLOP/s; caches {} KB, {} KB\n", bench.table.name, bench.roof, cache_sizes().l1 >> 10,
             cache_sizes().l2 >> 10);
  for (int64_t kilobytes : {16, 256, 1024, 4096, 16384, 262144})
    fmt::print("read {:7} KB {:8.1f} GB/s\n", kilobytes, read_roof(bench.table.isa, kilobytes << 10));
}

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

// One column, and the same by tiles, which a bias takes.
void column(const Bench& bench, int64_t m, int64_t k) {
  Aligned a(random_floats(m * k, 1));
  Aligned b(random_floats(k, 2));
  Aligned c(static_cast<size_t>(m));
  float bias = 1;
  Gemm problem{.m = m,
               .n = 1,
               .k = k,
               .a = a.data(),
               .a_row_stride = k,
               .b = b.data(),
               .b_row_stride = 1,
               .c = c.data(),
               .c_row_stride = 1};
  Gemm by_tiles = problem;
  by_tiles.bias = &bias;
  GemmPlan plan = plan_gemm(bench.table, problem, 1);
  GemmPlan plan_of_tiles = plan_gemm(bench.table, by_tiles, 1);
  Aligned scratch(std::max(plan.scratch_bytes, plan_of_tiles.scratch_bytes) / 4);
  auto [seconds, of_tiles] = best_of_turns(
      1, [&](int64_t) { run_gemm(bench.table, problem, plan, 0, plan.tasks(), scratch.data()); },
      [&](int64_t) { run_gemm(bench.table, by_tiles, plan_of_tiles, 0, plan_of_tiles.tasks(), scratch.data()); });
  bench.report(fmt::format("{} x 1 x {}: {:.2f} of tiles", m, k, seconds / of_tiles), 2.0 * static_cast<double>(m * k),
               4.0 * static_cast<double>(m * k + k + m), seconds);
}

void gemms(const Bench& bench) {
  for (auto [m, k] : {std::pair<int64_t, int64_t>{512, 16}, {1, 512}, {64, 64}, {512, 512}, {4096, 3}})
    column(bench, m, k);
  std::vector<int64_t> rows;
  for (int64_t m = 1; m <= 64; ++m) rows.push_back(m);
  rows.insert(rows.end(), {96, 128, 512});
  for (auto [n, k] : {std::pair<int64_t, int64_t>{768, 768}, {3072, 768}, {768, 3072}})
    for (int64_t m : rows) gemm(bench, m, n, k);
}

// A product by weights of which one in so many is subnormal, and by the same ones flushed.
void subnormal(const Bench& bench, int64_t one_in) {
  constexpr int64_t size = 480;
  Aligned a(random_floats(size * size, 1));
  Aligned c(static_cast<size_t>(size * size));
  std::vector<float> b = random_floats(size * size, 2);
  for (size_t i = 0; i < b.size(); i += static_cast<size_t>(one_in)) b[i] = 1e-40F;
  Aligned packed(packed_b_elements(bench.table, size, size));
  pack_b(bench.table, b.data(), size, 1, size, size, packed.data());
  Aligned flushed(packed_b_elements(bench.table, size, size));
  std::copy_n(packed.data(), packed_b_elements(bench.table, size, size), flushed.data());
  flush_subnormals({flushed.data(), packed_b_elements(bench.table, size, size)});
  auto multiply = [&](const float* weights) {
    Gemm problem{.m = size,
                 .n = size,
                 .k = size,
                 .a = a.data(),
                 .a_row_stride = size,
                 .packed_b = weights,
                 .c = c.data(),
                 .c_row_stride = size};
    GemmPlan plan = plan_gemm(bench.table, problem, 1);
    Aligned scratch(plan.scratch_bytes / 4);
    run_gemm(bench.table, problem, plan, 0, plan.tasks(), scratch.data());
  };
  auto [seconds, kept] =
      best_of_turns(1, [&](int64_t) { multiply(flushed.data()); }, [&](int64_t) { multiply(packed.data()); });
  fmt::print("{0} x {0} x {0}, a weight in {1} subnormal: {2:.2f} of what it takes unless they are flushed\n", size,
             one_in, seconds / kept);
}

void subnormals(const Bench& bench) {
  for (int64_t one_in : {100, 1000, 10'000}) subnormal(bench, one_in);
}

// The products of a transformer's layers one after the other, so that weights come from memory as they do in a model.
void layers(const Bench& bench) {
  constexpr int64_t width = 768;
  constexpr int64_t inner = 4 * width;
  constexpr int count = 12;
  const std::pair<int64_t, int64_t> products[] = {{width, width}, {width, width}, {width, width},
                                                  {width, width}, {inner, width}, {width, inner}};
  std::vector<Aligned> packed;
  for (int layer = 0; layer < count; ++layer)
    for (auto [n, k] : products) packed.emplace_back(random_floats(n * k, 2));
  for (int64_t m : {4, 16, 64, 128, 384}) {
    std::vector<float> a = random_floats(m * inner, 1);
    std::vector<float> c(static_cast<size_t>(m * inner));
    auto [first, others] = best_of_stages(
        static_cast<int64_t>(packed.size()),
        [&](int64_t i) {
          auto [n, k] = products[static_cast<size_t>(i) % std::size(products)];
          Gemm problem{.m = m,
                       .n = n,
                       .k = k,
                       .a = a.data(),
                       .a_row_stride = k,
                       .packed_b = packed[static_cast<size_t>(i)].data(),
                       .c = c.data(),
                       .c_row_stride = n};
          GemmPlan plan = plan_gemm(bench.table, problem, 1);
          Aligned scratch(plan.scratch_bytes / 4);
          run_gemm(bench.table, problem, plan, 0, plan.tasks(), scratch.data());
        },
        4);
    double seconds = first + others;
    double elements = static_cast<double>(count * 12 * width * width);
    bench.report(fmt::format("{} layers, {} rows", count, m), 2 * elements * static_cast<double>(m), 4 * elements,
                 seconds);
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
      table_.softmax_row({.scale = attention_.scale,
                          .complete = false,
                          .scores = scores,
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
  for (int64_t length : {16, 32, 48, 64, 128, 384}) attention(bench, length, length);
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
constexpr Section sections[] = {
    {"roofs", roofs},           {"gemm", gemms},         {"layers", layers},        {"convolution", convolutions},
    {"subnormals", subnormals}, {"strassen", strassens}, {"stem", stems},           {"depthwise", depthwises},
    {"grouped", groupeds},      {"winograd", winograds}, {"attention", attentions}, {"recurrent", recurrents},
    {"integer", integers},      {"half", halves}};

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
