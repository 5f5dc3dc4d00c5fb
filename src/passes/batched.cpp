#include "passes/batched.h"

#include <algorithm>
#include <numeric>

#include "ops/registry.h"

namespace selkie::passes {

using ir::Node;
using ir::Value;
using Ints = std::vector<int64_t>;

Node& NodeAdder::add(std::string_view op, std::vector<Value*> operands, size_t results) {
  auto node = std::make_unique<Node>();
  node->op = ops::op_set().find(op);
  node->operands = std::move(operands);
  node->source = source_;
  for (size_t i = 0; i < results; ++i) node->add_result(std::string(op));
  region_.nodes.push_back(std::move(node));
  return *region_.nodes.back();
}

Value* NodeAdder::value(std::string_view op, std::vector<Value*> operands) {
  return add(op, std::move(operands)).results[0].get();
}

Value* NodeAdder::ints(const Ints& elements) { return module_.add_constant("ints", Tensor::of_i64(elements)); }
Value* NodeAdder::scalar(int64_t element) { return module_.add_constant("number", Tensor::scalar_i64(element)); }

int64_t attribute(const Node& node, std::string_view name) {
  if (const ir::Attribute* found = node.attrs.find(name)) return std::get<int64_t>(*found);
  return std::get<int64_t>(*node.op->find_attr(name)->fallback);
}

namespace {

// Axes count from the last if they are negative: those stay what they are.
int64_t behind_batch(int64_t axis) { return axis < 0 ? axis : axis + 1; }

Ints behind_batch(Ints axes) {
  for (int64_t& axis : axes) axis = behind_batch(axis);
  return axes;
}

bool is_element_wise(const Node& node) {
  constexpr std::string_view others[] = {"bit_cast", "eye_like", "trilu"};  // places of elements matter
  return node.op->mapping == ir::Mapping::one_to_one && node.op->deterministic && node.results.size() == 1 &&
         node.op->find_attr("axis") == nullptr && std::ranges::find(others, node.op->name) == std::end(others);
}

}  // namespace

Batched::Rule Batched::rule_for(const Node& node) {
  static const std::map<std::string_view, Rule> rules = {
      {"concat", &Batched::concatenated}, {"gather", &Batched::gathered},
      {"gemm", &Batched::gemm},           {"layer_normalization", &Batched::along_axis},
      {"matmul", &Batched::product},      {"reduce_max", &Batched::reduced},
      {"reduce_mean", &Batched::reduced}, {"reduce_min", &Batched::reduced},
      {"reduce_prod", &Batched::reduced}, {"reduce_sum", &Batched::reduced},
      {"reshape", &Batched::reshaped},    {"slice", &Batched::sliced},
      {"softmax", &Batched::along_axis},  {"split", &Batched::along_axis},
      {"squeeze", &Batched::squeezed},    {"transpose", &Batched::transposed},
      {"unsqueeze", &Batched::unsqueezed}};
  if (auto found = rules.find(node.op->name); found != rules.end()) return found->second;
  return is_element_wise(node) ? &Batched::element_wise : nullptr;
}

Value* Batched::find(const Value* one) const {
  auto found = all_.find(one);
  return found == all_.end() ? nullptr : found->second;
}

bool Batched::differs(const Node& node) const {
  return std::ranges::any_of(node.operands, [&](const Value* v) { return find(v) != nullptr; });
}

void Batched::copy_same(const Node& node) {
  Node& out = adder_.add(node.op->name, operands_of(node), 0);
  out.attrs = node.attrs;
  out.source = node.source;
  for (const auto& result : node.results) same_[result.get()] = out.add_result(result->name);
}

bool Batched::add(const Node& node) {
  if (!node.regions.empty() || !node.op->deterministic) return false;
  if (!differs(node)) {
    copy_same(node);
    return true;
  }
  Rule rule = rule_for(node);
  bool has_ranks = std::ranges::all_of(node.operands, [&](const Value* v) { return v == nullptr || rank(*v); }) &&
                   std::ranges::all_of(node.results, [&](const auto& v) { return rank(*v).has_value(); });
  return rule != nullptr && has_ranks && (this->*rule)(node);
}

std::optional<int64_t> Batched::rank(const Value& one) const {
  const ir::Type& type = rdp_.known(one).type;
  if (!type.is_tensor() || !type.dims) return std::nullopt;
  return static_cast<int64_t>(type.dims->size());
}

std::optional<Ints> Batched::ints(const Node& node, size_t operand) const {
  const ir::SymElements* elements = nullptr;
  if (operand >= node.operands.size()) return std::nullopt;
  if (const Value* value = node.operands[operand]) {
    const std::optional<ir::Contents>& contents = rdp_.known(*value).contents;
    if (!contents || contents->denominator != 1) return std::nullopt;
    elements = &contents->elements;
  } else if (const ir::SymbolicInts* given = node.static_operand(operand)) {
    elements = &given->elements;
  }
  if (elements == nullptr) return std::nullopt;
  Ints out;
  for (sym::Expr e : *elements) {
    if (!e || !e.constant()) return std::nullopt;
    out.push_back(*e.constant());
  }
  return out;
}

std::vector<Value*> Batched::operands_of(const Node& node) const {
  std::vector<Value*> out;
  for (Value* operand : node.operands) {
    Value* all = find(operand);
    auto same = same_.find(operand);
    out.push_back(all != nullptr ? all : same != same_.end() ? same->second : operand);
  }
  return out;
}

bool Batched::only_first_differs(const Node& node) const {
  for (size_t i = 0; i < node.operands.size(); ++i)
    if ((find(node.operands[i]) != nullptr) != (i == 0)) return false;
  return true;
}

Node& Batched::copy(const Node& node, std::vector<Value*> operands) {
  Node& out = adder_.add(node.op->name, std::move(operands), 0);
  out.attrs = node.attrs;
  out.source = node.source;
  for (const auto& result : node.results) all_[result.get()] = out.add_result(result->name);
  return out;
}

// Operands of fewer axes get ones behind the batch, as broadcasting would put them before.
Value* Batched::with_rank(const Value& one, int64_t wanted) {
  Value* all = find(&one);
  int64_t missing = wanted - *rank(one);
  if (missing <= 0) return all;
  Ints axes(static_cast<size_t>(missing));
  std::iota(axes.begin(), axes.end(), 1);
  return adder_.value("unsqueeze", {all, adder_.ints(axes)});
}

bool Batched::element_wise(const Node& node) {
  std::vector<Value*> operands = operands_of(node);
  for (size_t i = 0; i < operands.size(); ++i)
    if (find(node.operands[i]) != nullptr) operands[i] = with_rank(*node.operands[i], *rank(*node.results[0]));
  copy(node, std::move(operands));
  return true;
}

bool Batched::along_axis(const Node& node) {
  if (!only_first_differs(node)) return false;
  copy(node, operands_of(node)).attrs.set("axis", behind_batch(attribute(node, "axis")));
  return true;
}

bool Batched::concatenated(const Node& node) {
  if (!std::ranges::all_of(node.operands, [&](const Value* v) { return find(v) != nullptr; })) return false;
  copy(node, operands_of(node)).attrs.set("axis", behind_batch(attribute(node, "axis")));
  return true;
}

// Rows of one table, a different one in each trip, or the same rows of what differs.
bool Batched::gathered(const Node& node) {
  int64_t axis = attribute(node, "axis");
  if (axis < 0) axis += *rank(*node.operands[0]);
  bool table_differs = find(node.operands[0]) != nullptr;
  bool index_differs = find(node.operands[1]) != nullptr;
  if (table_differs == index_differs || (index_differs && axis != 0)) return false;
  copy(node, operands_of(node)).attrs.set("axis", table_differs ? axis + 1 : 0);
  return true;
}

// Batched vectors are rows of a matrix, which is what they are multiplied as.
bool Batched::product(const Node& node) {
  const Value& a = *node.operands[0];
  const Value& b = *node.operands[1];
  bool b_differs = find(&b) != nullptr;
  bool is_plain = b_differs ? *rank(a) >= 2 && *rank(b) >= 2 && *rank(b) >= *rank(a)
                            : *rank(b) <= 2 && (*rank(b) == 2 || *rank(a) >= 1);
  if (!is_plain || (b_differs && find(&a) != nullptr && *rank(a) != *rank(b))) return false;
  copy(node, operands_of(node));
  return true;
}

bool Batched::gemm(const Node& node) {
  bool is_plain = only_first_differs(node) && attribute(node, "transA") == 0;
  for (std::string_view factor : {"alpha", "beta"}) {
    const ir::Attribute* given = node.attrs.find(factor);
    is_plain = is_plain && (given == nullptr || std::get<float>(*given) == 1);
  }
  if (!is_plain) return false;
  std::vector<Value*> operands = operands_of(node);
  Value* b = operands[1];
  if (attribute(node, "transB") != 0) {
    Node& turned = adder_.add("transpose", {b});
    turned.attrs.set("perm", Ints{1, 0});
    b = turned.results[0].get();
  }
  Value* sum = adder_.value("matmul", {operands[0], b});
  if (operands.size() > 2 && operands[2] != nullptr) sum = adder_.value("add", {sum, operands[2]});
  all_[node.results[0].get()] = sum;
  return true;
}

bool Batched::reshaped(const Node& node) {
  std::optional<Ints> shape = ints(node, 1);
  if (!shape || find(node.operands[0]) == nullptr) return false;
  // A 0 keeps the dim at its place, and so it does one place further on.
  bool keeps = node.op->find_attr("allowzero") == nullptr || attribute(node, "allowzero") == 0;
  if (!keeps && std::ranges::find(*shape, 0) != shape->end()) return false;
  shape->insert(shape->begin(), 0);
  Node& out = copy(node, {find(node.operands[0]), adder_.ints(*shape)});
  out.attrs.erase("allowzero");
  out.attrs.erase("shape");
  return true;
}

bool Batched::squeezed(const Node& node) {
  std::optional<Ints> axes = ints(node, 1);
  const ir::SymDims& dims = *rdp_.known(*node.operands[0]).type.dims;
  if (find(node.operands[0]) == nullptr) return false;
  if (!axes) {
    if (node.operands.size() > 1 && node.operands[1] != nullptr) return false;
    // Which axes are dropped is what their sizes say.
    axes.emplace();
    for (size_t i = 0; i < dims.size(); ++i) {
      if (!dims[i].constant()) return false;
      if (dims[i].constant() == 1) axes->push_back(static_cast<int64_t>(i));
    }
  }
  copy(node, {find(node.operands[0]), adder_.ints(behind_batch(*axes))}).attrs.erase("axes");
  return true;
}

bool Batched::unsqueezed(const Node& node) {
  std::optional<Ints> axes = ints(node, 1);
  if (!axes || find(node.operands[0]) == nullptr) return false;
  copy(node, {find(node.operands[0]), adder_.ints(behind_batch(*axes))}).attrs.erase("axes");
  return true;
}

bool Batched::transposed(const Node& node) {
  Ints order;
  if (const ir::Attribute* given = node.attrs.find("perm")) {
    order = std::get<Ints>(*given);
  } else {
    for (int64_t axis = *rank(*node.operands[0]); axis-- > 0;) order.push_back(axis);
  }
  order = behind_batch(order);
  order.insert(order.begin(), 0);
  copy(node, operands_of(node)).attrs.set("perm", order);
  return true;
}

bool Batched::reduced(const Node& node) {
  if (!only_first_differs(node)) return false;
  std::optional<Ints> axes = ints(node, 1);
  bool has_axes = node.operands.size() > 1 && (node.operands[1] != nullptr || node.static_operand(1) != nullptr);
  if (has_axes && !axes) return false;
  if (!axes || axes->empty()) {
    if (attribute(node, "noop_with_empty_axes") != 0) return false;
    axes.emplace(static_cast<size_t>(*rank(*node.operands[0])));
    std::iota(axes->begin(), axes->end(), 0);
    if (axes->empty()) return false;  // of a scalar
  }
  copy(node, {find(node.operands[0]), adder_.ints(behind_batch(*axes))}).attrs.erase("axes");
  return true;
}

bool Batched::sliced(const Node& node) {
  if (!only_first_differs(node)) return false;
  std::optional<Ints> starts = ints(node, 1);
  std::optional<Ints> ends = ints(node, 2);
  std::optional<Ints> axes = ints(node, 3);
  bool has_steps = node.operands.size() > 4;
  std::optional<Ints> steps = has_steps ? ints(node, 4) : std::nullopt;
  if (!starts || !ends || !axes || (has_steps && !steps)) return false;
  std::vector<Value*> operands{find(node.operands[0]), adder_.ints(*starts), adder_.ints(*ends),
                               adder_.ints(behind_batch(*axes))};
  if (steps) operands.push_back(adder_.ints(*steps));
  Node& out = copy(node, std::move(operands));
  for (std::string_view name : {"starts", "ends", "axes", "steps"}) out.attrs.erase(name);
  return true;
}

}  // namespace selkie::passes
