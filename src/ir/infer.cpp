#include "ir/infer.h"

namespace selkie::ir {
namespace {

class Inference {
 public:
  Inference(const std::function<Known(const Value&)>& outer, sym::Context& symbols) : outer_(outer), symbols_(symbols) {}

  std::vector<Known> run(const Region& region, std::vector<Known> parameters);
  Known read(const Value* value) {
    if (value == nullptr) return {};
    auto at = known_.find(value);
    return at != known_.end() ? at->second : outer_(*value);
  }
  sym::Context& symbols() { return symbols_; }

 private:
  void visit(const Node& node);

  const std::function<Known(const Value&)>& outer_;
  sym::Context& symbols_;
  std::unordered_map<const Value*, Known> known_;
};

// Nothing is required and nothing bounded: with numbers for dims there is nothing to relate.
class Services final : public ShapeServices {
 public:
  Services(Inference& inference, const Node& node, sym::Facts& facts)
      : inference_(inference), node_(node), facts_(facts) {}

  sym::Expr unknown_dim(size_t, size_t, const Bounds&) override { return inference_.symbols().fresh("unknown"); }
  sym::Expr trips(const Bounds&) override { return inference_.symbols().fresh("unknown"); }
  void define_trips(sym::Expr) override {}
  sym::Expr trip_index() override { return inference_.symbols().fresh("unknown"); }
  sym::Expr varying_dim(size_t, size_t) override { return inference_.symbols().fresh("unknown"); }
  std::optional<SymElements> name_elements(size_t) override { return std::nullopt; }
  std::optional<std::vector<Known>> run_region(size_t region, std::vector<Known> parameters, bool,
                                               const std::function<void(sym::Facts&)>&) override {
    return inference_.run(*node_.regions[region], std::move(parameters));
  }
  const sym::Facts& region_facts(size_t) const override { return facts_; }
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
  sym::Facts& facts_;
  SymDims dims_;
};

void Inference::visit(const Node& node) {
  std::vector<Known> operands;
  for (const Value* v : node.operands) operands.push_back(read(v));
  std::vector<Known> results(node.results.size());
  sym::Facts facts(symbols_);
  Services services(*this, node, facts);
  try {
    if (node.op->forward) {
      ForwardContext context(*node.op, node.attrs, operands, results, facts, symbols_, services, &node);
      std::vector<Type> types = node.op->forward(context);
      for (size_t i = 0; i < std::min(types.size(), results.size()); ++i) results[i].type = std::move(types[i]);
    }
    if (node.op->value) {
      ValueContext context(*node.op, node.attrs, operands, results, facts, symbols_, services, &node);
      node.op->value(context);
      std::vector<std::optional<Contents>> contents = context.take_contents();
      for (size_t i = 0; i < contents.size(); ++i) results[i].contents = std::move(contents[i]);
    }
  } catch (const Error&) {
    // A node that would fail says nothing about shapes.
  }
  for (size_t i = 0; i < results.size(); ++i) known_[node.results[i].get()] = std::move(results[i]);
}

std::vector<Known> Inference::run(const Region& region, std::vector<Known> parameters) {
  for (size_t i = 0; i < std::min(parameters.size(), region.parameters.size()); ++i)
    known_[region.parameters[i].get()] = std::move(parameters[i]);
  for (const auto& node : region.nodes) visit(*node);
  std::vector<Known> yields;
  for (const Value* v : region.yields) yields.push_back(read(v));
  return yields;
}

}  // namespace

std::vector<Type> infer_region(const Region& region, std::vector<Known> parameters,
                               const std::function<Known(const Value&)>& outer, sym::Context& symbols) {
  std::vector<Type> types;
  for (Known& known : Inference(outer, symbols).run(region, std::move(parameters)))
    types.push_back(std::move(known.type));
  return types;
}

}  // namespace selkie::ir
