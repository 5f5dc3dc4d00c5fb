// Classes of nodes and dims, and the checks that the facts rest on, once the analysis has come to rest.
#include <algorithm>

#include "analysis/engine.h"
#include "ir/signature.h"

namespace selkie::analysis {

using ir::DynamismClass;
using ir::Known;
using ir::Node;
using ir::Value;

namespace {

bool mentions(const std::unordered_map<uint64_t, SymbolInfo>& infos, sym::Expr e,
              const std::function<bool(const SymbolInfo&)>& wanted) {
  std::vector<sym::Expr> symbols;
  sym::collect_symbols(e, symbols);
  return std::ranges::any_of(symbols, [&](sym::Expr s) {
    auto at = infos.find(s.id());
    return at != infos.end() && wanted(at->second);
  });
}

}  // namespace

bool Rdp::Engine::from_shapes(const Value& value) const {
  if (value.constant != nullptr) return true;
  if (value.node == nullptr) return false;
  auto at = classes.find(value.node);
  return at != classes.end() && at->second.cls == DynamismClass::isdo;
}

NodeClass Rdp::Engine::classify(const Node& node) {
  const ir::OpDef& op = *node.op;
  bool constant_inputs = std::ranges::all_of(node.operands, [&](const Value* v) { return !v || from_shapes(*v); });
  bool plain = op.deterministic && node.regions.empty() && !op.find_attr("callee");
  if (op.dynamism.cls == DynamismClass::isdo || (plain && constant_inputs))
    return {.cls = DynamismClass::isdo, .causes = {}};
  if (op.dynamism.cls == DynamismClass::isdos) return {.cls = DynamismClass::isdos, .causes = {}};
  std::vector<std::string_view> causes;
  for (size_t i = 0; i < node.operands.size(); ++i) {
    const ir::Operand* record = ir::operand_record(op.operands, i);
    bool cause = std::ranges::find(op.dynamism.causes, record->name) != op.dynamism.causes.end();
    if (!cause || node.operands[i] == nullptr) continue;
    const Known& operand = stored(node.operands[i]);
    bool found = operand.contents && operand.contents->complete() &&
                 std::ranges::none_of(operand.contents->elements, [&](sym::Expr e) {
                   return mentions(symbol_infos, e, [](const SymbolInfo& info) { return info.is_element(); });
                 });
    if (!found) causes.push_back(record->name);
  }
  if (op.dynamism.cls == DynamismClass::isvdos)
    return {.cls = causes.empty() ? DynamismClass::isdos : DynamismClass::isvdos, .causes = std::move(causes)};
  // An operator whose shape only running tells, unless its dims were found after all.
  auto own = [&](const SymbolInfo& info) { return info.node == &node; };
  bool found = std::ranges::all_of(node.results, [&](const auto& result) {
    const ir::Type& type = stored(result.get()).type;
    if (!type.is_tensor()) return type.kind != ir::Type::Kind::unknown;
    return type.dims && std::ranges::none_of(*type.dims, [&](sym::Expr e) { return mentions(symbol_infos, e, own); });
  });
  if (found) return {.cls = DynamismClass::isdos, .causes = {}};
  return {.cls = DynamismClass::edo, .causes = std::move(causes)};
}

void Rdp::Engine::classify(const ir::Region& region) {
  for (const auto& node : region.nodes) {
    for (const auto& inner : node->regions) classify(*inner);
    classes[node.get()] = classify(*node);
  }
}

sym::Expr Rdp::Engine::negative_part(sym::Expr e) const {
  std::vector<sym::Expr> parts;
  sym::collect_symbols(e, parts);
  if (parts.size() != 2) return {};
  for (int i = 0; i < 2; ++i) {
    auto negative = symbol_infos.find(parts[i].id());
    auto positive = symbol_infos.find(parts[1 - i].id());
    if (negative == symbol_infos.end() || positive == symbol_infos.end()) return {};
    if (negative->second.negative_part && !positive->second.negative_part && positive->second.is_element() &&
        negative->second.value == positive->second.value && negative->second.axis == positive->second.axis &&
        e == parts[1 - i] - parts[i])
      return parts[i];
  }
  return {};
}

void Rdp::Engine::define(sym::Expr symbol, sym::Expr meaning) {
  if (definitions_.contains(symbol.id())) return;
  std::vector<sym::Expr> symbols_of_meaning;
  sym::collect_symbols(in_inputs(meaning), symbols_of_meaning);
  if (std::ranges::find(symbols_of_meaning, symbol) == symbols_of_meaning.end())
    definitions_.emplace(symbol.id(), meaning);
}

// No definition leads back to its own symbol, so this ends.
sym::Expr Rdp::Engine::in_inputs(sym::Expr e) const {
  while (true) {
    sym::Expr next = sym::substitute(e, [&](sym::Expr s) {
      auto at = definitions_.find(s.id());
      return at == definitions_.end() ? sym::Expr() : at->second;
    });
    if (next == e) return e;
    e = next;
  }
}

void Rdp::Engine::collect_entry_checks() {
  constexpr size_t most_compared = 64;
  const RegionState& body = state(*main_body_);
  auto is_input = [](const SymbolInfo& info) { return info.is_input(); };
  auto only_inputs = [&](sym::Expr e) {
    return !mentions(symbol_infos, e, [&](const SymbolInfo& info) { return !is_input(info); });
  };
  for (Check check : body.checks) {
    if (check.kind != Check::Kind::rank) {
      try {
        check.a = in_inputs(check.a);
        check.b = in_inputs(check.b);
      } catch (const LimitError&) {
        // Too long in terms of the inputs: it is made when its symbols are known.
      }
      if (check.a == check.b) continue;  // two names of one dim
    }
    bool at_entry = check.kind == Check::Kind::rank || (only_inputs(check.a) && only_inputs(check.b));
    (at_entry ? entry_checks : later_checks).push_back(std::move(check));
  }
  if (entry_checks.size() > most_compared) return;
  for (size_t i = entry_checks.size(); i-- > 0;) {
    const Check& check = entry_checks[i];
    if (check.kind == Check::Kind::rank) continue;
    sym::Facts others = module.main().facts;
    for (size_t k = 0; k < entry_checks.size(); ++k) {
      const Check& other = entry_checks[k];
      if (k == i || other.kind == Check::Kind::rank) continue;
      if (other.kind == Check::Kind::equal)
        others.add_equal(other.a, other.b, other.source);
      else
        others.add_less_equal(other.a, other.b, other.source);
    }
    sym::Truth follows = check.kind == Check::Kind::equal ? others.prove_equal(check.a, check.b)
                                                          : others.prove_less_equal(check.a, check.b);
    if (follows == sym::Truth::yes) entry_checks.erase(entry_checks.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

}  // namespace selkie::analysis
