// How fast random expressions are brought into canonical form, on one core.
// One simplification = canonicalising one random raw tree of exactly 3 operations over 4 symbols and constants -8..16,
// the operations drawn evenly from + - * floordiv ceildiv mod min max: 3 constructor applications with all their rules.
// Trees are generated beforehand; a fresh Context is taken after every 20,000, so that memory stays bounded
// and expressions are made, not merely found. The bar is 1 million simplifications (expressions) per second and core;
// `./dev bench` prints the median of nine repetitions, since single ones vary by a third on a shared machine.
#include <benchmark/benchmark.h>

#include "base/error.h"
#include "sym/facts.h"
#include "sym/random_tree.h"

namespace selkie::sym {
namespace {

using namespace testing;

void simplify_random(benchmark::State& state) {
  int operations = static_cast<int>(state.range(0));
  Random random(1);
  std::vector<RawTree> trees;
  for (int i = 0; i < 20000; ++i) trees.push_back(random_tree(random, operations));
  std::vector<Expr> buffer;
  size_t failed = 0;
  for (auto _ : state) {
    Context context;
    std::vector<Expr> symbols = make_symbols(context);
    for (const RawTree& tree : trees) {
      try {
        benchmark::DoNotOptimize(build(context, symbols, tree, buffer));
      } catch (const Error&) {
        ++failed;
      }
    }
  }
  auto expressions = static_cast<double>(state.iterations()) * static_cast<double>(trees.size());
  state.counters["expressions/s"] = benchmark::Counter(expressions, benchmark::Counter::kIsRate);
  state.counters["constructors/s"] = benchmark::Counter(expressions * operations, benchmark::Counter::kIsRate);
  state.counters["beyond limits"] = static_cast<double>(failed) / static_cast<double>(state.iterations());
}
BENCHMARK(simplify_random)->Arg(3)->Arg(8)->Unit(benchmark::kMillisecond);

// Chains a_0 <= a_1 <= ... with ranges and divisibility, then queries across neighbours.
void prove_over_facts(benchmark::State& state) {
  Context context;
  Facts facts(context);
  std::vector<Expr> dims;
  for (int64_t i = 0; i < state.range(0); ++i) dims.push_back(context.fresh("d"));
  for (size_t i = 0; i + 1 < dims.size(); ++i) {
    facts.add_less_equal(dims[i] + 1, dims[i + 1], "order");
    if (i % 3 == 0) facts.add_divisible(dims[i], 8, "alignment");
  }
  size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(facts.prove_less_equal(dims[i], dims[i + 3]));
    i = (i + 1) % (dims.size() - 3);
  }
}
BENCHMARK(prove_over_facts)->Arg(1000);

void add_facts(benchmark::State& state) {
  for (auto _ : state) {
    Context context;
    Facts facts(context);
    for (int64_t i = 0; i < state.range(0); ++i) {
      Expr a = context.fresh("a");
      Expr b = context.fresh("b");
      facts.add_range(a, {.lo = 1, .hi = 512}, "user");
      facts.add_equal(b, a * 2, "model");
      facts.add_less_equal(a, context.symbol("N"), "model");
    }
    benchmark::DoNotOptimize(facts.range(context.symbol("N")));
  }
  state.SetItemsProcessed(state.iterations() * state.range(0) * 3);
}
BENCHMARK(add_facts)->Arg(1000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace selkie::sym
