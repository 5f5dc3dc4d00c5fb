#include "driver/samples.h"

#include <span>

namespace selkie::driver {
// The symbols of the inputs' dims.
std::vector<sym::Expr> input_symbols(const analysis::Rdp& rdp) {
  std::vector<sym::Expr> symbols;
  for (const auto& parameter : rdp.module().main().body.parameters)
    for (sym::Expr dim : rdp.known(*parameter).type.dims.value_or(ir::SymDims{})) sym::collect_symbols(dim, symbols);
  return symbols;
}

namespace {

// Whether inputs of these sizes pass what is checked of them.
bool are_allowed(const analysis::Rdp& rdp, std::span<const compiler::EntryCheck> checks, const Sizes& sizes) {
  for (const compiler::EntryCheck& check : checks) {
    std::optional<int64_t> a = value_of(check.a, sizes);
    std::optional<int64_t> b = value_of(check.b, sizes);
    if (a && b && (check.equal ? *a != *b : *a > *b)) return false;
  }
  auto binding = [&](std::string_view name) { return size_of(name, sizes); };
  size_t checked = 0;
  return !rdp.region(rdp.module().main().body).facts.violated(binding, checked);
}

}  // namespace

// One sample for all symbols that are not given, the first that is allowed: small ones of models that bound their
// sizes, large ones of those that need them.
Sizes with_samples(const analysis::Rdp& rdp, const std::vector<sym::Expr>& symbols, const Sizes& given) {
  std::vector<int64_t> samples;
  for (int64_t sample = 64; sample > 0; --sample) samples.push_back(sample);
  for (int64_t sample = 128; sample <= 4096; sample *= 2) samples.push_back(sample);
  std::vector<compiler::EntryCheck> checks = compiler::entry_checks(rdp);
  for (int64_t sample : samples) {
    Sizes sizes = given;
    for (sym::Expr symbol : symbols)
      if (!value_of(symbol, given)) sizes.emplace_back(symbol.symbol_name(), sample);
    if (are_allowed(rdp, checks, sizes)) return sizes;
  }
  return given;
}

}  // namespace selkie::driver
