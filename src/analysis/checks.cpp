#include "analysis/checks.h"

#include <algorithm>

#include "base/convert.h"

namespace selkie::analysis {
namespace {

// "dim 1 of 'ids'" for the symbol of an input's dim or element; empty for anything else.
std::string place(sym::Expr e, const Rdp& rdp) {
  const SymbolInfo* info = e.is_symbol() ? rdp.symbol(e) : nullptr;
  if (info == nullptr || info->value == nullptr) return {};
  if (info->kind == SymbolInfo::Kind::input_dim) {
    const std::optional<ir::SymDims>& dims = info->value->type.dims;
    bool declared_so = !dims || (info->axis < dims->size() && (*dims)[info->axis] == e);
    return declared_so ? fmt::format("dim {} of '{}'", info->axis, info->value->name) : std::string();
  }
  if (info->kind == SymbolInfo::Kind::input_element && !info->negative_part)
    return fmt::format("element {} of '{}'", info->axis, info->value->name);
  return {};
}

std::string describe(sym::Expr e, const Rdp& rdp) {
  std::string named = place(e, rdp);
  return named.empty() ? sym::to_string(e) : named;
}

std::string reason(const Check& check) {
  std::string text = "required by " + check.source;
  return check.why.empty() ? text : text + ", " + check.why;
}

class InputValues {
 public:
  InputValues(const Rdp& rdp, std::span<const HostValue> inputs) : rdp_(rdp) {
    const auto& parameters = rdp.module().main().body.parameters;
    for (size_t i = 0; i < std::min(inputs.size(), parameters.size()); ++i) values_[parameters[i].get()] = &inputs[i];
  }

  std::optional<int64_t> operator()(sym::Expr e) const {
    std::vector<sym::Expr> symbols;
    sym::collect_symbols(e, symbols);
    return sym::evaluate(e, [&](std::string_view name) -> std::optional<int64_t> {
      for (sym::Expr s : symbols)
        if (s.symbol_name() == name) return value(s);
      return std::nullopt;
    });
  }

 private:
  std::optional<int64_t> value(sym::Expr symbol) const {
    const SymbolInfo* info = rdp_.symbol(symbol);
    auto at = info == nullptr ? values_.end() : values_.find(info->value);
    if (at == values_.end() || !at->second->is_tensor()) return std::nullopt;
    const Tensor& tensor = at->second->tensor();
    if (info->kind == SymbolInfo::Kind::input_element) {
      if (static_cast<int64_t>(info->axis) >= tensor.count()) return std::nullopt;
      int64_t element = widen<int64_t>(tensor)[info->axis];
      return std::max<int64_t>(info->negative_part ? -element : element, 0);
    }
    // Only a dim that is the symbol itself tells its value.
    const std::optional<ir::SymDims>& dims = info->value->type.dims;
    if (info->axis >= tensor.dims().size()) return std::nullopt;
    if (dims && (*dims)[info->axis] != symbol) return std::nullopt;
    return tensor.dims()[info->axis];
  }

  const Rdp& rdp_;
  std::unordered_map<const ir::Value*, const HostValue*> values_;
};

// Of two inputs that do not fit, the later one is the odd one out.
bool comes_before(sym::Expr a, sym::Expr b, const Rdp& rdp) {
  const ir::Value* first = rdp.symbol(a)->value;
  const ir::Value* second = rdp.symbol(b)->value;
  for (const auto& p : rdp.module().main().body.parameters) {
    if (p.get() == second) return false;
    if (p.get() == first) return true;
  }
  return false;
}

[[noreturn]] void fail_check(const Check& check, int64_t a, int64_t b, const Rdp& rdp) {
  // The side that is a dim of its own is the one to name first.
  sym::Expr left = check.a;
  sym::Expr right = check.b;
  bool swapped = place(left, rdp).empty() ? !place(right, rdp).empty() || left.is_constant()
                                          : !place(right, rdp).empty() && comes_before(left, right, rdp);
  if (swapped) {
    std::swap(left, right);
    std::swap(a, b);
  }
  const SymbolInfo* info = left.is_symbol() ? rdp.symbol(left) : nullptr;
  std::string what = !place(left, rdp).empty() && info->kind == SymbolInfo::Kind::input_dim
                         ? fmt::format("input '{}' dim {} is {}", info->value->name, info->axis, a)
                         : fmt::format("{} is {}", describe(left, rdp), a);
  std::string relation = check.kind == Check::Kind::equal ? "equal" : swapped ? "be at least" : "be at most";
  std::string limit = right.is_constant()          ? fmt::format("{}", b)
                      : !place(right, rdp).empty() ? fmt::format("{} ({})", place(right, rdp), b)
                                                   : fmt::format("{} = {}", sym::to_string(right), b);
  if (right.is_constant() && check.kind == Check::Kind::equal) relation = "be";
  fail("{}, but must {} {}: {}", what, relation, limit, reason(check));
}

}  // namespace

std::string to_string(const Check& check, const Rdp& rdp) {
  if (check.kind == Check::Kind::rank)
    return fmt::format("rank of '{}' == {} ({})", check.value->name, check.rank, reason(check));
  return fmt::format("{} {} {} ({})", describe(check.a, rdp),
                     check.kind == Check::Kind::equal ? "==" : "<=", describe(check.b, rdp), reason(check));
}

void check_inputs(const Rdp& rdp, std::span<const HostValue> inputs) {
  const auto& parameters = rdp.module().main().body.parameters;
  InputValues values(rdp, inputs);
  for (const Check& check : rdp.entry_checks()) {
    if (check.kind == Check::Kind::rank) {
      for (size_t i = 0; i < parameters.size(); ++i)
        if (parameters[i].get() == check.value && inputs[i].is_tensor() &&
            inputs[i].tensor().dims().size() != check.rank)
          fail("input '{}' has shape {}, but must have rank {}: {}", check.value->name,
               selkie::to_string(inputs[i].tensor().dims()), check.rank, reason(check));
      continue;
    }
    std::optional<int64_t> a = values(check.a);
    std::optional<int64_t> b = values(check.b);
    if (!a || !b) continue;
    if (check.kind == Check::Kind::equal ? *a != *b : *a > *b) fail_check(check, *a, *b, rdp);
  }
}

}  // namespace selkie::analysis
