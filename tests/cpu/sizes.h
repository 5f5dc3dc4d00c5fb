// Runs one program at many sizes on the CPU backend, compiled and with kernels interpreted under bounds checks, and
// compares with the reference evaluator.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "base/convert.h"
#include "difference.h"
#include "driver/build.h"
#include "interp/interp.h"
#include "ir/parse.h"
#include "ops/registry.h"

namespace selkie::tests {

// Around 0, around the widths of vectors, primes, and one that needs several rounds of a loop.
inline constexpr int64_t sizes[] = {0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 37, 70};

struct Rules {
  int runs = 24;
  int least_good = 8;      // so many runs at least must succeed, so that the test tests something
  size_t host_calls = 0;   // of the program
  int64_t largest = 70;    // of the sizes
  int64_t whole_from = 0;  // integers of the inputs
  int64_t whole_to = 4;
  bool nans = false;  // some of the reals are NaN
};

using Binding = std::map<std::string, int64_t, std::less<>>;

inline Tensor random_input(const ir::Type& type, Binding& binding, const Rules& rules, std::mt19937_64& random) {
  Dims dims;
  for (sym::Expr d : *type.dims)
    dims.push_back(*sym::evaluate(d, [&](std::string_view name) -> std::optional<int64_t> {
      auto [at, fresh] = binding.try_emplace(std::string(name));
      while (fresh || at->second > rules.largest) {
        at->second = sizes[random() % std::size(sizes)];
        fresh = false;
      }
      return at->second;
    }));
  std::vector<double> values(static_cast<size_t>(element_count(dims)));
  for (double& v : values) {
    double unit = static_cast<double>(random() >> 11) * 0x1p-53;
    if (is_float(type.dtype))
      v = rules.nans && random() % 8 == 0 ? std::nan("") : std::floor(64 * (unit * 2 - 1)) / 32;
    else
      v = static_cast<double>(rules.whole_from) +
          std::floor(unit * static_cast<double>(rules.whole_to - rules.whole_from + 1));
  }
  return narrow<double>(values, type.dtype, dims);
}

struct Outcome {
  std::optional<std::vector<HostValue>> values;
  std::string error;
};

inline Outcome outcome_of(const std::function<std::vector<HostValue>()>& run) {
  try {
    return {.values = run(), .error = {}};
  } catch (const Error& error) {
    return {.values = {}, .error = error.what()};
  }
}

inline void check(const std::string& text, const Rules& rules = {}) {
  SCOPED_TRACE(text);
  auto parse = [&] { return std::shared_ptr(ir::parse(text, ops::op_set(), "test")); };
  auto reference = parse();
  driver::Built compiled = driver::build(parse(), {});
  driver::Built checked = driver::build(parse(), {.check_kernels = true});
  EXPECT_EQ(compiled.host_calls, rules.host_calls);
  runtime::Context contexts[] = {runtime::Context(compiled.executable), runtime::Context(compiled.executable, 2),
                                 runtime::Context(checked.executable)};
  std::mt19937_64 random(1);
  int good = 0;
  for (int run = 0; run < rules.runs; ++run) {
    Binding binding;
    std::vector<HostValue> inputs;
    for (const auto& parameter : reference->main().body.parameters)
      inputs.emplace_back(random_input(parameter->type, binding, rules, random));
    std::string bound;
    for (const auto& [name, size] : binding) bound += fmt::format(" {} = {}", name, size);
    SCOPED_TRACE("with" + bound);
    Outcome expected = outcome_of([&] { return interp::run(*reference, inputs); });
    for (runtime::Context& context : contexts) {
      Outcome actual = outcome_of([&] { return context.run(inputs); });
      ASSERT_EQ(actual.values.has_value(), expected.values.has_value()) << actual.error << expected.error;
      for (size_t i = 0; expected.values && i < expected.values->size(); ++i)
        ASSERT_EQ(difference((*actual.values)[i], (*expected.values)[i]), "") << "output " << i;
    }
    good += expected.values.has_value();
  }
  EXPECT_GE(good, rules.least_good);
}

}  // namespace selkie::tests
