// How long the analysis takes per node, on graphs as exporters write them: encoder layers with their shape arithmetic.
// The bar is 50 µs per node at thousands of nodes, growing linearly with them.
#include <benchmark/benchmark.h>

#include "analysis/rdp.h"
#include "ir/parse.h"
#include "ops/registry.h"

namespace selkie::analysis {
namespace {

// One layer: attention with heads split by Shape → Gather → Concat → Reshape, and a feed-forward block; 25 nodes.
std::string layer(int64_t i) {
  std::string x = i == 0 ? "x" : fmt::format("out_{}", i - 1);
  std::string text = R"(
  %s_# = shape(%IN)
  %b_# = gather(%s_#, @zero)
  %b1_# = unsqueeze(%b_#, @axis)
  %l_# = gather(%s_#, @one)
  %l1_# = unsqueeze(%l_#, @axis)
  %split_# = concat(%b1_#, %l1_#, @heads) {axis = 0}
  %q_# = matmul(%IN, @w)
  %k_# = matmul(%IN, @w)
  %v_# = matmul(%IN, @w)
  %q4_# = reshape(%q_#, %split_#)
  %k4_# = reshape(%k_#, %split_#)
  %v4_# = reshape(%v_#, %split_#)
  %qt_# = transpose(%q4_#) {perm = [0, 2, 1, 3]}
  %kt_# = transpose(%k4_#) {perm = [0, 2, 3, 1]}
  %vt_# = transpose(%v4_#) {perm = [0, 2, 1, 3]}
  %score_# = matmul(%qt_#, %kt_#)
  %masked_# = add(%score_#, %mask)
  %p_# = softmax(%masked_#)
  %o_# = matmul(%p_#, %vt_#)
  %ot_# = transpose(%o_#) {perm = [0, 2, 1, 3]}
  %join_# = concat(%b1_#, %l1_#, @width) {axis = 0}
  %o3_# = reshape(%ot_#, %join_#)
  %res_# = add(%o3_#, %IN)
  %f_# = matmul(%res_#, @w)
  %out_# = add(%f_#, %res_#)
)";
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '#')
      out += fmt::format("{}", i);
    else if (text.compare(at, 3, "%IN") == 0)
      out += "%" + x, at += 2;
    else
      out += text[at];
  }
  return out;
}

std::string encoder(int64_t layers) {
  std::string text = R"(
const @zero: i64[] = {0}
const @one: i64[] = {1}
const @axis: i64[1] = {0}
const @heads: i64[2] = {2, 4}
const @width: i64[1] = {8}
const @w: f32[8, 8] = hex(")";
  text += std::string(8 * 8 * 8, '0');
  text += "\")\nfunc @main(%x: f32[B, S, 8], %mask: f32[B, 1, 1, S]) -> (f32[*]) {\n";
  for (int64_t i = 0; i < layers; ++i) text += layer(i);
  return text + fmt::format("  return %out_{}\n}}\n", layers - 1);
}

void analyse(benchmark::State& state) {
  std::string text = encoder(state.range(0));
  int64_t nodes = 0;
  for (auto _ : state) {
    state.PauseTiming();
    auto module = ir::parse(text, ops::op_set(), "encoder");
    nodes = static_cast<int64_t>(module->main().body.nodes.size());
    state.ResumeTiming();
    Rdp rdp(*module);
    benchmark::DoNotOptimize(rdp.entry_checks().size());
    state.PauseTiming();
    module.reset();
    state.ResumeTiming();
  }
  state.counters["nodes"] = static_cast<double>(nodes);
  state.counters["per_node"] = benchmark::Counter(
      static_cast<double>(nodes), benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(analyse)->Arg(4)->Arg(40)->Arg(400)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace selkie::analysis
