// What the runtime itself costs: a call of a model that does no work, and each further launch of a kernel of one
// element. Pin it to a core: taskset -c 1 driver_bench. The exit code is 1 if a bar is missed.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "driver/build.h"
#include "ir/parse.h"
#include "kernels/gemm.h"
#include "ops/registry.h"

namespace selkie::driver {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double most_call_microseconds = 2;
constexpr double most_launch_nanoseconds = 100;

// A model ready to be called with one input of one element.
struct Model {
  Model(const std::string& text, size_t rank)
      : context(build(ir::parse(text, ops::op_set(), "overhead"), {}).executable),
        inputs{Tensor(DType::f32, Dims(rank, 1))} {}

  void call() { context.run(inputs); }

  runtime::Context context;
  std::vector<HostValue> inputs;
};

double nanoseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
}

// The best of many rounds, in which the models take turns: other work on the machine only ever adds time, and what
// slows it down for a while slows all of them.
std::vector<double> nanoseconds_per_call(std::vector<Model>& models) {
  constexpr int rounds = 200;
  constexpr int calls = 200;
  std::vector<double> best(models.size(), 1e30);
  for (int round = 0; round < rounds; ++round)
    for (size_t i = 0; i < models.size(); ++i) {
      Clock::time_point begin = Clock::now();
      for (int call = 0; call < calls; ++call) models[i].call();
      best[i] = std::min(best[i], nanoseconds_since(begin) / calls);
    }
  return best;
}

bool judge(std::string_view name, double value, double bar, std::string_view unit) {
  bool passed = value <= bar;
  fmt::print("{:20} {:8.3f} {:14} bar {:g}  {}\n", name, value, unit, bar, passed ? "pass" : "FAIL");
  return passed;
}

bool calls_of_no_work() {
  constexpr std::pair<const char*, const char*> bodies[] = {{"identity", "identity(%x)"},
                                                            {"one addition", "add(%x, @one)"}};
  std::vector<Model> models;
  for (auto [name, body] : bodies)
    models.emplace_back(fmt::format(R"(
const @one: f32[] = {{1}}
func @main(%x: f32[N]) -> (y: f32[N]) {{
  %y = {}
  return %y
}})",
                                    body),
                        1);
  std::vector<double> times = nanoseconds_per_call(models);
  bool passed = true;
  for (size_t i = 0; i < models.size(); ++i)
    passed = judge(bodies[i].first, times[i] / 1000, most_call_microseconds, "us per call") && passed;
  return passed;
}

// A node that is not fused with another of its kind.
struct Link {
  const char* name;
  const char* input;
  size_t rank;
  const char* before;  // the operand
  const char* after;
};

std::string chain(const Link& link, int count) {
  std::string text = fmt::format("const @one: f32[1, 1] = {{1}}\nfunc @main(%x_0: {}) -> (y: f32[*]) {{\n", link.input);
  for (int i = 0; i < count; ++i) text += fmt::format("  %x_{} = {}%x_{}{}\n", i + 1, link.before, i, link.after);
  return text + fmt::format("  return %x_{}\n}}\n", count);
}

// A product of one element by the library, its plan being made.
double nanoseconds_of_product() {
  const kernels::KernelTable& table = kernels::table(kernels::best_isa());
  std::vector<float> packed(kernels::packed_b_elements(table, 1, 1));
  alignas(64) std::array<std::byte, 1 << 14> scratch;
  float a = 1, c = 0;
  kernels::Gemm gemm{
      .m = 1, .n = 1, .k = 1, .a = &a, .a_row_stride = 1, .packed_b = packed.data(), .c = &c, .c_row_stride = 1};
  kernels::GemmPlan plan = kernels::plan_gemm(table, gemm, 1);
  CHECK(plan.scratch_bytes <= scratch.size(), "the scratch memory is too small");
  constexpr int rounds = 200;
  constexpr int calls = 10'000;
  double best = 1e30;
  for (int round = 0; round < rounds; ++round) {
    Clock::time_point begin = Clock::now();
    for (int call = 0; call < calls; ++call) kernels::run_gemm(table, gemm, plan, 0, plan.tasks(), scratch.data());
    best = std::min(best, nanoseconds_since(begin) / calls);
  }
  return best;
}

// The slope of the time of a call over its launches, by least squares, less what the kernel itself takes.
bool launches_of_no_work(const Link& link, double kernel_nanoseconds) {
  constexpr int counts[] = {1, 2, 4, 8, 16, 32, 64};
  std::vector<Model> models;
  for (int count : counts) models.emplace_back(chain(link, count), link.rank);
  std::vector<double> times = nanoseconds_per_call(models);
  double n = 0, sum_x = 0, sum_y = 0, sum_xx = 0, sum_xy = 0;
  for (size_t i = 0; i < models.size(); ++i) {
    const runtime::Statistics& statistics = models[i].context.statistics();
    CHECK(statistics.launches == counts[i] && statistics.host_calls == 0, "{} links are {} launches and {} host calls",
          counts[i], statistics.launches, statistics.host_calls);
    auto x = static_cast<double>(counts[i]);
    n += 1;
    sum_x += x;
    sum_y += times[i];
    sum_xx += x * x;
    sum_xy += x * times[i];
    fmt::print("{:16} x {:2} {:7.3f} us per call\n", link.name, counts[i], times[i] / 1000);
  }
  double slope = (n * sum_xy - sum_x * sum_y) / (n * sum_xx - sum_x * sum_x);
  if (kernel_nanoseconds > 0)
    fmt::print("{:20} {:8.3f} ns with the kernel's own {:.3f}\n", link.name, slope, kernel_nanoseconds);
  return judge(link.name, slope - kernel_nanoseconds, most_launch_nanoseconds, "ns per launch");
}

}  // namespace

bool overhead_is_small() {
  constexpr Link generated{.name = "generated kernel",
                           .input = "f32[N, C, H, W]",
                           .rank = 4,
                           .before = "max_pool(",
                           .after = ") {kernel_shape = [3, 3], pads = [1, 1, 1, 1]}"};
  constexpr Link library{
      .name = "matrix product", .input = "f32[N, 1]", .rank = 2, .before = "matmul(", .after = ", @one)"};
  bool passed = calls_of_no_work();
  passed = launches_of_no_work(generated, 0) && passed;
  return launches_of_no_work(library, nanoseconds_of_product()) && passed;
}

}  // namespace selkie::driver

int main() { return selkie::driver::overhead_is_small() ? 0 : 1; }
