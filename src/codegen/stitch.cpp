#include "codegen/stitch.h"

#include <algorithm>

#include "codegen/loops.h"

namespace selkie::codegen {
namespace {

using ir::Known;
using ir::Node;
using ir::Value;
using kir::Index;

// Fewer elements of an axis make bad vectors.
constexpr int64_t least_lanes = 8;

// Dtypes that kernels load and store.
bool has_kernel_form(DType dtype) {
  constexpr DTypeSet served{DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8,  DType::i16,    DType::i32,
                            DType::i64, DType::u8,  DType::u16, DType::u32,  DType::u64, DType::boolean};
  return served.contains(dtype);
}

bool has_kernel_form(const ir::Type& type) { return type.is_tensor() && type.dims && has_kernel_form(type.dtype); }

// `lower` describes elements; nothing is left to find out about shapes, but some things are left to the run.
class LowerServices final : public ir::ShapeServices {
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
  void require_equal(sym::Expr a, sym::Expr b) override {
    if (std::ranges::find(checks_, SizeCheck(a, b)) == checks_.end()) checks_.emplace_back(a, b);
  }
  bool require_less_equal(sym::Expr, sym::Expr, std::string_view) override { return no<bool>(); }
  const ir::SymDims& require_rank(size_t, size_t) override { return *no<const ir::SymDims*>(); }

  const std::vector<SizeCheck>& checks() const { return checks_; }

 private:
  template <class T>
  static T no() {
    CHECK(false, "lower asks what only the analysis tells");
    return T();
  }

  std::vector<SizeCheck> checks_;
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
  // With the output's axes in this order from the outermost loop to the innermost.
  std::optional<StitchedKernel> run(const Value& root, const Layout& order, bool vectorised);
  std::optional<StitchedKernel> run_epilogue(const Value& root, const Value& producer, size_t columns);
  StitchedKernel run_copy(const Value& value, const Layout& to);
  std::optional<StitchedKernel> run_part(const Value& root, const Value& part, size_t axis, sym::Expr offset);
  const std::vector<SizeCheck>& size_checks() const { return services_.checks(); }

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
  bool is_repeated(const Value& value, const Index& at);
  bool at_most_once(const Value& value, const std::vector<sym::Expr>& loops);
  // One loop per axis in the given order, the innermost that has more than one step vectorised.
  void nest(const SymDims& dims, const Layout& order, bool vectorised, const std::function<void(const Index&)>& body);
  void nest(const SymDims& dims, const Layout& order, size_t depth, bool vectorised, Index& at,
            const std::function<void(const Index&)>& body);
  const Layout& layout(const Value& value) { return owner_.placement_.layout(value); }
  bool is_inlined(const Value& value) { return value.node != nullptr && inlined_.contains(value.node); }
  bool is_at_root(const Value& value, const Index& at);
  bool find_checks(StitchedKernel& kernel);

  Stitcher& owner_;
  const std::set<const Node*>& inlined_;
  kir::Builder builder_;
  LowerServices services_;
  std::map<const Node*, Lowered> lowered_;
  std::map<const Value*, uint32_t> buffers_;
  std::vector<const Value*> inputs_;
  kir::Value guard_;  // under which elements are read now
  std::map<const Value*, size_t> evaluations_;
  bool repeats_ = false;  // something is computed more often than if it were stored
  // Of an epilogue: what it overwrites, at which index, and where that is.
  const Value* producer_ = nullptr;
  uint32_t produced_ = 0;  // its buffer: the output, unless its elements are of another dtype
  Index root_at_;
  kir::Value root_position_;
  bool misplaced_ = false;  // it would read what another place holds
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
  if (&value == producer_) {
    misplaced_ = misplaced_ || !is_at_root(value, at);
    return builder_.load(produced_, root_position_);
  }
  if (is_inlined(value)) {
    // A view of stored memory is read where it is.
    const Value* viewed = owner_.placement_.views.contains(value.node) ? value.node->operands[0] : nullptr;
    if (viewed == nullptr || viewed == producer_ || is_inlined(*viewed)) return compute(value, at);
    return stored(*viewed, position(builder_, layout(value), dims_of(value), at));
  }
  if (root_position_ && is_at_root(value, at)) return stored(value, root_position_);
  return stored(value, position(builder_, layout(value), dims_of(value), at));
}

// Whether the element lies where the epilogue's own does, counted from the beginning of its tensor.
bool Stitcher::Stitching::is_at_root(const Value& value, const Index& at) {
  const SymDims& dims = dims_of(value);
  const SymDims& own = dims_of(*producer_);
  if (dims.size() != own.size() || layout(value) != layout(*producer_)) return false;
  const sym::Facts& facts = owner_.facts_of(*producer_->node);
  for (size_t i = 0; i < dims.size(); ++i)
    if (at[i].id() != root_at_[i].id() || facts.prove_equal(dims[i], own[i]) != sym::Truth::yes) return false;
  return true;
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
  if (is_inlined(value) || &value == producer_ || !layout(value).empty())
    return read(value, ops::index_at(builder_, dims_of(value), position));
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
  // Nothing comes of it any more.
  if (repeats_ && inlined_.size() > 1) return builder_.number(owner_.rdp_.known(value).type.dtype, 0);
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
  // Reading again is no worse than storing; little arithmetic on what has few elements is cheaper than a kernel.
  bool is_small = elements(value).constant().has_value() && !builder_.is_reducing();
  // A window that is written out asks for the same value at many places; the passes of a norm or a softmax are few.
  bool often = ++evaluations_[&value] > 4;
  if ((often || is_repeated(value, at)) && builder_.cost(computed) > (is_small && !often ? 6 : 1)) repeats_ = true;
  builder_.remember(std::move(key), computed);
  return computed;
}

// Whether what is computed now may be computed more often than the value has elements.
bool Stitcher::Stitching::is_repeated(const Value& value, const Index& at) {
  std::vector<sym::Expr> loops = builder_.extents_of(at);
  if (at_most_once(value, loops)) return false;
  sym::Expr times = builder_.symbols().constant(1);
  for (sym::Expr extent : loops) times = times * extent;
  return owner_.facts_of(*value.node).prove_less_equal(times, elements(value)) != sym::Truth::yes;
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

void Stitcher::Stitching::nest(const SymDims& dims, const Layout& order, bool vectorised,
                               const std::function<void(const Index&)>& body) {
  Index at(dims.size(), builder_.integer(0));
  nest(dims, memory_order(order, dims.size()), 0, vectorised, at, body);
}

void Stitcher::Stitching::nest(const SymDims& dims, const Layout& order, size_t depth, bool vectorised, Index& at,
                               const std::function<void(const Index&)>& body) {
  while (depth < order.size() && dims[order[depth]].constant() == 1) ++depth;
  if (depth == order.size()) return body(at);
  bool innermost = std::all_of(order.begin() + static_cast<std::ptrdiff_t>(depth) + 1, order.end(),
                               [&](uint32_t axis) { return dims[axis].constant() == 1; });
  auto kind = innermost && vectorised ? kir::Statement::LoopKind::vector : kir::Statement::LoopKind::serial;
  builder_.loop(kind, dims[order[depth]], "i", [&](kir::Value variable) {
    at[order[depth]] = variable;
    nest(dims, order, depth + 1, vectorised, at, body);
    at[order[depth]] = builder_.integer(0);
  });
}

// What must be checked before the kernel runs; false if it cannot be.
bool Stitcher::Stitching::find_checks(StitchedKernel& kernel) {
  kernel.size_checks = services_.checks();
  for (const auto& [node, lowered] : lowered_)
    for (const auto& check : lowered.context->index_checks()) {
      const Value* indices = node->operands[check.operand];
      if (is_inlined(*indices)) return false;
      kernel.index_checks.push_back({.indices = indices, .extent = check.extent, .node = node});
    }
  return true;
}

std::optional<StitchedKernel> Stitcher::Stitching::run(const Value& root, const Layout& order, bool vectorised) {
  uint32_t output =
      builder_.add_buffer("y", owner_.rdp_.known(root).type.dtype, kir::Buffer::Role::output, elements(root));
  nest(dims_of(root), order, vectorised, [&](const Index& at) {
    builder_.store(output, position(builder_, layout(root), dims_of(root), at), compute(root, at));
  });
  bool alone = inlined_.size() == 1;  // then there is no other way
  if (repeats_ && !alone) return std::nullopt;
  StitchedKernel result{.inputs = std::move(inputs_), .vectorised = vectorised};
  if (!find_checks(result)) return std::nullopt;
  result.reduces_by_lane = builder_.reduces_in_vector_loop();
  result.idle_loops = builder_.idle_loops();
  result.kernel = shape_loops(builder_.finish(), builder_.symbols());
  return result;
}

std::optional<StitchedKernel> Stitcher::Stitching::run_epilogue(const Value& root, const Value& producer,
                                                                size_t columns) {
  const SymDims& dims = dims_of(root);
  DType from = owner_.rdp_.known(producer).type.dtype;
  DType to = owner_.rdp_.known(root).type.dtype;
  uint32_t output = builder_.add_buffer("y", to, kir::Buffer::Role::output, elements(root));
  produced_ = output;
  if (from != to) {
    produced_ = builder_.add_buffer("x", from, kir::Buffer::Role::input, elements(producer));
    inputs_.push_back(&producer);
  }
  std::vector<uint32_t> rows;
  SymDims row_dims;
  for (uint32_t axis : memory_order(layout(root), dims.size()))
    if (axis != columns) {
      rows.push_back(axis);
      row_dims.push_back(dims[axis]);
    }
  sym::Expr row_count = builder_.symbols().constant(1);
  for (sym::Expr d : row_dims) row_count = row_count * d;
  auto range = kir::Statement::LoopKind::range;
  builder_.loop(range, row_count, "row", [&](kir::Value row) {
    builder_.loop(range, dims[columns], "column", [&](kir::Value column) {
      root_at_.resize(dims.size());
      Index row_at = ops::index_at(builder_, row_dims, row);
      for (size_t i = 0; i < rows.size(); ++i) root_at_[rows[i]] = row_at[i];
      root_at_[columns] = column;
      root_position_ = row * builder_.integer(dims[columns]) + column;
      producer_ = &producer;
      builder_.store(output, root_position_, compute(root, root_at_));
    });
  });
  StitchedKernel result{.inputs = std::move(inputs_)};
  if (misplaced_ || !builder_.reductions().empty() || !find_checks(result)) return std::nullopt;
  result.kernel = builder_.finish();
  return result;
}

std::optional<StitchedKernel> Stitcher::Stitching::run_part(const Value& root, const Value& part, size_t axis,
                                                            sym::Expr offset) {
  uint32_t output =
      builder_.add_buffer("y", owner_.rdp_.known(root).type.dtype, kir::Buffer::Role::output, elements(root));
  nest(dims_of(part), layout(root), true, [&](const Index& at) {
    Index to = at;
    to[axis] = to[axis] + builder_.integer(offset);
    builder_.store(output, position(builder_, layout(root), dims_of(root), to), read(part, at));
  });
  StitchedKernel result{.inputs = std::move(inputs_)};
  if (repeats_ || builder_.reduces_in_vector_loop() || !find_checks(result)) return std::nullopt;
  result.kernel = shape_loops(builder_.finish(), builder_.symbols());
  return result;
}

StitchedKernel Stitcher::Stitching::run_copy(const Value& value, const Layout& to) {
  const SymDims& dims = dims_of(value);
  uint32_t output =
      builder_.add_buffer("y", owner_.rdp_.known(value).type.dtype, kir::Buffer::Role::output, elements(value));
  Layout order = memory_order(to, dims.size());
  // Lines are better than few channels.
  std::optional<int64_t> inner = dims[order.back()].constant();
  if (inner && *inner < least_lanes && order.size() > 1) std::rotate(order.rbegin(), order.rbegin() + 1, order.rend());
  nest(dims, order, true, [&](const Index& at) {
    builder_.store(output, position(builder_, to, dims, at),
                   stored(value, position(builder_, layout(value), dims, at)));
  });
  return {.kernel = shape_loops(builder_.finish(), builder_.symbols()), .inputs = std::move(inputs_)};
}

Stitcher::Stitcher(ir::Module& module, const analysis::Rdp& rdp) : rdp_(rdp), symbols_(module.symbols()) {
  for (const auto& function : module.functions())
    ir::for_each_node(function->body, [&](Node& node, ir::Region& region) { homes_[&node] = &region; });
}

sym::Facts& Stitcher::facts_of(const Node& node) {
  const ir::Region* region = homes_.at(&node);
  return facts_.try_emplace(region, rdp_.region(*region).facts).first->second;
}

const NodeForm& Stitcher::form(const Node& node) {
  auto at = forms_.find(&node);
  if (at == forms_.end()) at = forms_.emplace(&node, find_form(node)).first;
  return at->second;
}

NodeForm Stitcher::find_form(const Node& node) {
  if (!node.op->lower) return {.refusal = std::string(node.op->lower.reason())};
  auto formless = [&](const Value* v) { return v != nullptr && !has_kernel_form(rdp_.known(*v).type); };
  if (std::ranges::any_of(node.operands, formless) ||
      std::ranges::any_of(node.results, [&](const auto& r) { return formless(r.get()); }))
    return {.refusal = "a rank is not known, or a dtype has no kernels"};
  try {
    std::set<const Node*> none;
    Stitching stitching(*this, none, "probe");
    const ir::LowerContext& context = stitching.context(node);
    return {.refusal = {},
            .product = context.product(),
            .convolution = context.convolution(),
            .attention = context.attention(),
            .recurrent = context.recurrent(),
            .permutation = context.permutation(),
            .concatenation = context.concatenation(),
            .reshapes = context.is_view(),
            .size_checks = stitching.size_checks()};
  } catch (const ir::NotLowered& refused) {
    return {.refusal = refused.reason};
  }
}

namespace {

// Loads of a vector loop whose lanes are not side by side in memory, nor all the same.
size_t scattered_loads(const kir::Kernel& kernel) {
  std::set<std::pair<kir::ExprId, uint64_t>> scattered;
  auto visit_expression = [&](auto& self, kir::ExprId id, const sym::Expr& variable) -> void {
    if (id == kir::no_expr) return;
    const kir::Expr& e = kernel[id];
    if (e.op == kir::Op::load || e.op == kir::Op::load_if) {
      sym::Expr index = kernel[e.operands[0]].integer;
      sym::Expr next = index ? sym::substitute(index, [&](sym::Expr s) { return s == variable ? s + 1 : sym::Expr(); })
                             : sym::Expr();
      std::optional<int64_t> step = index ? (next - index).constant() : std::nullopt;
      if (!step || *step < 0 || *step > 1) scattered.emplace(id, variable.id());
    }
    for (kir::ExprId operand : e.operands) self(self, operand, variable);
  };
  auto visit_block = [&](auto& self, const kir::Block& block, sym::Expr variable) -> void {
    for (const kir::Statement& s : block) {
      if (variable) visit_expression(visit_expression, s.value, variable);
      bool is_vector = s.kind == kir::Statement::Kind::loop && s.loop_kind == kir::Statement::LoopKind::vector;
      self(self, s.body, is_vector ? s.variable : variable);
    }
  };
  visit_block(visit_block, kernel.body, {});
  return scattered.size();
}

}  // namespace

std::optional<StitchedKernel> Stitcher::stitch(const Value& root, const std::set<const Node*>& inlined,
                                               std::string name) {
  // Lanes are elements that lie side by side. Where each of them is a reduction, they may as well be what is reduced,
  // or elements along another axis: whichever reads memory in order.
  const SymDims& dims = *rdp_.known(root).type.dims;
  Layout order = memory_order(placement_.layout(root), dims.size());
  std::optional<StitchedKernel> best = Stitching(*this, inlined, name).run(root, order, true);
  // Loops that a reduction does not depend on come last, inside those it does: work comes before the order of memory.
  for (uint32_t axis : Layout(order)) {
    if (!best || best->idle_loops == 0) break;
    Layout moved = order;
    std::erase(moved, axis);
    moved.push_back(axis);
    std::optional<StitchedKernel> other = Stitching(*this, inlined, name).run(root, moved, true);
    if (!other || other->idle_loops >= best->idle_loops) continue;
    best = std::move(other);
    order = std::move(moved);
  }
  if (best && !best->reduces_by_lane) return best;
  std::optional<StitchedKernel> rows = Stitching(*this, inlined, name).run(root, order, false);
  if (rows && (!best || scattered_loads(best->kernel) >= scattered_loads(rows->kernel))) best = std::move(rows);
  for (size_t axis = order.size(); best && axis-- > 0;) {
    size_t scattered = scattered_loads(best->kernel);
    if (scattered == 0) break;
    std::optional<int64_t> size = dims[order[axis]].constant();
    if (axis + 1 == order.size() || (size && *size < least_lanes)) continue;
    Layout moved = order;
    std::rotate(moved.begin() + static_cast<std::ptrdiff_t>(axis),
                moved.begin() + static_cast<std::ptrdiff_t>(axis) + 1, moved.end());
    std::optional<StitchedKernel> other = Stitching(*this, inlined, name).run(root, moved, true);
    if (other && scattered_loads(other->kernel) < scattered) best = std::move(other);
  }
  return best;
}

std::optional<StitchedKernel> Stitcher::stitch_epilogue(const Value& root, const std::set<const Node*>& inlined,
                                                        const Value& producer, size_t columns) {
  const ir::Type& type = rdp_.known(root).type;
  const ir::Type& from = rdp_.known(producer).type;
  constexpr DTypeSet served{DType::f32, DType::f16, DType::bf16, DType::i32, DType::u8, DType::i8};
  if (!served.contains(type.dtype) || type.dims->size() != from.dims->size() ||
      placement_.layout(root) != placement_.layout(producer))
    return std::nullopt;
  for (size_t i = 0; i < type.dims->size(); ++i)
    if (facts_of(*producer.node).prove_equal((*type.dims)[i], (*from.dims)[i]) != sym::Truth::yes) return std::nullopt;
  std::set<const Node*> others = inlined;
  others.erase(producer.node);
  return Stitching(*this, others, "epilogue").run_epilogue(root, producer, columns);
}

std::optional<std::vector<StitchedKernel>> Stitcher::stitch_parts(const Value& root,
                                                                  const std::set<const Node*>& inlined) {
  const Node& node = *root.node;
  size_t axis = *form(node).concatenation;
  sym::Expr offset = symbols_.constant(0);
  std::vector<StitchedKernel> parts;
  for (const Value* operand : node.operands) {
    auto part = Stitching(*this, inlined, "part").run_part(root, *operand, axis, offset);
    if (!part) return std::nullopt;
    parts.push_back(std::move(*part));
    offset = offset + (*rdp_.known(*operand).type.dims)[axis];
  }
  return parts;
}

StitchedKernel Stitcher::stitch_copy(const Value& value, const Layout& to) {
  std::set<const Node*> none;
  return Stitching(*this, none, "copy").run_copy(value, to);
}

}  // namespace selkie::codegen
