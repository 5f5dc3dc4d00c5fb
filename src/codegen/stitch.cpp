#include "codegen/stitch.h"

#include <algorithm>

#include "codegen/loops.h"

namespace selkie::codegen {
namespace {

using ir::Known;
using ir::Node;
using ir::Value;
using kir::Index;

// Dtypes that kernels load and store.
bool has_kernel_form(DType dtype) {
  constexpr DTypeSet served{DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8,  DType::i16,    DType::i32,
                            DType::i64, DType::u8,  DType::u16, DType::u32,  DType::u64, DType::boolean};
  return served.contains(dtype);
}

bool has_kernel_form(const ir::Type& type) { return type.is_tensor() && type.dims && has_kernel_form(type.dtype); }

// `lower` describes elements; nothing is left to find out about shapes.
class NoServices final : public ir::ShapeServices {
 public:
  sym::Expr unknown_dim(size_t, size_t, const ir::Bounds&) override { return no<sym::Expr>(); }
  sym::Expr trips(const ir::Bounds&) override { return no<sym::Expr>(); }
  void define_trips(sym::Expr) override { no<int>(); }
  sym::Expr trip_index() override { return no<sym::Expr>(); }
  sym::Expr varying_dim(size_t, size_t) override { return no<sym::Expr>(); }
  std::optional<ir::SymElements> name_elements(size_t) override { return no<std::optional<ir::SymElements>>(); }
  std::optional<std::vector<Known>> run_region(size_t, std::vector<Known>, bool,
                                               const std::function<void(sym::Facts&)>&) override {
    return no<std::optional<std::vector<Known>>>();
  }
  const sym::Facts& region_facts(size_t) const override { return *no<const sym::Facts*>(); }
  bool adopt_assumptions(size_t) override { return no<bool>(); }
  std::vector<Known> call(std::string_view, std::vector<Known>) override { return no<std::vector<Known>>(); }
  bool is_given(sym::Expr) const override { return no<bool>(); }
  bool visible(sym::Expr) const override { return no<bool>(); }
  ir::Bounds visible_bounds(sym::Expr, size_t) const override { return no<ir::Bounds>(); }
  void require_equal(sym::Expr, sym::Expr) override { no<int>(); }
  bool require_less_equal(sym::Expr, sym::Expr, std::string_view) override { return no<bool>(); }
  const ir::SymDims& require_rank(size_t, size_t) override { return *no<const ir::SymDims*>(); }

 private:
  template <class T>
  static T no() {
    CHECK(false, "lower asks what only the analysis tells");
    return T();
  }
};

}  // namespace

// One kernel under construction.
class Stitcher::Stitching {
 public:
  Stitching(Stitcher& owner, const std::set<const Node*>& inlined, std::string name)
      : owner_(owner), inlined_(inlined), builder_(owner.symbols_, std::move(name)) {}

  // What `lower` says of a node; elements of its operands are asked from `read`.
  ir::LowerContext& context(const Node& node);
  kir::Value read(const Value& value, const Index& at);
  kir::Value read_if(kir::Value condition, const Value& value, const Index& at);
  kir::Value read_at(const Value& value, kir::Value position);
  std::optional<StitchedKernel> run(const Value& root, bool vectorised);

 private:
  struct Lowered {
    std::vector<Known> operands;
    std::vector<Known> results;
    std::unique_ptr<ir::LowerContext> context;
  };

  kir::Value compute(const Value& value, const Index& at);
  kir::Value static_element(const Known& known, const Index& at);
  kir::Value stored(const Value& value, kir::Value position);
  kir::Value constant_element(const Value& value);
  const ir::SymDims& dims_of(const Value& value) { return *owner_.rdp_.known(value).type.dims; }
  sym::Expr elements(const Value& value);
  bool at_most_once(const Value& value, const std::vector<sym::Expr>& loops);
  void nest(const Value& root, uint32_t output, Index& at, bool vectorised);

  Stitcher& owner_;
  const std::set<const Node*>& inlined_;
  kir::Builder builder_;
  NoServices services_;
  std::map<const Node*, Lowered> lowered_;
  std::map<const Value*, uint32_t> buffers_;
  std::vector<const Value*> inputs_;
  kir::Value guard_;      // under which elements are read now
  bool repeats_ = false;  // something is reduced more often than if it were stored
};

ir::LowerContext& Stitcher::Stitching::context(const Node& node) {
  Lowered& lowered = lowered_[&node];
  if (lowered.context) return *lowered.context;
  for (size_t i = 0; i < node.operands.size(); ++i) {
    if (node.operands[i] != nullptr) {
      lowered.operands.push_back(owner_.rdp_.known(*node.operands[i]));
      continue;
    }
    const ir::SymbolicInts* given = node.static_operand(i);
    lowered.operands.push_back(given != nullptr ? ir::known_of(*given, builder_.symbols()) : Known{});
  }
  for (const auto& result : node.results) lowered.results.push_back(owner_.rdp_.known(*result));
  lowered.context = std::make_unique<ir::LowerContext>(
      node, lowered.operands, lowered.results, owner_.facts_of(node), builder_.symbols(), services_, builder_,
      ir::LowerContext::Operands{
          .at_index =
              [this, &node, &lowered](size_t i, const Index& at, kir::Value condition) {
                if (node.operands[i] != nullptr) return read_if(condition, *node.operands[i], at);
                return static_element(lowered.operands[i], at);
              },
          .at_position = [this, &node](size_t i, kir::Value at) { return read_at(*node.operands[i], at); }});
  node.op->lower(*lowered.context);
  return *lowered.context;
}

kir::Value Stitcher::Stitching::read(const Value& value, const Index& at) {
  if (value.node != nullptr && inlined_.contains(value.node)) return compute(value, at);
  return stored(value, ops::linear_index(builder_, dims_of(value), at));
}

// An element of an operand that a pass wrote on the node.
kir::Value Stitcher::Stitching::static_element(const Known& known, const Index& at) {
  const ir::SymElements& elements = known.contents->elements;
  kir::Value position = ops::linear_index(builder_, *known.type.dims, at);
  if (std::optional<int64_t> number = position.integer() ? position.integer().constant() : std::nullopt)
    return builder_.integer(elements.at(static_cast<size_t>(*number)));
  kir::Value result = builder_.integer(0);
  for (size_t i = 0; i < elements.size(); ++i)
    result = select(position == builder_.integer(static_cast<int64_t>(i)), builder_.integer(elements[i]), result);
  return result;
}

// What is read on the way to an element that may not exist is read under the same condition.
kir::Value Stitcher::Stitching::read_if(kir::Value condition, const Value& value, const Index& at) {
  if (!condition) return read(value, at);
  kir::Value outside = guard_;
  guard_ = guard_ ? guard_ & condition : condition;
  kir::Value result = read(value, at);
  guard_ = outside;
  return result;
}

kir::Value Stitcher::Stitching::read_at(const Value& value, kir::Value position) {
  if (value.node != nullptr && inlined_.contains(value.node))
    return compute(value, ops::index_at(builder_, dims_of(value), position));
  return stored(value, position);
}

// An element of a value that is not computed here.
kir::Value Stitcher::Stitching::stored(const Value& value, kir::Value position) {
  const Known& known = owner_.rdp_.known(value);
  // Elements that are known before the run need no memory.
  if (known.contents && known.contents->complete() && known.contents->denominator == 1 && !is_float(known.type.dtype)) {
    std::optional<int64_t> number = position.integer() ? position.integer().constant() : std::nullopt;
    if (number && *number >= 0 && *number < static_cast<int64_t>(known.contents->elements.size()))
      return cast(builder_.integer(known.contents->elements[static_cast<size_t>(*number)]), known.type.dtype);
  }
  if (kir::Value number = constant_element(value)) return number;
  auto [slot, fresh] = buffers_.try_emplace(&value);
  if (fresh) {
    slot->second = builder_.add_buffer("x" + std::to_string(buffers_.size() - 1), known.type.dtype,
                                       kir::Buffer::Role::input, elements(value));
    inputs_.push_back(&value);
  }
  if (!guard_) return builder_.load(slot->second, position);
  return builder_.load_if(guard_, slot->second, position, builder_.number(known.type.dtype, 0));
}

kir::Value Stitcher::Stitching::compute(const Value& value, const Index& at) {
  kir::Builder::Key key{&value, {}};
  for (const kir::Value& v : at) key.second.push_back(v.id());
  if (guard_) key.second.push_back(guard_.id());
  if (std::optional<kir::Value> before = builder_.recall(key)) return *before;
  const Node& node = *value.node;
  size_t result = 0;
  while (node.results[result].get() != &value) ++result;
  const ir::Element& element = context(node).element(result);
  CHECK(element, "{} does not define result {}", node.describe(), result);
  size_t reductions = builder_.reductions().size();
  kir::Value computed = builder_.hoist(element(at));
  for (; reductions < builder_.reductions().size(); ++reductions)
    if (!at_most_once(value, builder_.reductions()[reductions])) repeats_ = true;
  CHECK(computed.dtype() == owner_.rdp_.known(value).type.dtype, "{} gives {}", node.describe(),
        name(computed.dtype()));
  builder_.remember(std::move(key), computed);
  return computed;
}

// Whether so many runs of a reduction are no more than the value has elements: each loop is over a dim of its own.
bool Stitcher::Stitching::at_most_once(const Value& value, const std::vector<sym::Expr>& loops) {
  const sym::Facts& facts = owner_.facts_of(*value.node);
  ir::SymDims dims = dims_of(value);
  return std::ranges::all_of(loops, [&](sym::Expr extent) {
    auto at = std::ranges::find_if(dims, [&](sym::Expr d) { return facts.prove_equal(d, extent) == sym::Truth::yes; });
    if (at == dims.end()) return false;
    dims.erase(at);
    return true;
  });
}

sym::Expr Stitcher::Stitching::elements(const Value& value) {
  sym::Expr product = builder_.symbols().constant(1);
  for (sym::Expr d : dims_of(value)) product = product * d;
  return product;
}

// The number that a weight of one element is.
kir::Value Stitcher::Stitching::constant_element(const Value& value) {
  if (value.constant == nullptr || element_count(value.constant->dims) != 1) return {};
  DType dtype = value.constant->dtype;
  Tensor tensor = value.constant->tensor();
  if (dtype == DType::f32) return builder_.number(dtype, static_cast<double>(tensor.data<float>()[0]));
  if (dtype == DType::f64) return builder_.number(dtype, tensor.data<double>()[0]);
  return {};
}

// One loop per dim, the last one vectorised.
void Stitcher::Stitching::nest(const Value& root, uint32_t output, Index& at, bool vectorised) {
  const ir::SymDims& dims = dims_of(root);
  if (at.size() == dims.size()) {
    builder_.store(output, ops::linear_index(builder_, dims, at), compute(root, at));
    return;
  }
  if (dims[at.size()].constant() == 1) {
    at.push_back(builder_.integer(0));
    nest(root, output, at, vectorised);
    at.pop_back();
    return;
  }
  bool innermost = std::all_of(dims.begin() + static_cast<std::ptrdiff_t>(at.size()) + 1, dims.end(),
                               [](sym::Expr d) { return d.constant() == 1; });
  auto kind = innermost && vectorised ? kir::Statement::LoopKind::vector : kir::Statement::LoopKind::serial;
  builder_.loop(kind, dims[at.size()], "i", [&](kir::Value variable) {
    at.push_back(variable);
    nest(root, output, at, vectorised);
    at.pop_back();
  });
}

std::optional<StitchedKernel> Stitcher::Stitching::run(const Value& root, bool vectorised) {
  uint32_t output =
      builder_.add_buffer("y", owner_.rdp_.known(root).type.dtype, kir::Buffer::Role::output, elements(root));
  Index at;
  nest(root, output, at, vectorised);
  bool alone = inlined_.size() == 1;  // then there is no other way
  if (builder_.reduces_in_vector_loop() || (repeats_ && !alone)) return std::nullopt;
  std::vector<IndexCheck> checks;
  for (const auto& [node, lowered] : lowered_)
    for (const auto& check : lowered.context->index_checks()) {
      const Value* indices = node->operands[check.operand];
      if (indices->node != nullptr && inlined_.contains(indices->node)) return std::nullopt;  // not to be checked
      checks.push_back({.indices = indices, .extent = check.extent, .node = node});
    }
  return StitchedKernel{.kernel = shape_loops(builder_.finish(), builder_.symbols()),
                        .inputs = std::move(inputs_),
                        .index_checks = std::move(checks),
                        .vectorised = vectorised};
}

Stitcher::Stitcher(ir::Module& module, const analysis::Rdp& rdp) : rdp_(rdp), symbols_(module.symbols()) {
  for (const auto& function : module.functions())
    ir::for_each_node(function->body, [&](Node& node, ir::Region& region) { homes_[&node] = &region; });
}

sym::Facts& Stitcher::facts_of(const Node& node) {
  const ir::Region* region = homes_.at(&node);
  return facts_.try_emplace(region, rdp_.region(*region).facts).first->second;
}

const Stitcher::Probe& Stitcher::probe(const Node& node) {
  auto at = probes_.find(&node);
  if (at == probes_.end()) at = probes_.emplace(&node, make_probe(node)).first;
  return at->second;
}

const std::string& Stitcher::refusal(const Node& node) { return probe(node).refusal; }
const std::optional<ir::ProductForm>& Stitcher::product(const Node& node) { return probe(node).product; }
bool Stitcher::is_view(const Node& node) { return probe(node).view; }

Stitcher::Probe Stitcher::make_probe(const Node& node) {
  if (!node.op->lower) return {.refusal = std::string(node.op->lower.reason())};
  auto formless = [&](const Value* v) { return v != nullptr && !has_kernel_form(rdp_.known(*v).type); };
  if (std::ranges::any_of(node.operands, formless) ||
      std::ranges::any_of(node.results, [&](const auto& r) { return formless(r.get()); }))
    return {.refusal = "a rank is not known, or a dtype has no kernels"};
  try {
    std::set<const Node*> none;
    Stitching stitching(*this, none, "probe");
    const ir::LowerContext& context = stitching.context(node);
    return {.refusal = {}, .product = context.product(), .view = context.is_view()};
  } catch (const ir::NotLowered& refused) {
    return {.refusal = refused.reason};
  }
}

std::optional<StitchedKernel> Stitcher::stitch(const Value& root, const std::set<const Node*>& inlined,
                                               std::string name) {
  // Rows of elements side by side, or, if each element is a reduction, one after the other.
  if (auto kernel = Stitching(*this, inlined, name).run(root, true)) return kernel;
  return Stitching(*this, inlined, std::move(name)).run(root, false);
}

}  // namespace selkie::codegen
