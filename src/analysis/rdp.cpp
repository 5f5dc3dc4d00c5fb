#include "analysis/rdp.h"

#include "analysis/engine.h"

namespace selkie::analysis {

// A node whose facts leave what expressions can say (sizes beyond 64 bits) is passed over, and the analysis made anew
// without it: facts that were half stated cannot be taken back. So it is where what was only assumed, to keep dims
// simple, turns out to be impossible: that must not refuse a program that runs.
Rdp::Rdp(ir::Module& module, const std::vector<std::string>& checked) {
  constexpr size_t most = 16;
  Caution caution;
  while (true) {
    engine_ = std::make_unique<Engine>(module, caution, checked);
    try {
      engine_->run();
      return;
    } catch (const LimitError&) {
      const ir::Node* node = engine_->failed_node();
      if (node == nullptr || caution.passed_over.size() == most || !caution.passed_over.insert(node).second) throw;
    } catch (const Error&) {
      if (engine_->assuming().empty()) throw;
      caution.unassuming.insert(engine_->assuming().begin(), engine_->assuming().end());
    }
  }
}
Rdp::~Rdp() = default;
Rdp::Rdp(Rdp&&) noexcept = default;

const ir::Module& Rdp::module() const { return engine_->module; }
const ir::Known& Rdp::known(const ir::Value& value) const { return engine_->stored(&value); }
const RegionFacts& Rdp::region(const ir::Region& region) const { return engine_->state(region); }

const NodeClass& Rdp::node_class(const ir::Node& node) const { return engine_->classes.at(&node); }

Origin Rdp::origin(const ir::Value& value) const {
  auto at = engine_->origins.find(&value);
  return at == engine_->origins.end() ? Origin{} : at->second;
}

const SymbolInfo* Rdp::symbol(sym::Expr symbol) const {
  auto at = engine_->symbol_infos.find(symbol.id());
  return at == engine_->symbol_infos.end() ? nullptr : &at->second;
}

std::span<const sym::Expr> Rdp::symbols_of(const ir::Value& value) const {
  auto at = engine_->symbols_of_values.find(&value);
  return at == engine_->symbols_of_values.end() ? std::span<const sym::Expr>() : at->second;
}

const std::vector<Check>& Rdp::entry_checks() const { return engine_->entry_checks; }

const std::vector<Check>& Rdp::later_checks() const { return engine_->later_checks; }

DimKind Rdp::dim_kind(sym::Expr dim) const {
  if (dim.is_constant()) return DimKind::constant;
  std::vector<sym::Expr> symbols;
  sym::collect_symbols(dim, symbols);
  DimKind worst = DimKind::symbolic;
  for (sym::Expr s : symbols) {
    const SymbolInfo* info = symbol(s);
    if (info == nullptr || info->is_input() || info->kind == SymbolInfo::Kind::index) continue;
    worst = std::max(worst, DimKind::bounded);
  }
  if (worst == DimKind::symbolic) return worst;
  // Bounded if every symbol of the run can be replaced by what it is at most.
  int steps = 0;
  auto bound = [&](sym::Expr s, bool upper, auto& self) -> std::optional<sym::Expr> {
    const SymbolInfo* info = symbol(s);
    if (info == nullptr || info->is_input() || info->kind == SymbolInfo::Kind::index) return sym::Expr();
    if (!upper) return engine_->symbols.constant(0);
    if (info->bounds.most && ++steps < 64) {
      sym::SymbolBounds deeper{.most = [&](sym::Expr e) { return self(e, true, self); },
                               .least = [&](sym::Expr e) { return self(e, false, self); }};
      if (auto found = sym::upper_bound(info->bounds.most, deeper)) return found;
    }
    if (info->region == nullptr) return std::nullopt;
    sym::Range range = engine_->state(*info->region).facts.range(s);
    return range.hi ? std::optional(engine_->symbols.constant(*range.hi)) : std::nullopt;
  };
  sym::SymbolBounds bounds{.most = [&](sym::Expr e) { return bound(e, true, bound); },
                           .least = [&](sym::Expr e) { return bound(e, false, bound); }};
  return sym::upper_bound(dim, bounds) ? DimKind::bounded : DimKind::unknown;
}

std::optional<sym::Expr> Rdp::most_elements(const ir::Value& value) const {
  const ir::Type& type = known(value).type;
  if (type.dims) {
    sym::Expr all = engine_->symbols.constant(1);
    for (sym::Expr e : *type.dims) {
      if (dim_kind(e) == DimKind::unknown) return std::nullopt;
      all = all * e;
    }
    return all;
  }
  if (value.node == nullptr) return std::nullopt;
  bool keeps = value.node->op->mapping == ir::Mapping::one_to_one && value.node->operands.size() == 1;
  if (keeps) return most_elements(*value.node->operands[0]);
  if (value.node->regions.empty()) return std::nullopt;
  // A branch: each result is one of the regions' yields.
  size_t index = 0;
  while (value.node->results[index].get() != &value) ++index;
  std::optional<sym::Expr> most;
  for (const auto& region : value.node->regions) {
    if (!region->parameters.empty() || region->yields.size() != value.node->results.size()) return std::nullopt;
    if (engine_->state(*region).entry != Entry::possible) continue;
    std::optional<sym::Expr> one = most_elements(*region->yields[index]);
    if (!one) return std::nullopt;
    most = most ? sym::max(*most, *one) : *one;
  }
  return most;
}

bool Rdp::shape_determined(const ir::Value& value) const {
  if (value.constant != nullptr) return true;
  const ir::Known& known = engine_->stored(&value);
  if (!known.contents || !known.contents->complete()) return false;
  for (sym::Expr e : known.contents->elements) {
    std::vector<sym::Expr> symbols;
    sym::collect_symbols(e, symbols);
    for (sym::Expr s : symbols) {
      const SymbolInfo* info = symbol(s);
      if (info != nullptr && info->kind != SymbolInfo::Kind::input_dim) return false;
    }
  }
  return true;
}

}  // namespace selkie::analysis
