// split_loops: products inside a loop that do not depend on its state, with the element-wise work around them, are
// computed for all trips at once before it. The loop then reads slices of the results.
//
// Nothing is computed that the loop would not have: the number of trips is known before the first one, and where there
// may be none, only what cannot fail is taken out. What that costs is memory for the results of all trips.
#include <algorithm>
#include <set>

#include "ops/registry.h"
#include "passes/loops.h"

namespace selkie::passes {
namespace {

using ir::ControlForm;
using ir::Node;
using ir::Region;
using ir::SymDims;
using ir::Value;
using Slices = ControlForm::Slices;

size_t from_front(int64_t axis, size_t rank) {
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
}

int64_t int_attr(const Node& node, std::string_view name) {
  const ir::Attribute* found = node.attrs.find(name);
  return found == nullptr ? 0 : std::get<int64_t>(*found);
}

// One loop that may be split.
class Splitter {
 public:
  Splitter(ir::Module& module, const analysis::Rdp& rdp, const Region& around, Node& loop, ControlForm form)
      : module_(module),
        rdp_(rdp),
        facts_(rdp.region(around).facts),
        loop_(loop),
        body_(*loop.regions[0]),
        form_(std::move(form)),
        trips_(known_trips(rdp, loop, form_)),
        outside_(rdp, facts_) {}

  // Gives the nodes that come before the loop: none if it stays.
  std::vector<std::unique_ptr<Node>> run() {
    if (!trips_) return {};
    surely_runs_ = surely_runs(rdp_, loop_, form_, facts_);
    if (form_.counts ? !find_gathered() : !find_inputs()) return {};
    for (const auto& node : body_.nodes) defined_.insert(node.get());
    for (const auto& node : body_.nodes)
      if (is_sliced(*node)) sliced_[node->results[0].get()] = {.node = node.get(), .reversed = direction_};
    choose();
    if (chosen_.empty()) return {};
    for (const auto& node : body_.nodes)
      if (chosen_.contains(node.get())) stack(*node);
    if (form_.counts) become_scan();
    read_slices();
    drop_inputs();
    return std::move(before_);
  }

 private:
  // A value of which each trip sees a slice: that of a tensor outside the loop, or the result of a node.
  struct Sliced {
    const Node* node = nullptr;  // null for slices of `whole`,
    Value* whole = nullptr;      // along `slices`
    Slices slices = {};
    bool reversed = false;
    Value* stacked = nullptr;  // the same for all trips, the trips first, once it is made
  };

  // Slices of a scan.
  bool find_inputs() {
    for (size_t i = 0; i < form_.inputs.size(); ++i) {
      Value* whole = loop_.operands[form_.first_state + form_.states + i];
      add_slices(body_.parameters[form_.states + i].get(), whole, form_.inputs[i]);
    }
    return !sliced_.empty();
  }

  // Whether the number of the trip only picks slices of tensors that have as many: then the loop is a scan.
  bool find_gathered() {
    const Value* number = body_.parameters[0].get();
    // A scan has no sequences as states.
    for (size_t i = before_states(); i < loop_.operands.size(); ++i)
      if (loop_.operands[i] == nullptr || !rdp_.known(*loop_.operands[i]).type.is_tensor()) return false;
    for (const auto& node : body_.nodes) {
      if (!uses(*node, number)) continue;
      if (node->op->name != "gather" || node->operands[1] != number || node->operands[0] == number) return false;
      Value* whole = node->operands[0];
      const std::optional<SymDims>& dims = rdp_.known(*whole).type.dims;
      if (is_inside(*whole) || !dims || dims->empty()) return false;
      Slices slices{.axis = int_attr(*node, "axis")};
      size_t axis = from_front(slices.axis, dims->size());
      if (axis >= dims->size() || facts_.prove_equal((*dims)[axis], trips_) != sym::Truth::yes) return false;
      add_slices(node->results[0].get(), whole, slices);
      gathers_.push_back(node.get());
    }
    return !gathers_.empty() && std::ranges::find(body_.yields, number) == body_.yields.end();
  }

  static bool uses(const Node& node, const Value* value) {
    bool found = std::ranges::find(node.operands, value) != node.operands.end();
    for (const auto& region : node.regions) {
      found = found || std::ranges::find(region->yields, value) != region->yields.end();
      for (const auto& inner : region->nodes) found = found || uses(*inner, value);
    }
    return found;
  }

  bool is_inside(const Value& value) const {
    return value.region == &body_ || (value.node != nullptr && std::ranges::any_of(body_.nodes, [&](const auto& node) {
                                        return node.get() == value.node;
                                      }));
  }

  void add_slices(const Value* slice, Value* whole, Slices slices) {
    const std::optional<SymDims>& dims = rdp_.known(*whole).type.dims;
    const std::optional<SymDims>& seen = rdp_.known(*slice).type.dims;
    if (!dims || !seen || dims->size() != seen->size() + 1) return;
    size_t axis = from_front(slices.axis, dims->size());
    if (axis >= dims->size()) return;
    SymDims of_one = *dims;
    of_one.erase(of_one.begin() + static_cast<std::ptrdiff_t>(axis));
    outside_.set(*slice, std::move(of_one));
    sliced_[slice] = {.whole = whole, .slices = slices, .reversed = slices.reversed};
    order_.push_back(slice);
  }

  const Sliced* find(const Value* value) const {
    auto at = sliced_.find(value);
    return at == sliced_.end() ? nullptr : &at->second;
  }

  size_t rank(const Value& value) const { return rdp_.known(value).type.dims->size(); }

  // Whether a node can be computed for all trips at once, from slices of one direction and what all trips share.
  bool is_sliced(const Node& node) {
    if (!is_product(node) && !is_elementwise(node)) return false;
    std::optional<bool> direction;
    for (const Value* operand : node.operands) {
      if (operand == nullptr || !rdp_.known(*operand).type.dims) return false;
      const Sliced* sliced = find(operand);
      if (sliced == nullptr && (operand->region == &body_ || defined_.contains(operand->node))) return false;
      if (sliced == nullptr) continue;
      if (direction && *direction != sliced->reversed) return false;
      direction = sliced->reversed;
    }
    if (!direction || !rdp_.known(*node.results[0]).type.dims) return false;
    direction_ = *direction;
    return (!is_product(node) || stacks_as_product(node)) && (surely_runs_ || cannot_fail(node));
  }

  bool cannot_fail(const Node& node) {
    std::optional<SymDims> dims = outside_.of_result(node);
    if (dims) outside_.set(*node.results[0], *dims);
    return dims.has_value();
  }

  static bool is_gemm(const Node& node) { return node.op->name == "gemm"; }
  static bool is_product(const Node& node) { return node.op->name == "matmul" || is_gemm(node); }

  // A row of each trip times a matrix is a matrix times that matrix; other factors keep their two last axes.
  bool stacks_as_product(const Node& node) const {
    const Value& a = *node.operands[0];
    const Value& b = *node.operands[1];
    if (is_gemm(node)) return find(&a) != nullptr && find(&b) == nullptr && stacks_as_gemm(node);
    if (find(&b) == nullptr) return rank(a) >= 1 && (rank(b) <= 2 || rank(a) >= rank(b));
    return rank(a) >= 2 && rank(b) >= 2 && (find(&a) == nullptr ? rank(a) <= rank(b) : rank(a) == rank(b));
  }

  // Rows of all trips below each other, to which at most one row is added.
  bool stacks_as_gemm(const Node& node) const {
    if (int_attr(node, "transA") != 0 || rank(*node.operands[0]) != 2) return false;
    if (node.operands.size() < 3) return true;
    const SymDims& added = *rdp_.known(*node.operands[2]).type.dims;
    return find(node.operands[2]) == nullptr && (added.size() < 2 || added[0].constant() == 1);
  }

  // Products, what they are computed from, and element-wise work on them that makes nothing larger.
  void choose() {
    for (const auto& node : body_.nodes) {
      const Sliced* sliced = node->results.size() == 1 ? find(node->results[0].get()) : nullptr;
      if (sliced == nullptr || sliced->node == nullptr) continue;
      if (is_product(*node) || follows_chosen(*node)) choose(*node);
    }
  }

  bool follows_chosen(const Node& node) const {
    return std::ranges::any_of(node.operands, [&](const Value* operand) {
      return chosen_.contains(operand->node) &&
             rdp_.known(*operand).type.dims == rdp_.known(*node.results[0]).type.dims;
    });
  }

  void choose(const Node& node) {
    if (!chosen_.insert(&node).second) return;
    for (const Value* operand : node.operands)
      if (const Sliced* sliced = find(operand); sliced != nullptr && sliced->node != nullptr) choose(*sliced->node);
  }

  Value* add_before(std::string_view op, std::vector<Value*> operands, const Node& like, const std::string& name) {
    auto node = std::make_unique<Node>();
    node->op = ops::op_set().find(op);
    node->operands = std::move(operands);
    node->source = like.source;
    Value* result = node->add_result(name);
    before_.push_back(std::move(node));
    return result;
  }

  // The slices of all trips, the trips first.
  Value* stacked(const Value& slice) {
    Sliced& sliced = sliced_.at(&slice);
    if (sliced.stacked != nullptr) return sliced.stacked;
    size_t axis = from_front(sliced.slices.axis, rank(*sliced.whole));
    if (axis == 0) return sliced.stacked = sliced.whole;
    std::vector<int64_t> order{static_cast<int64_t>(axis)};
    for (size_t i = 0; i < rank(*sliced.whole); ++i)
      if (i != axis) order.push_back(static_cast<int64_t>(i));
    sliced.stacked = add_before("transpose", {sliced.whole}, loop_, slice.name);
    before_.back()->attrs.set("perm", order);
    return sliced.stacked;
  }

  // Axes of 1 after the trips, so that the others meet those that they met inside the loop.
  Value* aligned(const Value& slice, size_t result_rank, const Node& like) {
    Value* all = stacked(slice);
    if (rank(slice) >= result_rank) return all;
    std::vector<int64_t> axes;
    for (size_t i = rank(slice); i < result_rank; ++i) axes.push_back(static_cast<int64_t>(axes.size()) + 1);
    Dims dims{static_cast<int64_t>(axes.size())};
    Value* list = module_.add_constant("axes", Tensor::from<int64_t>(DType::i64, dims, axes));
    return add_before("unsqueeze", {all, list}, like, slice.name);
  }

  void stack(const Node& node) {
    const Value& result = *node.results[0];
    if (is_gemm(node)) {
      sliced_.at(&result).stacked = stacked_gemm(node);
      return;
    }
    std::vector<Value*> operands;
    for (Value* operand : node.operands) {
      if (find(operand) == nullptr)
        operands.push_back(operand);
      else
        operands.push_back(is_product(node) ? stacked(*operand) : aligned(*operand, rank(result), node));
    }
    sliced_.at(&result).stacked = add_before(node.op->name, std::move(operands), node, result.name);
    before_.back()->attrs = node.attrs;
  }

  // gemm(a_t, b, c) for all t => reshape(gemm(flatten(a) {axis = 2}, b, c), [trips, rows of a_t, columns])
  Value* stacked_gemm(const Node& node) {
    const std::string& name = node.results[0]->name;
    Value* all = stacked(*node.operands[0]);
    Value* flat = add_before("flatten", {all}, node, name);
    before_.back()->attrs.set("axis", int64_t{2});
    std::vector<Value*> operands = node.operands;
    operands[0] = flat;
    Value* product = add_before("gemm", std::move(operands), node, name);
    before_.back()->attrs = node.attrs;
    auto dims_of = [&](Value* value, int64_t start, int64_t end) {
      Value* dims = add_before("shape", {value}, node, name);
      before_.back()->attrs.set("start", start);
      before_.back()->attrs.set("end", end);
      return dims;
    };
    Value* rows = dims_of(all, 0, 2);
    Value* columns = dims_of(product, 1, 2);
    Value* dims = add_before("concat", {rows, columns}, node, name);
    before_.back()->attrs.set("axis", int64_t{0});
    Value* result = add_before("reshape", {product, dims}, node, name);
    before_.back()->attrs.set("allowzero", int64_t{1});
    return result;
  }

  // loop(trips, true, state…) body(i, c, s…) { %x = gather(%whole, i) … } => scan(state…, %whole) body(s…, %x) { … }
  void become_scan() {
    const Value* goes_on = body_.parameters[1].get();
    loop_.op = ops::op_set().find("scan");
    loop_.attrs = {};
    loop_.operands.erase(loop_.operands.begin(), loop_.operands.begin() + static_cast<std::ptrdiff_t>(before_states()));
    body_.yields.erase(body_.yields.begin());
    std::unordered_map<const Value*, Value*> replacement;
    for (const Node* gather : gathers_) {
      const Value* slice = gather->results[0].get();
      replacement[slice] = add_input(*slice, sliced_.at(slice).whole, sliced_.at(slice).slices);
    }
    if (is_read(*goes_on)) replacement[goes_on] = module_.add_constant(goes_on->name, Tensor::scalar_bool(true));
    ir::replace_uses(body_, replacement);
    for (const Value*& slice : order_) {
      Value* parameter = replacement.at(slice);
      sliced_[parameter] = sliced_.at(slice);
      slice = parameter;
    }
    std::erase_if(body_.nodes,
                  [&](const auto& node) { return std::ranges::find(gathers_, node.get()) != gathers_.end(); });
    body_.parameters.erase(body_.parameters.begin(), body_.parameters.begin() + 2);
    form_.first_state = 0;
    form_.counts = false;
  }

  size_t before_states() const { return std::min(form_.first_state, loop_.operands.size()); }

  Value* add_input(const Value& slice, Value* whole, Slices slices) {
    loop_.operands.push_back(whole);
    inputs_.push_back(slices);
    return body_.add_parameter(slice.name, {});
  }

  void read_slices() {
    if (inputs_.empty()) inputs_ = form_.inputs;
    std::unordered_map<const Value*, Value*> replacement;
    for (const auto& node : body_.nodes) {
      if (!chosen_.contains(node.get())) continue;
      const Value* result = node->results[0].get();
      const Sliced& sliced = sliced_.at(result);
      if (is_read(*result))
        replacement[result] = add_input(*result, sliced.stacked, {.axis = 0, .reversed = sliced.reversed});
    }
    ir::replace_uses(body_, replacement);
    std::erase_if(body_.nodes, [&](const auto& node) { return chosen_.contains(node.get()); });
  }

  // By what stays in the loop.
  bool is_read(const Value& value) const {
    return std::ranges::find(body_.yields, &value) != body_.yields.end() ||
           std::ranges::any_of(body_.nodes,
                               [&](const auto& node) { return !chosen_.contains(node.get()) && uses(*node, &value); });
  }

  // Slices that were only multiplied are not needed inside any more.
  void drop_inputs() {
    for (size_t i = inputs_.size(); i-- > 0;) {
      const Value* parameter = body_.parameters[form_.states + i].get();
      if (inputs_.size() == 1 || std::ranges::find(order_, parameter) == order_.end() || is_read(*parameter)) continue;
      body_.parameters.erase(body_.parameters.begin() + static_cast<std::ptrdiff_t>(form_.states + i));
      loop_.operands.erase(loop_.operands.begin() + static_cast<std::ptrdiff_t>(form_.states + i));
      inputs_.erase(inputs_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    std::vector<int64_t> axes, directions;
    for (const Slices& slices : inputs_) {
      axes.push_back(slices.axis);
      directions.push_back(slices.reversed ? 1 : 0);
    }
    loop_.attrs.set("num_scan_inputs", static_cast<int64_t>(inputs_.size()));
    loop_.attrs.set("scan_input_axes", axes);
    loop_.attrs.set("scan_input_directions", directions);
  }

  ir::Module& module_;
  const analysis::Rdp& rdp_;
  const sym::Facts& facts_;
  Node& loop_;
  Region& body_;
  ControlForm form_;
  sym::Expr trips_;
  DimsOutside outside_;
  bool surely_runs_ = false;
  bool direction_ = false;  // of the node that was looked at last
  std::unordered_map<const Value*, Sliced> sliced_;
  std::vector<const Value*> order_;  // those of tensors outside
  std::vector<const Node*> gathers_;
  std::set<const Node*> defined_;  // by the body
  std::set<const Node*> chosen_;
  std::vector<Slices> inputs_;  // of the scan that it becomes
  std::vector<std::unique_ptr<Node>> before_;
};

bool split(ir::Module& module) {
  analysis::Rdp rdp(module);
  return put_before_loops(rdp, module.main().body, [&](Node& loop, const Region& around, ControlForm form) {
    return Splitter(module, rdp, around, loop, std::move(form)).run();
  });
}

}  // namespace

// scan(s, x) body(s, x_t) { %p = matmul(x_t, w) … } => %all = matmul(x, w)  scan(s, %all) body(s, %p) { … }
bool split_loops(ir::Module& module) {
  bool changed = false;
  // What comes out of an inner loop is new to the analysis, and may come out of the next one, too.
  while (has_loops(module.main().body) && split(module)) changed = true;
  return changed;
}

}  // namespace selkie::passes
