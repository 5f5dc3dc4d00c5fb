// One application of a node's hooks: what they see and what they may ask.
#include <algorithm>

#include "analysis/engine.h"
#include "ir/fold.h"

namespace selkie::analysis {

using ir::Known;
using ir::Type;

Visit::Visit(Rdp::Engine& engine, const ir::Node& node, RegionState& state)
    : engine_(engine), node_(node), state_(state) {}

const std::string& Visit::source() const {
  if (source_.empty()) source_ = node_.source.empty() ? node_.describe() : node_.source;
  return source_;
}

void Visit::load_operands() {
  operands_.clear();
  for (size_t i = 0; i < node_.operands.size(); ++i) {
    if (node_.operands[i] != nullptr) {
      operands_.push_back(engine_.view(node_.operands[i], state_.facts));
      continue;
    }
    Known& operand = operands_.emplace_back();
    const ir::SymbolicInts* given = node_.static_operand(i);
    if (given == nullptr) continue;
    operand = ir::known_of(*given, engine_.symbols);
    for (sym::Expr& e : operand.contents->elements) e = state_.facts.simplify(e);
  }
}

void Visit::load_results() {
  results_.clear();
  for (const auto& result : node_.results) results_.push_back(engine_.view(result.get(), state_.facts));
}

void Visit::forward() {
  load_operands();
  results_.assign(node_.results.size(), {});
  for (const auto& result : node_.results)
    for (sym::Expr s : engine_.symbols_of_values[result.get()]) engine_.undetermined_.erase(s.id());
  std::vector<Type> types;
  std::vector<std::optional<ir::Contents>> contents;
  if (node_.op->forward && ir::are_typed(node_, operands_)) {
    try {
      ir::ForwardContext context(*node_.op, node_.attrs, operands_, results_, state_.facts, engine_.symbols, *this,
                                 &node_);
      types = node_.op->forward(context);
      contents = context.take_contents();
    } catch (const LimitError&) {
      types.clear();  // the shape is beyond what expressions can say: unknown
      for (const auto& region : node_.regions) engine_.drop(*region);  // left half-way
    }
  }
  state_results(std::move(types), std::move(contents));
}

void Visit::claim_nothing() { state_results({}, {}); }

void Visit::state_results(std::vector<Type> types, std::vector<std::optional<ir::Contents>> contents) {
  for (size_t i = 0; i < node_.results.size(); ++i) {
    Known found;
    if (i < types.size()) found.type = std::move(types[i]);
    if (i < contents.size()) found.contents = std::move(contents[i]);
    if (found.type.is_unknown() && node_.results[i]->type.is_tensor())
      found.type = Type::tensor(node_.results[i]->type.dtype);
    engine_.merge(*node_.results[i], std::move(found), state_, {.rule = Origin::Rule::forward, .node = &node_},
                  source());
  }
}

void Visit::backward() {
  if (!node_.op->backward) return;
  load_operands();
  if (!ir::are_typed(node_, operands_)) return;
  load_results();
  try {
    ir::BackwardContext context(*node_.op, node_.attrs, operands_, results_, state_.facts, engine_.symbols, *this,
                                &node_);
    node_.op->backward(context);
  } catch (const LimitError&) {
    // Nothing follows then.
  }
}

void Visit::value() {
  bool small = std::ranges::any_of(
      node_.results, [&](const auto& result) { return ir::small_dims(engine_.stored(result.get()).type).has_value(); });
  if (!small) return;
  load_operands();
  load_results();
  if (!ir::are_typed(node_, operands_) || fold() || !node_.op->value) return;
  std::vector<std::optional<ir::Contents>> contents;
  try {
    ir::ValueContext context(*node_.op, node_.attrs, operands_, results_, state_.facts, engine_.symbols, *this, &node_);
    node_.op->value(context);
    contents = context.take_contents();
  } catch (const LimitError&) {
    return;
  }
  for (size_t i = 0; i < contents.size(); ++i) {
    if (!contents[i]) continue;
    std::optional<Dims> dims = ir::small_dims(results_[i].type);
    if (!dims) continue;
    CHECK(element_count(*dims) == static_cast<int64_t>(contents[i]->elements.size()), "value of {}", node_.describe());
    engine_.merge(*node_.results[i], {.type = {}, .contents = std::move(contents[i])}, state_,
                  {.rule = Origin::Rule::forward, .node = &node_}, source());
  }
}

// Evaluates a node whose operands are all numbers. Whether it did.
bool Visit::fold() {
  std::optional<std::vector<Known>> results = ir::fold(node_, operands_, engine_.symbols);
  for (size_t i = 0; results && i < results->size(); ++i)
    engine_.merge(*node_.results[i], std::move((*results)[i]), state_, {.rule = Origin::Rule::forward, .node = &node_},
                  source());
  return results.has_value();
}

sym::Expr Visit::unknown_dim(size_t result, size_t axis, const ir::Bounds& bounds) {
  const ir::Value* value = result < node_.results.size() ? node_.results[result].get() : nullptr;
  sym::Expr symbol =
      engine_.symbol_for({&node_, result, axis}, node_.op->name,
                         {.kind = SymbolInfo::Kind::dim, .value = value, .node = &node_, .axis = axis}, *state_.region);
  engine_.undetermined_.insert(symbol.id());
  engine_.bound(symbol, engine_.symbol_infos[symbol.id()], bounds, state_, source());
  return state_.facts.simplify(symbol);
}

sym::Expr Visit::trips(const ir::Bounds& bounds) {
  sym::Expr symbol = engine_.symbol_for({&node_, SIZE_MAX, 0}, "trips",
                                        {.kind = SymbolInfo::Kind::trips, .node = &node_}, *state_.region);
  engine_.bound(symbol, engine_.symbol_infos[symbol.id()], bounds, state_, source());
  return state_.facts.simplify(symbol);
}

void Visit::define_trips(sym::Expr trips) {
  sym::Expr symbol = engine_.symbols_by_key_.at({&node_, SIZE_MAX, 0});
  engine_.define(symbol, trips);
  engine_.state_equal(symbol, trips, state_, source());
}

sym::Expr Visit::trip_index() {
  return engine_.symbol_for({&node_, SIZE_MAX, 1}, "i", {.kind = SymbolInfo::Kind::index, .node = &node_},
                            *node_.regions[0]);
}

sym::Expr Visit::varying_dim(size_t parameter, size_t axis) {
  const ir::Region& body = *node_.regions[0];
  const ir::Value* value = body.parameters[parameter].get();
  std::string hint = fmt::format("{}_{}", value->name.empty() ? "state" : value->name, axis);
  return engine_.symbol_for({value, axis, 0}, hint,
                            {.kind = SymbolInfo::Kind::dim, .value = value, .node = &node_, .axis = axis}, body);
}

std::optional<ir::SymElements> Visit::name_elements(size_t i) {
  if (i >= operands_.size()) return std::nullopt;
  Known& operand = operands_[i];
  if (operand.type.is_tensor() && is_float(operand.type.dtype)) return std::nullopt;
  std::optional<Dims> dims = ir::small_dims(operand.type);
  if (!dims || (operand.contents && operand.contents->denominator != 1)) return std::nullopt;
  if (operand.contents && operand.contents->complete()) return operand.contents->elements;
  const ir::Value& value = *node_.operands[i];
  ir::Contents contents =
      operand.contents.value_or(ir::Contents{.elements = ir::SymElements(static_cast<size_t>(element_count(*dims)))});
  for (size_t k = 0; k < contents.elements.size(); ++k)
    if (!contents.elements[k]) contents.elements[k] = name_element(value, operand.type.dtype, k);
  operand.contents = contents;
  // How many elements there are may be known here only, under the facts of this region.
  const sym::Facts& outer = engine_.state(engine_.home(value)).facts;
  if (ir::small_dims(engine_.view(&value, outer).type) == dims) {
    engine_.known[&value].contents = contents;
    engine_.changed_ = true;
  }
  ir::SymElements out;
  for (sym::Expr e : contents.elements) out.push_back(state_.facts.simplify(e));
  return out;
}

sym::Expr Visit::name_element(const ir::Value& value, DType dtype, size_t k) {
  sym::Expr element =
      engine_.element_symbol(value, dtype, k, value.name.empty() ? std::string(node_.op->name) : value.name);
  if (dtype != DType::boolean) return element;
  // It holds wherever the value is seen, from its own region inwards.
  const ir::Region& home = engine_.home(value);
  for (RegionState* s = &state_; s != nullptr; s = s->region == &home ? nullptr : s->parent)
    if (s->facts.add_range(element, {.lo = 0, .hi = 1}, source())) s->facts_stamp = ++engine_.clock_;
  return element;
}

std::optional<std::vector<Known>> Visit::run_region(size_t region, std::vector<Known> parameters, bool tentative,
                                                    const std::function<void(sym::Facts&)>& assume) {
  return engine_.run_region(node_, region, state_, std::move(parameters), assume, tentative);
}

const sym::Facts& Visit::region_facts(size_t region) const { return engine_.state(*node_.regions[region]).facts; }

bool Visit::adopt_assumptions(size_t region) {
  std::vector<Check> assumed = engine_.state(*node_.regions[region]).checks;
  std::erase_if(assumed, [](const Check& check) { return check.why.empty(); });
  if (!std::ranges::all_of(assumed, [&](const Check& check) { return visible(check.a) && visible(check.b); }))
    return false;
  for (Check& check : assumed) engine_.require(std::move(check), state_);
  return true;
}

// Symbols in the types of a function are its own: here, each stands for some size.
std::vector<Known> Visit::declared_results(const ir::Function& function) {
  std::vector<Known> out;
  for (size_t i = 0; i < function.result_types.size(); ++i) {
    ir::Type type = function.result_types[i];
    if (!type.is_tensor()) type = {};
    for (size_t axis = 0; type.dims && axis < type.dims->size(); ++axis)
      if (sym::Expr& dim = (*type.dims)[axis]; !dim.constant()) dim = unknown_dim(i, axis, {});
    out.push_back({.type = std::move(type), .contents = {}});
  }
  return out;
}

std::vector<Known> Visit::call(std::string_view function, std::vector<Known> arguments) {
  if (engine_.checked_.contains(function)) return declared_results(*engine_.module.find_function(function));
  return engine_.call(node_, state_, function, std::move(arguments));
}

bool Visit::is_given(sym::Expr e) const {
  std::vector<sym::Expr> symbols;
  sym::collect_symbols(e, symbols);
  return std::ranges::any_of(symbols, [&](sym::Expr s) {
    auto info = engine_.symbol_infos.find(s.id());
    return info != engine_.symbol_infos.end() && info->second.is_element();
  });
}

bool Visit::visible(sym::Expr e) const { return engine_.visible(e, *state_.region); }

ir::Bounds Visit::visible_bounds(sym::Expr e, size_t region) const {
  const sym::Facts& facts = region_facts(region);
  auto bound_of = [&](sym::Expr symbol, bool upper, auto& self, int depth) -> std::optional<sym::Expr> {
    if (engine_.visible(symbol, *state_.region)) return sym::Expr();
    const SymbolInfo& info = engine_.symbol_infos.at(symbol.id());
    sym::Expr stated = upper ? info.bounds.most : info.bounds.least;
    if (stated && depth < 8) {
      sym::SymbolBounds deeper{.most = [&](sym::Expr s) { return self(s, true, self, depth + 1); },
                               .least = [&](sym::Expr s) { return self(s, false, self, depth + 1); }};
      std::optional<sym::Expr> found = upper ? sym::upper_bound(stated, deeper) : sym::lower_bound(stated, deeper);
      if (found) return found;
    }
    sym::Range range = facts.range(symbol);
    if (upper && range.hi) return engine_.symbols.constant(*range.hi);
    if (!upper) return engine_.symbols.constant(range.lo.value_or(0));
    return std::nullopt;
  };
  sym::SymbolBounds bounds{.most = [&](sym::Expr s) { return bound_of(s, true, bound_of, 0); },
                           .least = [&](sym::Expr s) { return bound_of(s, false, bound_of, 0); }};
  ir::Bounds out;
  if (auto most = sym::upper_bound(e, bounds)) out.most = *most;
  if (auto least = sym::lower_bound(e, bounds)) out.least = *least;
  return out;
}

void Visit::require_equal(sym::Expr a, sym::Expr b) {
  if (!state_.with_requirements || a == b) return;
  engine_.require({.kind = Check::Kind::equal, .a = a, .b = b, .source = source(), .why = {}}, state_);
}

bool Visit::require_less_equal(sym::Expr a, sym::Expr b, std::string_view why) {
  bool assumed = !why.empty();
  bool may_assume = !engine_.caution_.unassuming.contains(&node_) && !engine_.tells_trip(a) && !engine_.tells_trip(b);
  if (!state_.with_requirements || (assumed && !may_assume))
    return state_.facts.prove_less_equal(a, b) == sym::Truth::yes;
  // A signed element that must be natural has no negative part.
  if (sym::Expr negative = a.constant() == 0 ? engine_.negative_part(b) : sym::Expr()) {
    require_equal(negative, engine_.symbols.constant(0));
    return true;
  }
  if (assumed) engine_.assuming_.insert(&node_);
  engine_.require({.kind = Check::Kind::less_equal, .a = a, .b = b, .source = source(), .why = std::string(why)},
                  state_);
  return true;
}

const ir::SymDims& Visit::require_rank(size_t operand, size_t rank) {
  Known& seen = operands_[operand];
  if (seen.type.dims) {
    if (seen.type.dims->size() != rank)
      fail("operand {} has rank {}, but must have rank {}", operand, seen.type.dims->size(), rank);
    return *seen.type.dims;
  }
  const ir::Value& value = *node_.operands[operand];
  ir::SymDims dims;
  if (&engine_.home(value) == state_.region) {
    dims = engine_.name_dims(value, rank, state_, node_);
  } else {
    // What one arm needs does not hold for the other: a value from outside only gets names here.
    for (size_t axis = 0; axis < rank; ++axis)
      dims.push_back(engine_.symbol_for({&value, axis, reinterpret_cast<size_t>(state_.region)},
                                        fmt::format("{}_{}", value.name.empty() ? "dim" : value.name, axis),
                                        {.kind = SymbolInfo::Kind::dim, .value = &value, .axis = axis},
                                        *state_.region));
  }
  seen.type = Type::tensor(seen.type.is_tensor() ? seen.type.dtype : value.type.dtype, std::move(dims));
  return *seen.type.dims;
}

}  // namespace selkie::analysis
