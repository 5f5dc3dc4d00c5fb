#include "ir/infer.h"

namespace selkie::ir {
namespace {

class Inference {
 public:
  Inference(const std::function<Known(const Value&)>& outer, sym::Context& symbols)
      : outer_(outer), symbols_(symbols) {}

  std::vector<Known> run(const Region& region, std::vector<Known> parameters);
  Known read(const Value* value) {
    if (value == nullptr) return {};
    auto at = known_.find(value);
    return at != known_.end() ? at->second : outer_(*value);
  }
  sym::Context& symbols() { return symbols_; }
  // What only running tells: one symbol for each thing.
  sym::Expr unknown(const std::tuple<const void*, size_t, size_t>& key) {
    auto [at, fresh] = unknowns_.try_emplace(key);
    if (fresh) at->second = symbols_.fresh("unknown");
    return at->second;
  }

  void define(sym::Expr symbol, sym::Expr value) { definitions_[symbol.id()] = value; }

  // Why the value is in doubt: a node that it depends on cannot run at these sizes. Empty if it is not.
  std::string failure(const Value* value) const {
    auto at = failures_.find(value);
    return at == failures_.end() ? std::string() : at->second;
  }

 private:
  void visit(const Node& node);
  std::vector<Known> apply(const Node& node, const std::vector<Known>& operands);
  std::optional<std::vector<Known>> apply_to_symbols(const Node& node, std::vector<Known> operands);

  const std::function<Known(const Value&)>& outer_;
  sym::Context& symbols_;
  std::unordered_map<const Value*, Known> known_;
  std::map<std::tuple<const void*, size_t, size_t>, sym::Expr> unknowns_;
  std::unordered_map<uint64_t, sym::Expr> definitions_;  // of unknowns that were found after all
  std::unordered_map<const Value*, std::string> failures_;
  std::string region_failure_;  // of a yield of a region of the node that is being visited
};

// Nothing is required and nothing bounded: with numbers for dims there is nothing to relate.
class Services final : public ShapeServices {
 public:
  Services(Inference& inference, const Node& node, const std::vector<Known>& operands, sym::Facts& facts)
      : inference_(inference), node_(node), operands_(operands), facts_(facts), region_facts_(facts) {}

  sym::Expr unknown_dim(size_t result, size_t axis, const Bounds&) override {
    return inference_.unknown({&node_, result, axis});
  }
  sym::Expr trips(const Bounds& bounds) override {
    if (bounds.most && bounds.most.constant() == 0) return bounds.most;
    sym::Expr symbol = inference_.unknown({&node_, SIZE_MAX, 0});
    if (bounds.most) facts_.add_less_equal(symbol, bounds.most, "the trips of a loop");
    return symbol;
  }
  void define_trips(sym::Expr trips) override { inference_.define(inference_.unknown({&node_, SIZE_MAX, 0}), trips); }
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
    region_facts_ = facts_;
    try {
      assume(region_facts_);
    } catch (const Error&) {
      return std::nullopt;  // it cannot be entered
    }
    try {
      return inference_.run(*node_.regions[region], std::move(parameters));
    } catch (const Error&) {
      return std::nullopt;  // nor completed
    }
  }
  const sym::Facts& region_facts(size_t) const override { return region_facts_; }
  std::vector<Known> call(std::string_view, std::vector<Known>) override {
    return std::vector<Known>(node_.results.size());
  }
  bool is_given(sym::Expr) const override { return false; }
  bool visible(sym::Expr) const override { return true; }
  Bounds visible_bounds(sym::Expr, size_t) const override { return {}; }
  void require_equal(sym::Expr, sym::Expr) override {}
  bool require_less_equal(sym::Expr, sym::Expr, std::string_view) override { return false; }
  const SymDims& require_rank(size_t, size_t rank) override {
    dims_.assign(rank, inference_.symbols().fresh("unknown"));
    return dims_;
  }

 private:
  Inference& inference_;
  const Node& node_;
  const std::vector<Known>& operands_;
  sym::Facts& facts_;
  sym::Facts region_facts_;  // under which the last region was entered
  SymDims dims_;
};

void Inference::visit(const Node& node) {
  std::vector<Known> operands;
  std::string failed;
  for (const Value* v : node.operands) {
    operands.push_back(read(v));
    if (failed.empty()) failed = failure(v);
  }
  std::string outside = std::exchange(region_failure_, {});
  std::vector<Known> results(node.results.size());
  try {
    results = apply(node, operands);
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
  sym::Facts facts(symbols_);
  Services services(*this, node, operands, facts);
  if (node.op->forward) {
    ForwardContext context(*node.op, node.attrs, operands, results, facts, symbols_, services, &node);
    std::vector<Type> types = node.op->forward(context);
    for (size_t i = 0; i < std::min(types.size(), results.size()); ++i) results[i].type = std::move(types[i]);
    auto defined = [&](sym::Expr s) {
      auto at = definitions_.find(s.id());
      return at == definitions_.end() ? sym::Expr() : at->second;
    };
    for (Known& result : results)
      for (size_t i = 0; result.type.dims && i < result.type.dims->size(); ++i)
        (*result.type.dims)[i] = sym::substitute((*result.type.dims)[i], defined);
  }
  if (node.op->value) {
    ValueContext context(*node.op, node.attrs, operands, results, facts, symbols_, services, &node);
    node.op->value(context);
    std::vector<std::optional<Contents>> contents = context.take_contents();
    for (size_t i = 0; i < contents.size(); ++i) results[i].contents = std::move(contents[i]);
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
  try {
    results = apply(node, operands);
  } catch (const Error&) {
    return std::nullopt;
  }
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

std::vector<InferredResult> infer_region(const Region& region, std::vector<Known> parameters,
                                         const std::function<Known(const Value&)>& outer, sym::Context& symbols) {
  Inference inference(outer, symbols);
  std::vector<Known> yields = inference.run(region, std::move(parameters));
  std::vector<InferredResult> results;
  for (size_t i = 0; i < yields.size(); ++i)
    results.push_back({.type = std::move(yields[i].type), .failure = inference.failure(region.yields[i])});
  return results;
}

}  // namespace selkie::ir
