// How regions are swept, and how what is found about a value is merged with what was known.
#include "analysis/engine.h"

#include <algorithm>

namespace selkie::analysis {

using ir::Known;
using ir::Node;
using ir::Region;
using ir::Type;
using ir::Value;

namespace {

// Counts how deep regions and calls are nested, also when an error leaves them.
class Nested {
 public:
  explicit Nested(int& depth) : depth_(++depth) {}
  ~Nested() { --depth_; }

 private:
  int& depth_;
};

// While this lives, the set holds only what is put into it meanwhile.
class Apart {
 public:
  explicit Apart(std::set<const Node*>& set) : set_(set), outside_(std::exchange(set, {})) {}
  ~Apart() { set_.merge(outside_); }

 private:
  std::set<const Node*>& set_;
  std::set<const Node*> outside_;
};

Type simplified(Type type, const sym::Facts& facts) {
  if (type.dims)
    for (sym::Expr& e : *type.dims) e = facts.simplify(e);
  for (Type& part : type.parts) part = simplified(std::move(part), facts);
  return type;
}

void collect_expressions(const Type& type, std::vector<sym::Expr>& out) {
  if (type.dims) out.insert(out.end(), type.dims->begin(), type.dims->end());
  for (const Type& part : type.parts) collect_expressions(part, out);
}

void collect_expressions(const Known& known, std::vector<sym::Expr>& out) {
  collect_expressions(known.type, out);
  if (!known.contents) return;
  for (sym::Expr e : known.contents->elements)
    if (e) out.push_back(e);
}

// What a declaration says that nobody has checked: everything but dims.
Type without_dims(Type type) {
  type.dims.reset();
  for (Type& part : type.parts) part = without_dims(std::move(part));
  return type;
}

}  // namespace

Rdp::Engine::Engine(ir::Module& m, Caution caution, const std::vector<std::string>& checked)
    : module(m), symbols(m.symbols()), caution_(std::move(caution)), checked_(checked.begin(), checked.end()) {}

void Rdp::Engine::run() {
  for (const auto& function : module.functions())
    ir::for_each_node(function->body, [&](Node& node, Region& region) { homes_[&node] = &region; });
  visits_left_ = free_visits + visits_per_node * static_cast<int64_t>(homes_.size());
  const ir::Function& main = module.main();
  main_body_ = &main.body;
  RegionState& body = state(main.body);
  body.facts = main.facts;
  for (const auto& parameter : main.body.parameters) {
    Known declared{.type = parameter->type, .contents = {}};
    // Items of a sequence may differ in shape, so their symbols say nothing.
    if (!declared.type.is_tensor()) declared.type = without_dims(std::move(declared.type));
    for (size_t axis = 0; declared.type.dims && axis < declared.type.dims->size(); ++axis) {
      std::vector<sym::Expr> found;
      sym::collect_symbols((*declared.type.dims)[axis], found);
      for (sym::Expr s : found)
        symbol_infos.try_emplace(
            s.id(),
            SymbolInfo{
                .kind = SymbolInfo::Kind::input_dim, .value = parameter.get(), .axis = axis, .region = &main.body});
    }
    name_input_elements(*parameter, declared);
    known[parameter.get()] = std::move(declared);
  }
  analyse(body);
  require_declared_results(main, body);
  for (const auto& function : module.functions()) {
    auto sites = call_sites_.find(function->name);
    // Claims about a function's values hold for its last analysis only: they serve if there is one call.
    bool several =
        function.get() == &main ? sites != call_sites_.end() : sites == call_sites_.end() || sites->second.size() != 1;
    if (several) forget(function->body);
  }
  for (const auto& function : module.functions()) finish(function->body);
  for (const auto& function : module.functions()) classify(function->body);
  collect_entry_checks();
}

// A few integers given as an input are often sizes: they have names from the start.
void Rdp::Engine::name_input_elements(const Value& parameter, Known& declared) {
  constexpr int64_t most = 8;
  std::optional<Dims> dims = ir::small_dims(declared.type);
  if (!dims || element_count(*dims) > most) return;
  if (declared.type.dtype != DType::i64 && declared.type.dtype != DType::i32) return;
  declared.contents.emplace();
  for (int64_t k = 0; k < element_count(*dims); ++k)
    declared.contents->elements.push_back(
        element_symbol(parameter, declared.type.dtype, static_cast<size_t>(k), parameter.name));
}

// Symbols are naturals, so a signed element is the difference of its positive and its negative part.
sym::Expr Rdp::Engine::element_symbol(const Value& value, DType dtype, size_t k, const std::string& hint) {
  const Region& where = home(value);
  bool input = &where == main_body_ && value.node == nullptr;
  auto part = [&](bool negative) {
    return symbol_for({&value, k, negative ? 3 : 2}, fmt::format("{}_{}{}", hint, k, negative ? "_neg" : ""),
                      {.kind = input ? SymbolInfo::Kind::input_element : SymbolInfo::Kind::element,
                       .value = &value,
                       .node = value.node,
                       .axis = k,
                       .negative_part = negative},
                      where);
  };
  sym::Expr positive = part(false);
  return dtype == DType::boolean || is_unsigned_integer(dtype) ? positive : positive - part(true);
}

// The declared types of results are a contract: what they say must hold, and it goes backward from there.
void Rdp::Engine::require_declared_results(const ir::Function& function, RegionState& body) {
  uint64_t before = body.facts_stamp;
  changed_ = false;
  for (size_t i = 0; i < function.result_types.size(); ++i) {
    const Type& declared = function.result_types[i];
    if (!declared.is_tensor() || !declared.dims) continue;
    const Value& value = *function.body.yields[i];
    std::string source = fmt::format("the declared type of result {}", i);
    Known current = view(&value, body.facts);
    if (!current.type.dims) {
      merge(value, {.type = declared, .contents = {}}, body, {.rule = Origin::Rule::backward, .node = nullptr}, source);
      continue;
    }
    if (current.type.dims->size() != declared.dims->size())
      fail("result {} is declared {}, but is {}", i, to_string(declared), to_string(current.type));
    for (size_t axis = 0; axis < declared.dims->size(); ++axis)
      require({.kind = Check::Kind::equal,
               .a = (*current.type.dims)[axis],
               .b = (*declared.dims)[axis],
               .source = source,
               .why = {}},
              body);
  }
  if (before != body.facts_stamp || changed_) {
    sweep(body, false);
    analyse(body);
  }
}

void Rdp::Engine::analyse(RegionState& s) {
  for (int i = 0; i < max_sweeps; ++i) {
    bool changed = sweep(s, true);
    changed = sweep(s, false) || changed;
    if (!changed) break;
  }
}

// Whether facts or what is known of values of this region changed in a way that other nodes may not have seen yet.
bool Rdp::Engine::sweep(RegionState& s, bool forward) {
  uint64_t before = s.facts_stamp;
  bool outer_changed = std::exchange(changed_, false);
  auto visit = [&](const Node& node, bool down) {
    --visits_left_;
    try {
      Visit v(*this, node, s);
      if (caution_.passed_over.contains(&node)) {
        v.claim_nothing();
      } else if (down) {
        v.forward();
        if (s.with_requirements) v.backward();
        v.value();
      } else if (s.with_requirements) {
        v.backward();
      }
    } catch (Error& error) {
      error.note("in " + node.describe());
      failed_node_ = &node;
      throw;
    }
  };
  const auto& nodes = s.region->nodes;
  if (forward)
    for (const auto& node : nodes) visit(*node, true);
  else
    for (size_t i = nodes.size(); i-- > 0;) visit(*nodes[i], false);
  return std::exchange(changed_, outer_changed) || s.facts_stamp != before;
}

RegionState& Rdp::Engine::state(const Region& region) {
  auto& slot = states_[&region];
  if (!slot) {
    slot = std::make_unique<RegionState>(symbols);
    slot->region = &region;
    slot->facts_stamp = ++clock_;
  }
  return *slot;
}

RegionState* Rdp::Engine::find_state(const Region& region) {
  auto at = states_.find(&region);
  return at == states_.end() ? nullptr : at->second.get();
}

const Known& Rdp::Engine::stored(const Value* value) {
  auto [at, fresh] = known.try_emplace(value);
  if (!fresh || value->constant == nullptr) return at->second;
  const ir::Constant& constant = *value->constant;
  ir::SymDims dims;
  for (int64_t d : constant.dims) dims.push_back(symbols.constant(d));
  Known found{.type = Type::tensor(constant.dtype, std::move(dims)), .contents = {}};
  if (element_count(constant.dims) <= ir::max_known_elements && constant.dtype != DType::str)
    found.contents = ir::contents_of(constant.tensor(), symbols);
  return known[value] = std::move(found);
}

Known Rdp::Engine::view(const Value* value, const sym::Facts& facts) {
  Known out = stored(value);
  if (value->constant != nullptr) return out;
  out.type = simplified(std::move(out.type), facts);
  if (out.contents)
    for (sym::Expr& e : out.contents->elements)
      if (e) e = facts.simplify(e);
  return out;
}

const std::vector<const Value*>& Rdp::Engine::captured(const Region& region) {
  auto [at, fresh] = captured_.try_emplace(&region);
  if (!fresh) return at->second;
  std::set<const Value*> inside;
  std::vector<const Value*> found;
  std::function<void(const Region&)> walk = [&](const Region& r) {
    for (const auto& p : r.parameters) inside.insert(p.get());
    auto use = [&](const Value* v) {
      if (v != nullptr && v->constant == nullptr && inside.insert(v).second) found.push_back(v);
    };
    for (const auto& node : r.nodes) {
      for (const Value* v : node->operands) use(v);
      for (const auto& inner : node->regions) walk(*inner);
      for (const auto& result : node->results) inside.insert(result.get());
    }
    for (const Value* v : r.yields) use(v);
  };
  walk(region);
  return captured_[&region] = std::move(found);
}

void Rdp::Engine::forget(const Region& region) {
  for (const auto& p : region.parameters) known.erase(p.get());
  for (const auto& node : region.nodes) {
    for (const auto& r : node->results) known.erase(r.get());
    for (const auto& inner : node->regions) {
      forget(*inner);
      states_.erase(inner.get());
    }
  }
}

// Nothing is claimed about the region any more.
void Rdp::Engine::drop(const Region& region) {
  forget(region);
  states_.erase(&region);
}

std::optional<std::vector<Known>> Rdp::Engine::run_region(const Node& node, size_t index, RegionState& outer,
                                                          std::vector<Known> parameters,
                                                          const std::function<void(sym::Facts&)>& assume,
                                                          bool tentative) {
  const Region& region = *node.regions[index];
  bool with_requirements = !tentative && outer.with_requirements;
  Nested nested(depth_);
  std::vector<Known> seen;
  for (const Value* v : captured(region)) seen.push_back(view(v, outer.facts));
  RegionState& s = state(region);
  if (s.analysed && s.parent_stamp == outer.facts_stamp && s.parameters == parameters && s.captured == seen &&
      s.tentative == tentative && s.with_requirements == with_requirements)
    return s.yields;
  forget(region);
  s.parent = &outer;
  s.parent_stamp = outer.facts_stamp;
  s.facts_stamp = ++clock_;
  s.parameters = parameters;
  s.captured = std::move(seen);
  s.tentative = tentative;
  s.with_requirements = with_requirements;
  s.analysed = true;
  s.checks.clear();
  s.failure.clear();
  s.entry = Entry::possible;
  s.yields = std::vector<Known>(region.yields.size());
  // Past the budget nothing is claimed about the region.
  if (visits_left_ <= 0 || depth_ > max_depth) return s.yields;
  s.facts = facts_inside(node, region, outer, parameters);
  try {
    assume(s.facts);
  } catch (const Error&) {
    s.entry = Entry::never;
    s.yields.reset();
    describe_dead(s, outer, std::move(parameters));
    return s.yields;
  }
  complete(s, node, parameters);
  return s.yields;
}

// Of all that is known outside, what a region can ask for: about what it is given, what it uses, and how often it runs.
sym::Facts Rdp::Engine::facts_inside(const Node& node, const Region& region, const RegionState& outer,
                                     const std::vector<Known>& parameters) {
  std::vector<sym::Expr> expressions;
  for (const Known& parameter : parameters) collect_expressions(parameter, expressions);
  for (const Value* v : captured(region)) collect_expressions(stored(v), expressions);
  for (size_t i = 0; i < node.operands.size(); ++i) {
    if (node.operands[i] != nullptr) collect_expressions(stored(node.operands[i]), expressions);
    if (const ir::SymbolicInts* given = node.static_operand(i))
      expressions.insert(expressions.end(), given->elements.begin(), given->elements.end());
  }
  // Static operands of nodes inside, too.
  ir::for_each_node(region, [&](const Node& inner) {
    for (size_t i = 0; i < inner.operands.size(); ++i)
      if (const ir::SymbolicInts* given = inner.static_operand(i))
        expressions.insert(expressions.end(), given->elements.begin(), given->elements.end());
  });
  for (size_t kind : {0, 1})
    if (auto own = symbols_by_key_.find({&node, SIZE_MAX, kind}); own != symbols_by_key_.end())
      expressions.push_back(own->second);
  return outer.facts.about(expressions);
}

// Analyses a region that can be entered, and finds whether it can be completed.
void Rdp::Engine::complete(RegionState& s, const Node& node, const std::vector<Known>& parameters) {
  const Region& region = *s.region;
  const sym::Facts at_entry = s.facts;
  Apart apart(assuming_);
  while (true) {
    try {
      for (size_t i = 0; i < parameters.size() && i < region.parameters.size(); ++i) {
        known[region.parameters[i].get()] = parameters[i];
        origins[region.parameters[i].get()] = {.rule = Origin::Rule::parameter, .node = &node};
      }
      analyse(s);
      for (size_t i = 0; i < region.yields.size(); ++i) (*s.yields)[i] = view(region.yields[i], s.facts);
      return;
    } catch (const LimitError&) {
      throw;
    } catch (const Error& error) {
      if (assuming_.empty()) {
        // A region that fails whenever it is entered is no error of the module: it may never be entered.
        s.entry = Entry::failing;
        s.failure = error.what();
        s.yields.reset();
        return;
      }
    }
    // It may only be what the analysis assumed that cannot hold.
    caution_.unassuming.merge(assuming_);
    assuming_.clear();
    forget(region);
    s.facts = at_entry;
    s.facts_stamp = ++clock_;
    s.checks.clear();
  }
}

// What a region that is never entered would look like: nobody relies on it, but a reader may ask.
void Rdp::Engine::describe_dead(RegionState& s, RegionState& outer, std::vector<Known> parameters) {
  bool with_requirements = std::exchange(s.with_requirements, false);
  s.facts = facts_inside(*s.region->parent, *s.region, outer, parameters);
  try {
    for (size_t i = 0; i < parameters.size() && i < s.region->parameters.size(); ++i)
      known[s.region->parameters[i].get()] = std::move(parameters[i]);
    analyse(s);
  } catch (const Error&) {
    // It would fail.
  }
  s.with_requirements = with_requirements;
}

std::vector<Known> Rdp::Engine::call(const Node& node, RegionState& outer, std::string_view name,
                                     std::vector<Known> arguments) {
  const ir::Function* function = module.find_function(name);
  if (function == nullptr) fail("there is no function @{}", name);
  call_sites_[function->name].insert(&node);
  std::vector<Known> unknown;
  for (const Type& type : function->result_types) unknown.push_back({.type = without_dims(type), .contents = {}});
  bool recursive = function->name == "main" || std::ranges::find(call_stack_, function->name) != call_stack_.end();
  if (recursive) call_sites_[function->name].insert(nullptr);  // other arguments than the first ones
  Nested nested(depth_);
  if (recursive || visits_left_ <= 0 || depth_ > max_depth) return unknown;
  if (arguments.size() != function->body.parameters.size())
    fail("function @{} takes {} arguments, but {} are given", name, function->body.parameters.size(), arguments.size());
  forget(function->body);
  states_.erase(&function->body);
  RegionState& s = state(function->body);
  s.parent = nullptr;
  s.facts = outer.facts;
  s.with_requirements = outer.with_requirements;
  for (size_t i = 0; i < arguments.size(); ++i) known[function->body.parameters[i].get()] = std::move(arguments[i]);
  call_stack_.push_back(function->name);
  try {
    analyse(s);
  } catch (...) {
    call_stack_.pop_back();
    throw;
  }
  call_stack_.pop_back();
  std::vector<Known> results;
  for (const Value* value : function->body.yields) results.push_back(view(value, s.facts));
  return results;
}

void Rdp::Engine::state_equal(sym::Expr a, sym::Expr b, RegionState& s, const std::string& source) {
  if (a == b) return;
  if (s.facts.add_equal(a, b, source)) s.facts_stamp = ++clock_;
}

void Rdp::Engine::merge_types(const Value& value, Type& old, const Type& found, RegionState& s,
                              const std::string& source) {
  if (found.is_unknown()) return;
  if (old.is_unknown()) {
    old = found;
    changed_ = true;
    return;
  }
  if (old.kind != found.kind) fail("a value is {}, but also {}", to_string(old), to_string(found));
  for (size_t i = 0; i < std::min(old.parts.size(), found.parts.size()); ++i) {
    // The items of a sequence are no single tensor: the newest analysis knows best.
    if (old.parts[i] != found.parts[i]) changed_ = true;
    old.parts[i] = found.parts[i];
  }
  if (!old.is_tensor()) return;
  old.dtype = found.dtype;
  if (!found.dims) return;
  if (!old.dims) {
    old.dims = found.dims;
    changed_ = true;
    return;
  }
  if (old.dims->size() != found.dims->size())
    fail("rank {} from {} contradicts rank {}, which is known already", found.dims->size(), source, old.dims->size());
  for (size_t i = 0; i < old.dims->size(); ++i) {
    sym::Expr& before = (*old.dims)[i];
    sym::Expr now = (*found.dims)[i];
    if (before == now) continue;
    // A symbol of the value's own gets its meaning now, unless only running tells it and requirements say what it must
    // be: those are still to be checked.
    if (before.is_symbol() && !undetermined_.contains(before.id())) {
      auto info = symbol_infos.find(before.id());
      bool own = info != symbol_infos.end() && info->second.value == &value;
      if (own && !info->second.is_input()) define(before, now);
    }
    state_equal(before, now, s, source);
    before = s.facts.simplify(now);
  }
}

void Rdp::Engine::merge_contents(Known& old, const ir::Contents& found, RegionState& s, const std::string& source) {
  if (!old.contents) {
    if (std::ranges::none_of(found.elements, [](sym::Expr e) { return static_cast<bool>(e); })) return;
    old.contents = found;
    changed_ = true;
    return;
  }
  ir::Contents& contents = *old.contents;
  if (contents.elements.size() != found.elements.size() || contents.denominator != found.denominator) return;
  for (size_t i = 0; i < contents.elements.size(); ++i) {
    sym::Expr& before = contents.elements[i];
    sym::Expr now = found.elements[i];
    if (!now || before == now) continue;
    if (before)
      state_equal(before, now, s, source);
    else
      changed_ = true;
    before = s.facts.simplify(now);
  }
}

void Rdp::Engine::merge(const Value& value, Known found, RegionState& s, Origin origin, const std::string& source) {
  Known& old = known[&value];
  bool outer_changed = std::exchange(changed_, false);
  merge_types(value, old.type, found.type, s, source);
  if (found.contents) merge_contents(old, *found.contents, s, source);
  if (changed_) origins[&value] = origin;
  changed_ = changed_ || outer_changed;
}

bool Rdp::Engine::require(Check check, RegionState& s) {
  bool refined = false;
  if (check.kind == Check::Kind::equal) {
    if (check.a == check.b) return false;
    refined = s.facts.add_equal(check.a, check.b, check.source);
  } else {
    if (s.facts.prove_less_equal(check.a, check.b) == sym::Truth::yes) return false;
    refined = s.facts.add_less_equal(check.a, check.b, check.source);
  }
  if (!refined) return false;
  s.facts_stamp = ++clock_;
  s.checks.push_back(std::move(check));
  return true;
}

sym::Expr Rdp::Engine::symbol_for(const std::tuple<const void*, size_t, size_t>& key, std::string_view hint,
                                  SymbolInfo info, const Region& region) {
  auto [at, fresh] = symbols_by_key_.try_emplace(key);
  if (fresh) {
    at->second = symbols.fresh(hint);
    info.region = &region;
    if (info.value != nullptr) symbols_of_values[info.value].push_back(at->second);
    symbol_infos[at->second.id()] = std::move(info);
  }
  return at->second;
}

void Rdp::Engine::bound(sym::Expr symbol, SymbolInfo& info, const ir::Bounds& bounds, RegionState& s,
                        const std::string& source) {
  info.bounds = bounds;
  auto add = [&](sym::Expr a, sym::Expr b) {
    if (s.facts.prove_less_equal(a, b) == sym::Truth::yes) return;
    if (s.facts.add_less_equal(a, b, source)) s.facts_stamp = ++clock_;
  };
  if (bounds.most) add(symbol, bounds.most);
  if (bounds.least) add(bounds.least, symbol);
}

const ir::SymDims& Rdp::Engine::name_dims(const Value& value, size_t rank, RegionState& s, const Node& user) {
  stored(&value);
  Known& entry = known[&value];
  if (!entry.type.dims) {
    bool parameter = value.region == main_body_ && s.region == main_body_;
    SymbolInfo::Kind kind = parameter ? SymbolInfo::Kind::input_dim : SymbolInfo::Kind::dim;
    ir::SymDims dims;
    for (size_t axis = 0; axis < rank; ++axis)
      dims.push_back(symbol_for({&value, axis, 0}, fmt::format("{}_{}", value.name.empty() ? "dim" : value.name, axis),
                                {.kind = kind, .value = &value, .axis = axis}, *s.region));
    DType dtype = entry.type.is_tensor() ? entry.type.dtype : value.type.dtype;
    if (parameter)
      s.checks.push_back({.kind = Check::Kind::rank,
                          .a = {},
                          .b = {},
                          .value = &value,
                          .rank = rank,
                          .source = user.source.empty() ? user.describe() : user.source,
                          .why = {}});
    entry.type = Type::tensor(dtype, std::move(dims));
    origins[&value] = {.rule = Origin::Rule::backward, .node = &user};
    changed_ = true;
  }
  return *entry.type.dims;
}

const Region& Rdp::Engine::home(const Value& value) const {
  return value.node != nullptr ? *homes_.at(value.node) : *value.region;
}

bool Rdp::Engine::tells_trip(sym::Expr e) const {
  std::vector<sym::Expr> found;
  sym::collect_symbols(e, found);
  return std::ranges::any_of(found, [&](sym::Expr symbol) {
    auto info = symbol_infos.find(symbol.id());
    return info != symbol_infos.end() && info->second.kind == SymbolInfo::Kind::index;
  });
}

bool Rdp::Engine::visible(sym::Expr e, const Region& region) const {
  std::vector<sym::Expr> found;
  sym::collect_symbols(e, found);
  return std::ranges::all_of(found, [&](sym::Expr symbol) {
    auto info = symbol_infos.find(symbol.id());
    if (info == symbol_infos.end()) return true;
    for (const Region* r = &region; r != nullptr;) {
      if (r == info->second.region) return true;
      auto at = states_.find(r);
      r = at != states_.end() && at->second->parent != nullptr ? at->second->parent->region : nullptr;
    }
    return info->second.is_input();
  });
}

// What was found, in the terms of the region's last facts.
void Rdp::Engine::finish(const Region& region) {
  RegionState* s = find_state(region);
  if (s == nullptr || s->entry != Entry::possible) return;
  auto simplify = [&](const Value& v) {
    if (known.contains(&v)) known[&v] = view(&v, s->facts);
  };
  for (const auto& p : region.parameters) simplify(*p);
  for (const auto& node : region.nodes) {
    for (const auto& r : node->results) simplify(*r);
    for (const auto& inner : node->regions) finish(*inner);
  }
}

}  // namespace selkie::analysis
