#include "analysis/claims.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/convert.h"

namespace selkie::analysis {
namespace {

constexpr size_t most_violations = 20;

bool within(const sym::Range& range, int64_t value) {
  return (!range.lo || *range.lo <= value) && (!range.hi || value <= *range.hi);
}

}  // namespace

void ClaimChecker::violation(std::string text) {
  if (refusal_.empty()) refusal_ = failing_check();
  if (!refusal_.empty()) return;
  if (violations_.size() < most_violations) violations_.push_back(std::move(text));
}

// Of the checks that are the analysis's own: the program runs without them.
std::string ClaimChecker::failing_check() const {
  for (const Scope& scope : scopes_)
    for (const Check& check : rdp_.region(*scope.region).checks) {
      if (check.why.empty() || check.kind == Check::Kind::rank) continue;
      std::optional<int64_t> a = value_of(check.a);
      std::optional<int64_t> b = value_of(check.b);
      if (!a || !b || (check.kind == Check::Kind::equal ? *a == *b : *a <= *b)) continue;
      return fmt::format("{} is {}, and {} is {} ({}: {})", to_string(check.a), *a, to_string(check.b), *b,
                         check.source, check.why);
    }
  return {};
}

std::optional<int64_t> ClaimChecker::lookup(std::string_view name) const {
  for (size_t i = scopes_.size(); i-- > 0;) {
    auto at = scopes_[i].bindings.find(std::string(name));
    if (at != scopes_[i].bindings.end()) return at->second;
  }
  return std::nullopt;
}

std::optional<int64_t> ClaimChecker::value_of(sym::Expr e) const {
  return sym::evaluate(e, [&](std::string_view name) { return lookup(name); });
}

// A symbol belongs to the innermost scope of its region: each trip of a loop has its own.
void ClaimChecker::bind(sym::Expr symbol, int64_t value) {
  const SymbolInfo* info = rdp_.symbol(symbol);
  size_t at = scopes_.size() - 1;
  for (size_t i = scopes_.size(); info != nullptr && i-- > 0;)
    if (scopes_[i].region == info->region) {
      at = i;
      break;
    }
  scopes_[at].bindings[std::string(symbol.symbol_name())] = value;
}

// Nothing is claimed about regions that the analysis found unreachable or did not follow, except that they are.
bool ClaimChecker::active() const {
  return !scopes_.empty() && rdp_.region(*scopes_.back().region).entry == Entry::possible;
}

void ClaimChecker::enter(const ir::Region& region, std::span<const HostValue> arguments) {
  scopes_.push_back({.region = &region, .bindings = {}});
  if (rdp_.region(region).entry == Entry::never)
    violation(fmt::format("a region of {} was entered, which is said to be impossible",
                          region.parent ? region.parent->describe() : "a function"));
  if (!active()) return;
  for (size_t i = 0; i < arguments.size(); ++i) bind_symbols(*region.parameters[i], arguments[i]);
  for (size_t i = 0; i < arguments.size(); ++i) value(*region.parameters[i], arguments[i]);
}

void ClaimChecker::results(const ir::Node& node, std::span<const HostValue> values) {
  if (!active()) return;
  size_t count = std::min(values.size(), node.results.size());
  for (size_t i = 0; i < count; ++i) bind_symbols(*node.results[i], values[i]);
  for (size_t i = 0; i < count; ++i) value(*node.results[i], values[i]);
}

void ClaimChecker::leave(const ir::Region& region) {
  const RegionFacts& claimed = rdp_.region(region);
  if (claimed.entry == Entry::failing)
    violation(fmt::format("a region of {} was completed, which is said to fail: {}",
                          region.parent ? region.parent->describe() : "a function", claimed.failure));
  if (active()) {
    auto broken = claimed.facts.violated([&](std::string_view name) { return lookup(name); }, checked_);
    if (broken) violation(*broken);
  }
  scopes_.pop_back();
}

void ClaimChecker::value(const ir::Value& value, const HostValue& actual) {
  const ir::Known& claimed = rdp_.known(value);
  if (!actual.is_tensor() || claimed.type.is_unknown()) return;
  std::string where = "%" + value.name;
  ++checked_;
  if (!claimed.type.is_tensor()) {
    if (claimed.type.kind != ir::Type::Kind::opt)
      violation(fmt::format("{} is {}, not {}", where, actual.describe(), to_string(claimed.type)));
    return;
  }
  const Tensor& tensor = actual.tensor();
  if (tensor.dtype() != claimed.type.dtype)
    violation(fmt::format("{} is {}, not {}", where, actual.describe(), to_string(claimed.type)));
  if (claimed.contents) bind_index(*claimed.contents, tensor);
  if (claimed.type.dims) dims(value, claimed.type, tensor);
  if (claimed.contents) contents(value, *claimed.contents, tensor);
}

void ClaimChecker::dims(const ir::Value& value, const ir::Type& claimed, const Tensor& actual) {
  std::string where = "%" + value.name;
  if (value.node != nullptr) where += " of " + value.node->describe();
  ++checked_;
  if (claimed.dims->size() != actual.dims().size()) {
    violation(fmt::format("{} has shape {}, not {}", where, to_string(actual.dims()), to_string(claimed)));
    return;
  }
  // Symbols first, so that expressions of them can be evaluated.
  for (size_t i = 0; i < actual.dims().size(); ++i) {
    sym::Expr e = (*claimed.dims)[i];
    if (e.is_symbol() && !value_of(e)) bind(e, actual.dims()[i]);
  }
  for (size_t i = 0; i < actual.dims().size(); ++i)
    dim(fmt::format("dim {} of {}, which is {}", i, where, to_string(claimed)), (*claimed.dims)[i], actual.dims()[i]);
}

void ClaimChecker::dim(const std::string& where, sym::Expr claimed, int64_t actual) {
  if (std::optional<int64_t> expected = value_of(claimed)) {
    ++checked_;
    if (*expected != actual) violation(fmt::format("{}: it is {}, not {}", where, actual, *expected));
  }
  const sym::Facts& facts = rdp_.region(*scopes_.back().region).facts;
  sym::Range range = facts.range(claimed);
  checked_ += range.lo.has_value() + range.hi.has_value();
  if (!within(range, actual)) violation(fmt::format("{}: {} is outside its range", where, actual));
  if (!claimed.is_constant()) {
    for (int64_t divisor : {2, 3, 8}) {
      sym::Truth truth = facts.prove_divisible(claimed, divisor);
      if (truth == sym::Truth::unknown) continue;
      ++checked_;
      if ((truth == sym::Truth::yes) != (actual % divisor == 0))
        violation(fmt::format("{}: {} contradicts what is known about division by {}", where, actual, divisor));
    }
  }
  const SymbolInfo* info = claimed.is_symbol() ? rdp_.symbol(claimed) : nullptr;
  if (info == nullptr) return;
  for (auto [bound, upper] : {std::pair(info->bounds.most, true), std::pair(info->bounds.least, false)}) {
    std::optional<int64_t> limit = bound ? value_of(bound) : std::nullopt;
    if (!limit) continue;
    ++checked_;
    if (upper ? actual > *limit : actual < *limit)
      violation(fmt::format("{}: {} is beyond its bound {} = {}", where, actual, sym::to_string(bound), *limit));
  }
}

// The symbols of the value's own: also those that it is no longer said by, since facts and checks may still be.
void ClaimChecker::bind_symbols(const ir::Value& value, const HostValue& given) {
  if (!given.is_tensor() || rdp_.known(value).type.is_unknown()) return;
  const Tensor& actual = given.tensor();
  bool integers = !is_float(actual.dtype()) && actual.dtype() != DType::str && actual.count() <= ir::max_known_elements;
  std::vector<int64_t> elements = integers ? widen<int64_t>(actual) : std::vector<int64_t>{};
  for (sym::Expr s : rdp_.symbols_of(value)) {
    const SymbolInfo& info = *rdp_.symbol(s);
    if (!info.is_element()) {
      if (info.axis < actual.dims().size()) bind(s, actual.dims()[info.axis]);
      continue;
    }
    if (info.axis >= elements.size()) continue;
    int64_t v = elements[info.axis];
    if (v == std::numeric_limits<int64_t>::min()) continue;  // its negative part has no 64 bits
    bind(s, info.negative_part ? std::max<int64_t>(-v, 0) : std::max<int64_t>(v, 0));
  }
  if (value.region != &rdp_.module().main().body || !value.type.dims) return;
  for (size_t i = 0; i < std::min(value.type.dims->size(), actual.dims().size()); ++i) {
    sym::Expr declared = (*value.type.dims)[i];
    if (declared.is_symbol() && !value_of(declared)) bind(declared, actual.dims()[i]);
  }
}

// Which trip it is, where the value is that.
void ClaimChecker::bind_index(const ir::Contents& claimed, const Tensor& actual) {
  if (actual.dtype() != DType::i64 || actual.count() != 1 || claimed.elements.size() != 1) return;
  sym::Expr e = claimed.elements[0];
  const SymbolInfo* info = e && e.is_symbol() ? rdp_.symbol(e) : nullptr;
  if (info != nullptr && info->kind == SymbolInfo::Kind::index && !value_of(e)) bind(e, widen<int64_t>(actual)[0]);
}

void ClaimChecker::contents(const ir::Value& value, const ir::Contents& claimed, const Tensor& actual) {
  if (actual.dtype() == DType::str) return;
  if (static_cast<int64_t>(claimed.elements.size()) != actual.count()) {
    violation(fmt::format("%{} has {} elements, not {}", value.name, actual.count(), claimed.elements.size()));
    return;
  }
  std::vector<double> reals = widen<double>(actual);
  std::vector<int64_t> integers = is_float(actual.dtype()) ? std::vector<int64_t>{} : widen<int64_t>(actual);
  for (size_t i = 0; i < claimed.elements.size(); ++i) {
    sym::Expr e = claimed.elements[i];
    std::optional<int64_t> expected = e ? value_of(e) : std::nullopt;
    if (!expected) continue;
    ++checked_;
    bool same = false;
    if (integers.empty()) {
      double exact = static_cast<double>(*expected) / static_cast<double>(claimed.denominator);
      if (actual.dtype() == DType::f32) exact = static_cast<double>(static_cast<float>(exact));
      same = exact == reals[i];
    } else {
      same = claimed.denominator == 1 && *expected == integers[i];
    }
    if (!same)
      violation(fmt::format("element {} of %{}{} is {}, not {}/{} = {}", i, value.name,
                            value.node ? " of " + value.node->describe() : "", reals[i], *expected, claimed.denominator,
                            sym::to_string(e)));
  }
}

}  // namespace selkie::analysis
