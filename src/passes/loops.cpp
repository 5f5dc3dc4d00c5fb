#include "passes/loops.h"

#include <algorithm>
#include <array>

namespace selkie::passes {
namespace {

using ir::ControlForm;
using ir::Node;
using ir::SymDims;
using ir::Value;

sym::Expr only_element(const analysis::Rdp& rdp, const Value& value) {
  const std::optional<ir::Contents>& contents = rdp.known(value).contents;
  return contents && contents->denominator == 1 && contents->elements.size() == 1 ? contents->elements[0] : sym::Expr();
}

bool is_known_true(const analysis::Rdp& rdp, const Value& value) {
  sym::Expr element = only_element(rdp, value);
  return element && element.constant() == 1;
}

bool starts_surely(const analysis::Rdp& rdp, const Node& loop, const ControlForm& form) {
  const Value* first = form.first_trip ? loop.operands[*form.first_trip] : nullptr;
  return first == nullptr || is_known_true(rdp, *first);
}

}  // namespace

std::optional<ControlForm> loop_form(const Node& node) {
  if (node.op->control == nullptr) return std::nullopt;
  ControlForm form = node.op->control(node);
  return form.kind == ControlForm::Kind::loop ? std::optional(form) : std::nullopt;
}

bool has_loops(const ir::Region& region) {
  bool found = false;
  ir::for_each_node(region, [&](const Node& node) { found = found || loop_form(node).has_value(); });
  return found;
}

bool put_before_loops(const analysis::Rdp& rdp, ir::Region& region, const TakeOut& take_out) {
  if (rdp.region(region).entry != analysis::Entry::possible) return false;
  bool changed = false;
  Nodes nodes;
  for (auto& node : region.nodes) {
    bool inside = false;
    for (auto& inner : node->regions) inside = put_before_loops(rdp, *inner, take_out) || inside;
    changed = changed || inside;
    std::optional<ControlForm> form = loop_form(*node);
    if (form && !inside && rdp.region(*node->regions[0]).entry == analysis::Entry::possible) {
      Nodes before = take_out(*node, region, std::move(*form));
      changed = changed || !before.empty();
      std::ranges::move(before, std::back_inserter(nodes));
    }
    nodes.push_back(std::move(node));
  }
  region.nodes = std::move(nodes);
  return changed;
}

sym::Expr most_trips(const analysis::Rdp& rdp, const Node& loop, const ControlForm& form) {
  if (form.inputs.empty()) {
    const Value* most = form.most_trips ? loop.operands[*form.most_trips] : nullptr;
    return most == nullptr ? sym::Expr() : only_element(rdp, *most);
  }
  return slice_count(rdp, loop, form, 0);
}

sym::Expr slice_count(const analysis::Rdp& rdp, const Node& loop, const ControlForm& form, size_t input) {
  const std::optional<SymDims>& whole = rdp.known(*loop.operands[form.first_state + form.states + input]).type.dims;
  if (!whole) return {};
  auto rank = static_cast<int64_t>(whole->size());
  int64_t axis = form.inputs[input].axis < 0 ? form.inputs[input].axis + rank : form.inputs[input].axis;
  return axis >= 0 && axis < rank ? (*whole)[static_cast<size_t>(axis)] : sym::Expr();
}

bool makes_all_trips(const analysis::Rdp& rdp, const Node& loop, const ControlForm& form) {
  const ir::Region& body = *loop.regions[0];
  bool may_end = form.counts && body.yields[0] != body.parameters[1].get() && !is_known_true(rdp, *body.yields[0]);
  return !may_end && starts_surely(rdp, loop, form);
}

sym::Expr known_trips(const analysis::Rdp& rdp, const Node& loop, const ControlForm& form) {
  return makes_all_trips(rdp, loop, form) ? most_trips(rdp, loop, form) : sym::Expr();
}

bool surely_runs(const analysis::Rdp& rdp, const Node& loop, const ControlForm& form, const sym::Facts& around) {
  sym::Expr most = most_trips(rdp, loop, form);
  return most && around.range(most).lo.value_or(0) >= 1 && starts_surely(rdp, loop, form);
}

bool is_elementwise(const Node& node) {
  if (node.op->mapping != ir::Mapping::one_to_one || node.results.size() != 1 || !node.op->deterministic) return false;
  constexpr std::array<std::string_view, 8> of_several{"add", "sub", "mul", "div", "pow", "max", "min", "sum"};
  return (node.op->operands.size() == 1 && node.op->operands[0].arity == ir::Arity::required &&
          node.op->find_attr("axis") == nullptr) ||
         std::ranges::find(of_several, node.op->name) != of_several.end();
}

const std::optional<SymDims>& DimsOutside::of(const Value& value) const {
  auto at = dims_.find(&value);
  return at == dims_.end() ? rdp_.known(value).type.dims : at->second;
}

std::optional<SymDims> DimsOutside::of_result(const Node& node) const {
  std::vector<SymDims> dims;
  for (const Value* operand : node.operands) {
    if (operand == nullptr) return std::nullopt;
    const ir::Type& type = rdp_.known(*operand).type;
    const std::optional<SymDims>& known = of(*operand);
    if (!type.is_tensor() || !is_float(type.dtype) || !known) return std::nullopt;
    dims.push_back(*known);
  }
  if (node.op->name == "matmul") return product(dims[0], dims[1]);
  if (node.op->name == "gemm") return gemm(node, dims);
  if (!is_elementwise(node) || dims.empty()) return std::nullopt;
  std::optional<SymDims> out = dims[0];
  for (size_t i = 1; i < dims.size() && out; ++i) out = broadcast(*out, dims[i], 0);
  return out;
}

// The last dims are those of `a` where they are skipped.
std::optional<SymDims> DimsOutside::broadcast(const SymDims& a, const SymDims& b, size_t skipped) const {
  SymDims out = a.size() >= b.size() ? a : b;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    sym::Expr x = a[a.size() - 1 - i];
    sym::Expr y = b[b.size() - 1 - i];
    sym::Expr& to = out[out.size() - 1 - i];
    to = x;
    if (i < skipped || y.constant() == 1) continue;
    if (x.constant() == 1)
      to = y;
    else if (facts_.prove_equal(x, y) != sym::Truth::yes)
      return std::nullopt;
  }
  return out;
}

std::optional<SymDims> DimsOutside::gemm(const Node& node, std::vector<SymDims>& dims) const {
  if (dims[0].size() != 2 || dims[1].size() != 2) return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    const ir::Attribute* given = node.attrs.find(i == 0 ? "transA" : "transB");
    if (given != nullptr && std::get<int64_t>(*given) != 0) std::swap(dims[i][0], dims[i][1]);
  }
  std::optional<SymDims> out = product(dims[0], dims[1]);
  if (!out || dims.size() < 3) return out;
  // What is added is broadcast, but makes nothing larger.
  const SymDims& added = dims[2];
  for (size_t i = 0; i < added.size(); ++i) {
    if (i >= 2) return std::nullopt;
    sym::Expr dim = added[added.size() - 1 - i];
    if (dim.constant() != 1 && facts_.prove_equal(dim, (*out)[1 - i]) != sym::Truth::yes) return std::nullopt;
  }
  return out;
}

std::optional<SymDims> DimsOutside::product(const SymDims& a, const SymDims& b) const {
  if (a.empty() || b.empty()) return std::nullopt;
  sym::Expr inner = b.size() == 1 ? b[0] : b[b.size() - 2];
  if (facts_.prove_equal(a.back(), inner) != sym::Truth::yes) return std::nullopt;
  if (b.size() == 1) return SymDims(a.begin(), a.end() - 1);
  if (a.size() == 1) {
    SymDims out(b.begin(), b.end() - 2);
    out.push_back(b.back());
    return out;
  }
  std::optional<SymDims> out = broadcast(a, b, 2);
  if (!out) return std::nullopt;
  (*out)[out->size() - 2] = a[a.size() - 2];
  out->back() = b.back();
  return out;
}

}  // namespace selkie::passes
