#include "ir/infer.h"

#include <algorithm>

#include "ir/fold.h"

namespace selkie::ir {
namespace {

// Regions are followed several times, and calls wherever they stand: past this nothing more is found.
constexpr int64_t most_visits = 100'000;

class Inference {
 public:
  Inference(const Surroundings& outer, sym::Context& symbols) : outer_(outer), symbols_(symbols), facts_(symbols) {}

  std::vector<Known> run(const Region& region, std::vector<Known> parameters);
  // The same under these facts, which are refined.
  std::vector<Known> run(const Region& region, std::vector<Known> parameters, sym::Facts& facts);
  std::vector<Known> call(const Node& node, std::string_view name, std::vector<Known> arguments);
  Known read(const Value* value);
  sym::Context& symbols() { return symbols_; }
  sym::Facts& facts() { return facts_; }
  // What only running tells: one symbol for each thing.
  sym::Expr unknown(const std::tuple<const void*, size_t, size_t>& key) {
    auto [at, fresh] = unknowns_.try_emplace(key);
    if (fresh) at->second = symbols_.fresh("unknown");
    return at->second;
  }

  // Why the value is in doubt: a node that it depends on cannot run at these sizes. Empty if it is not.
  std::string failure(const Value* value) const {
    auto at = failures_.find(value);
    return at == failures_.end() ? std::string() : at->second;
  }

 private:
  void visit(const Node& node);
  std::vector<Known> apply(const Node& node, const std::vector<Known>& operands);
  std::optional<std::vector<Known>> apply_to_symbols(const Node& node, std::vector<Known> operands);

  const Surroundings& outer_;
  sym::Context& symbols_;
  sym::Facts facts_;  // about unknowns, in the region that is being visited
  std::unordered_map<const Value*, Known> known_;
  std::map<std::tuple<const void*, size_t, size_t>, sym::Expr> unknowns_;
  std::unordered_map<const Value*, std::string> failures_;
  std::vector<const Function*> call_stack_;
  int64_t visits_ = 0;
  std::string region_failure_;  // of a yield of a region of the node that is being visited
};

// Nothing is required: with numbers for dims there is nothing to relate. Only what is not known has facts, so that no
// less is found than by the analysis.
class Services final : public ShapeServices {
 public:
  Services(Inference& inference, const Node& node, const std::vector<Known>& operands)
      : inference_(inference), node_(node), operands_(operands) {}

  sym::Expr unknown_dim(size_t result, size_t axis, const Bounds& bounds) override {
    return bounded(inference_.unknown({&node_, result, axis}), bounds);
  }
  sym::Expr trips(const Bounds& bounds) override { return bounded(inference_.unknown({&node_, SIZE_MAX, 0}), bounds); }
  void define_trips(sym::Expr trips) override {
    inference_.facts().add_equal(inference_.unknown({&node_, SIZE_MAX, 0}), trips, "the trips of a loop");
    defined_trips_ = true;
  }
  bool defined_trips() const { return defined_trips_; }
  sym::Expr trip_index() override { return inference_.unknown({&node_, SIZE_MAX, 1}); }
  sym::Expr varying_dim(size_t parameter, size_t axis) override {
    return inference_.unknown({node_.regions[0].get(), parameter, axis});
  }
  std::optional<SymElements> name_elements(size_t i) override {
    bool known = i < operands_.size() && operands_[i].contents && operands_[i].contents->complete() &&
                 operands_[i].contents->denominator == 1;
    if (known) return operands_[i].contents->elements;
    std::optional<Dims> dims = i < operands_.size() ? small_dims(operands_[i].type) : std::nullopt;
    if (!dims) return std::nullopt;
    SymElements elements;
    for (int64_t k = 0; k < element_count(*dims); ++k) elements.push_back(inference_.symbols().fresh("unknown"));
    return elements;
  }
  std::optional<std::vector<Known>> run_region(size_t region, std::vector<Known> parameters, bool,
                                               const std::function<void(sym::Facts&)>& assume) override {
    sym::Facts& facts = region_facts_.insert_or_assign(region, inference_.facts()).first->second;
    try {
      assume(facts);
    } catch (const Error&) {
      return std::nullopt;  // it cannot be entered
    }
    try {
      return inference_.run(*node_.regions[region], std::move(parameters), facts);
    } catch (const Error&) {
      return std::nullopt;  // nor completed
    }
  }
  const sym::Facts& region_facts(size_t region) const override { return region_facts_.at(region); }
  bool adopt_assumptions(size_t) override { return true; }  // there are none
  std::vector<Known> call(std::string_view function, std::vector<Known> arguments) override {
    return inference_.call(node_, function, std::move(arguments));
  }
  bool is_given(sym::Expr) const override { return false; }
  bool visible(sym::Expr) const override { return true; }
  Bounds visible_bounds(sym::Expr, size_t) const override { return {}; }
  void require_equal(sym::Expr, sym::Expr) override {}
  bool require_less_equal(sym::Expr a, sym::Expr b, std::string_view) override {
    return inference_.facts().prove_less_equal(a, b) == sym::Truth::yes;
  }
  const SymDims& require_rank(size_t, size_t rank) override {
    dims_.assign(rank, inference_.symbols().fresh("unknown"));
    return dims_;
  }

 private:
  sym::Expr bounded(sym::Expr symbol, const Bounds& bounds) {
    sym::Facts& facts = inference_.facts();
    if (bounds.most) facts.add_less_equal(symbol, bounds.most, "a bound");
    if (bounds.least) facts.add_less_equal(bounds.least, symbol, "a bound");
    return facts.simplify(symbol);
  }

  Inference& inference_;
  const Node& node_;
  const std::vector<Known>& operands_;
  std::map<size_t, sym::Facts> region_facts_;
  bool defined_trips_ = false;
  SymDims dims_;
};

Known Inference::read(const Value* value) {
  if (value == nullptr) return {};
  auto at = known_.find(value);
  if (at == known_.end()) return outer_.value(*value);
  Known out = at->second;
  for (size_t i = 0; out.type.dims && i < out.type.dims->size(); ++i)
    (*out.type.dims)[i] = facts_.simplify((*out.type.dims)[i]);
  for (size_t i = 0; out.contents && i < out.contents->elements.size(); ++i)
    if (sym::Expr& e = out.contents->elements[i]) e = facts_.simplify(e);
  return out;
}

void Inference::visit(const Node& node) {
  std::vector<Known> operands;
  std::string failed;
  for (size_t i = 0; i < node.operands.size(); ++i) {
    const Value* operand = node.operands[i];
    operands.push_back(operand != nullptr ? read(operand) : outer_.static_operand(node, i));
    if (failed.empty()) failed = failure(operand);
  }
  std::string outside = std::exchange(region_failure_, {});
  std::vector<Known> results(node.results.size());
  try {
    if (++visits_ <= most_visits && are_typed(node, operands)) results = apply(node, operands);
  } catch (const Error& error) {
    if (auto form = apply_to_symbols(node, operands))
      results = std::move(*form);
    else if (failed.empty())
      failed = fmt::format("{}: {}", node.describe(), error.what());
  }
  if (failed.empty()) failed = region_failure_;
  region_failure_ = std::move(outside);
  for (size_t i = 0; i < results.size(); ++i) {
    const Value* value = node.results[i].get();
    known_[value] = std::move(results[i]);
    if (failed.empty())
      failures_.erase(value);
    else
      failures_[value] = failed;
  }
}

std::vector<Known> Inference::apply(const Node& node, const std::vector<Known>& operands) {
  std::vector<Known> results(node.results.size());
  Services services(*this, node, operands);
  if (node.op->forward) {
    auto forward = [&] {
      ForwardContext context(*node.op, node.attrs, operands, results, facts_, symbols_, services, &node);
      std::vector<Type> types = node.op->forward(context);
      std::vector<std::optional<Contents>> contents = context.take_contents();
      std::vector<Known> found(node.results.size());
      for (size_t i = 0; i < std::min(types.size(), found.size()); ++i) found[i].type = std::move(types[i]);
      for (size_t i = 0; i < std::min(contents.size(), found.size()); ++i) found[i].contents = std::move(contents[i]);
      return found;
    };
    std::vector<Known> found = forward();
    if (services.defined_trips()) found = forward();  // the body says more when its trips are known
    results = std::move(found);
  }
  if (auto folded = fold(node, operands, symbols_)) {
    for (size_t i = 0; i < folded->size(); ++i)
      if ((*folded)[i].type.is_tensor()) results[i] = std::move((*folded)[i]);
  } else if (node.op->value) {
    ValueContext context(*node.op, node.attrs, operands, results, facts_, symbols_, services, &node);
    node.op->value(context);
    std::vector<std::optional<Contents>> contents = context.take_contents();
    for (size_t i = 0; i < contents.size(); ++i)
      if (contents[i]) results[i].contents = std::move(contents[i]);
  }
  return results;
}

// What the results of a node that fails at these sizes are nevertheless: its form, if that only copies sizes of
// operands (as squeezing a dim that is not 1 does). Where it computes with sizes that do not fit, no answer is right,
// nor is one of two that do not fit each other, such as an element of the shape that a dim of the data does not expand
// to.
std::optional<std::vector<Known>> Inference::apply_to_symbols(const Node& node, std::vector<Known> operands) {
  std::unordered_map<uint64_t, sym::Expr> numbers;
  for (Known& operand : operands) {
    if (operand.contents && !is_float(operand.type.dtype)) continue;  // the shape may depend on how many there are
    operand.contents.reset();
    for (size_t i = 0; operand.type.dims && i < operand.type.dims->size(); ++i) {
      sym::Expr symbol = symbols_.fresh("size");
      numbers[symbol.id()] = std::exchange((*operand.type.dims)[i], symbol);
    }
  }
  std::vector<Known> results;
  sym::Facts before = facts_;
  try {
    results = apply(node, operands);
  } catch (const Error&) {
    facts_ = std::move(before);
    return std::nullopt;
  }
  facts_ = std::move(before);
  for (Known& result : results) {
    result.contents.reset();
    if (!result.type.is_tensor() || !result.type.dims) return std::nullopt;
    for (sym::Expr& dim : *result.type.dims) {
      auto at = numbers.find(dim.id());
      if (at == numbers.end()) return std::nullopt;
      dim = at->second;
    }
  }
  return results;
}

std::vector<Known> Inference::call(const Node& node, std::string_view name, std::vector<Known> arguments) {
  const Function* function = outer_.module.find_function(name);
  if (function == nullptr) fail("there is no function @{}", name);
  // The values of a function are those of one call at a time.
  bool recursive = std::ranges::find(call_stack_, function) != call_stack_.end();
  if (recursive || arguments.size() != function->body.parameters.size()) return std::vector<Known>(node.results.size());
  call_stack_.push_back(function);
  std::vector<Known> results;
  try {
    results = run(function->body, std::move(arguments));
  } catch (...) {
    call_stack_.pop_back();
    throw;
  }
  call_stack_.pop_back();
  return results;
}

std::vector<Known> Inference::run(const Region& region, std::vector<Known> parameters, sym::Facts& facts) {
  std::swap(facts_, facts);
  std::vector<Known> yields;
  try {
    yields = run(region, std::move(parameters));
  } catch (...) {
    std::swap(facts_, facts);
    throw;
  }
  std::swap(facts_, facts);
  return yields;
}

std::vector<Known> Inference::run(const Region& region, std::vector<Known> parameters) {
  for (size_t i = 0; i < std::min(parameters.size(), region.parameters.size()); ++i)
    known_[region.parameters[i].get()] = std::move(parameters[i]);
  for (const auto& node : region.nodes) visit(*node);
  std::vector<Known> yields;
  for (const Value* v : region.yields) {
    yields.push_back(read(v));
    if (region_failure_.empty()) region_failure_ = failure(v);
  }
  return yields;
}

}  // namespace

std::vector<InferredResult> infer_region(const Region& region, std::vector<Known> parameters, const Surroundings& outer,
                                         sym::Context& symbols) {
  Inference inference(outer, symbols);
  std::vector<Known> yields = inference.run(region, std::move(parameters));
  std::vector<InferredResult> results;
  for (size_t i = 0; i < yields.size(); ++i)
    results.push_back({.type = std::move(yields[i].type), .failure = inference.failure(region.yields[i])});
  return results;
}

}  // namespace selkie::ir
