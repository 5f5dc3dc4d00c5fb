// Which nodes have kernels whose sizes are known before they run, and which regions are compiled.
#include <algorithm>

#include "compiler/emitter.h"

namespace selkie::compiler {

using analysis::SymbolInfo;
using ir::ControlForm;
using ir::Known;

// Symbols that a run knows by the time it comes to a node.
struct Emitter::KnownSymbols {
  std::set<uint64_t> ids;
  std::vector<uint64_t> in_order;

  void insert(sym::Expr symbol) {
    if (ids.insert(symbol.id()).second) in_order.push_back(symbol.id());
  }
  // Forgets all but the first ones.
  void shrink(size_t count) {
    for (; in_order.size() > count; in_order.pop_back()) ids.erase(in_order.back());
  }
};

void Emitter::learn(const Value& value, KnownSymbols& known) const {
  const Known& about = rdp_.known(value);
  if (!about.type.is_tensor() || !about.type.dims) return;
  std::vector<sym::Expr> symbols;
  for (sym::Expr d : *about.type.dims)
    if (d.is_symbol()) symbols.push_back(d);
  if (about.contents)
    for (sym::Expr e : about.contents->elements)
      if (e) sym::collect_symbols(e, symbols);
  for (sym::Expr s : symbols) {
    const SymbolInfo* info = rdp_.symbol(s);
    if (info == nullptr || !info->is_element() || info->value == &value) known.insert(s);
  }
}

bool Emitter::is_sized(const Value& value, const KnownSymbols& known) const {
  const Known& about = rdp_.known(value);
  // A size beyond 64 bits is the reference's to refuse, with the name of the node.
  if (!bytes_of(about.type, module_.symbols())) return false;
  std::vector<sym::Expr> symbols;
  for (sym::Expr d : *about.type.dims) sym::collect_symbols(d, symbols);
  return std::ranges::all_of(symbols, [&](sym::Expr s) { return known.ids.contains(s.id()); });
}

void Emitter::find_computable() {
  KnownSymbols known;
  find_computable(main_.body, known);
}

// Nodes whose results have a size that is known before they run, and an element that a kernel can compute.
void Emitter::find_computable(const ir::Region& region, KnownSymbols& known) {
  for (const auto& parameter : region.parameters) learn(*parameter, known);
  for (const auto& node : region.nodes) {
    bool fine =
        std::ranges::all_of(node->results, [&](const auto& r) { return is_sized(*r, known); }) &&
        std::ranges::all_of(node->operands, [&](const Value* v) { return v == nullptr || is_sized(*v, known); });
    if (fine && stitcher_.form(*node).refusal.empty() && has_constant_weights(*node)) computable_.insert(node.get());
    if (node->op->control != nullptr) find_in_regions(*node, known);
    for (const auto& result : node->results) learn(*result, known);
  }
}

namespace {

void collect_symbols(const Known& known, std::vector<sym::Expr>& symbols) {
  if (known.type.dims)
    for (sym::Expr d : *known.type.dims) sym::collect_symbols(d, symbols);
  if (known.contents)
    for (sym::Expr e : known.contents->elements)
      if (e) sym::collect_symbols(e, symbols);
}

void collect_symbols(const std::vector<analysis::Check>& checks, std::vector<sym::Expr>& symbols) {
  for (const analysis::Check& check : checks) {
    if (check.kind == analysis::Check::Kind::rank) continue;
    sym::collect_symbols(check.a, symbols);
    sym::collect_symbols(check.b, symbols);
  }
}

// fn(symbol) for those that stand for how often a node runs its region, or for which trip it is.
template <class Function>
void for_each_count(const std::vector<sym::Expr>& symbols, const analysis::Rdp& rdp, const ir::Node& node,
                    SymbolInfo::Kind kind, Function fn) {
  for (sym::Expr s : symbols) {
    const SymbolInfo* info = rdp.symbol(s);
    if (info != nullptr && info->kind == kind && info->node == &node) fn(s);
  }
}

}  // namespace

void Emitter::find_in_regions(const Node& node, KnownSymbols& known) {
  if (std::string why = control_refusal(node, known); !why.empty()) {
    refused_control_.emplace(&node, std::move(why));
    return;
  }
  for (const auto& region : node.regions) {
    if (!is_possible(*region)) continue;
    size_t before = known.in_order.size();
    std::vector<sym::Expr> symbols;
    for (const auto& parameter : region->parameters) collect_symbols(rdp_.known(*parameter), symbols);
    for_each_count(symbols, rdp_, node, SymbolInfo::Kind::index, [&](sym::Expr s) { known.insert(s); });
    find_computable(*region, known);
    known.shrink(before);
  }
  std::vector<sym::Expr> symbols;
  for (const auto& result : node.results) collect_symbols(rdp_.known(*result), symbols);
  for_each_count(symbols, rdp_, node, SymbolInfo::Kind::trips, [&](sym::Expr s) { known.insert(s); });
}

// Where a node requires of a dim that changes from trip to trip what it must be, only the check still names the trip.
void Emitter::bind_index(const Node& node, const ir::Region& body, Slot index) {
  std::vector<sym::Expr> symbols;
  for (const auto& parameter : body.parameters) collect_symbols(rdp_.known(*parameter), symbols);
  collect_symbols(later_checks_, symbols);
  for_each_count(symbols, rdp_, node, SymbolInfo::Kind::index, [&](sym::Expr s) {
    if (!sizes_.knows(s)) sizes_.bind(s, index, false);
  });
}

void Emitter::bind_trips(const Node& node, Slot trips) {
  std::vector<sym::Expr> symbols;
  for (const auto& result : node.results) collect_symbols(rdp_.known(*result), symbols);
  collect_symbols(later_checks_, symbols);
  for_each_count(symbols, rdp_, node, SymbolInfo::Kind::trips, [&](sym::Expr s) {
    if (!sizes_.knows(s)) sizes_.bind(s, trips, false);
  });
}

std::string Emitter::control_refusal(const Node& node, const KnownSymbols& known) const {
  for (size_t i = 0; i < node.operands.size(); ++i) {
    std::vector<sym::Expr> symbols;
    if (const ir::SymbolicInts* given = node.static_operand(i))
      for (sym::Expr e : given->elements) sym::collect_symbols(e, symbols);
    if (!std::ranges::all_of(symbols, [&](sym::Expr s) { return known.ids.contains(s.id()); }))
      return "a size is not known before it runs";
  }
  ControlForm form = node.op->control(node);
  switch (form.kind) {
    case ControlForm::Kind::branch:
      return {};
    case ControlForm::Kind::loop:
      return loop_refusal(node, form, known);
    case ControlForm::Kind::map:
      return map_refusal(node);
    case ControlForm::Kind::replace:
      return replacement_refusal(node, known);
    case ControlForm::Kind::call:
      return std::ranges::find(options_.functions, form.callee) != options_.functions.end()
                 ? ""
                 : "its function has operators without kernels";
    default:
      return {};
  }
}

// What is known of the first trip before it is known that there is one.
Emitter::KnownSymbols Emitter::at_first_trip(const Node& node, const ControlForm& form, KnownSymbols known) const {
  const ir::Region& body = *node.regions[0];
  std::vector<sym::Expr> symbols;
  for (const auto& parameter : body.parameters) collect_symbols(rdp_.known(*parameter), symbols);
  for_each_count(symbols, rdp_, node, SymbolInfo::Kind::index, [&](sym::Expr s) { known.insert(s); });
  for (size_t i = 0; i < form.states; ++i) {
    const ir::Type& type = rdp_.known(*body.parameters[(form.counts ? 2 : 0) + i]).type;
    const ir::Type& initial = rdp_.known(*node.operands[form.first_state + i]).type;
    if (!type.dims || !initial.dims || initial.dims->size() != type.dims->size()) continue;
    for (sym::Expr d : *type.dims)
      if (d.is_symbol()) known.insert(d);
  }
  return known;
}

// The shape of an output is that of the first trip, as long as that does not require anything.
bool Emitter::has_shape_without_trips(const Node& node, const ControlForm& form, size_t output,
                                      const KnownSymbols& known) const {
  const ir::Region& body = *node.regions[0];
  const ir::SymDims& stacked = *rdp_.known(*node.results[form.states + output]).type.dims;
  KnownSymbols with_trips = known;
  std::vector<sym::Expr> symbols;
  sym::collect_symbols(stacked[0], symbols);
  for (sym::Expr s : symbols) with_trips.insert(s);
  if (is_sized(*node.results[form.states + output], with_trips)) return true;
  const Value& slice = *body.yields[body.yields.size() - form.outputs.size() + output];
  return rdp_.region(body).checks.empty() && is_sized(slice, at_first_trip(node, form, known));
}

std::string Emitter::loop_refusal(const Node& node, const ControlForm& form, const KnownSymbols& known) const {
  const ir::Region& body = *node.regions[0];
  if (!is_possible(body)) return "its body cannot be completed";
  auto is_ranked = [&](const Value& value) {
    const ir::Type& type = rdp_.known(value).type;
    return type.is_tensor() && type.dims && type.dtype != DType::str;
  };
  for (size_t i = 0; i < form.inputs.size(); ++i) {
    const Value& whole = *node.operands[form.first_state + form.states + i];
    if (!is_ranked(whole) || !is_sized(whole, known) || !is_ranked(*body.parameters[form.states + i]))
      return "the size of what it takes slices of is not known";
  }
  for (size_t i = 0; i < form.outputs.size(); ++i) {
    const Value& result = *node.results[form.states + i];
    const Value& slice = *body.yields[body.yields.size() - form.outputs.size() + i];
    if (!is_ranked(slice) || !is_ranked(result)) return "the rank of what it stacks is not known";
    bool is_first = form.outputs[i].axis == 0 ||
                    -form.outputs[i].axis == static_cast<int64_t>(rdp_.known(result).type.dims->size());
    if (is_sized(result, known) && stacks_as_known(node, form, i)) continue;
    if (!is_first) return "slices of unknown size are stacked along an inner axis";
    if (!has_shape_without_trips(node, form, i, known)) return "it stacks what has no shape if there are no trips";
  }
  return {};
}

std::string Emitter::map_refusal(const Node& node) const {
  if (!is_possible(*node.regions[0])) return "its body cannot be completed";
  for (const Value* operand : node.operands)
    if (operand == nullptr || rdp_.known(*operand).type.is_unknown()) return "the type of an operand is not known";
  return rdp_.known(*node.operands[0]).type.kind == ir::Type::Kind::seq ? "" : "it is not known to map a sequence";
}

}  // namespace selkie::compiler
