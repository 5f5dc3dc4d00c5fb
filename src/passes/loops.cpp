#include "passes/loops.h"

#include <algorithm>
#include <array>

namespace selkie::passes {
namespace {

using ir::ControlForm;
using ir::Node;
using ir::SymDims;
using ir::Value;

bool is_known_true(const analysis::Rdp& rdp, const Value& value) {
  const std::optional<ir::Contents>& contents = rdp.known(value).contents;
  return contents && contents->elements.size() == 1 && contents->elements[0] && contents->elements[0].constant() == 1;
}

sym::Expr only_element(const analysis::Rdp& rdp, const Value& value) {
  const std::optional<ir::Contents>& contents = rdp.known(value).contents;
  return contents && contents->denominator == 1 && contents->elements.size() == 1 ? contents->elements[0] : sym::Expr();
}

// The last dims broadcast; `skipped` ones at the end are others.
bool broadcast(const SymDims& a, const SymDims& b, size_t skipped, const sym::Facts& facts) {
  for (size_t i = skipped; i < std::min(a.size(), b.size()); ++i) {
    sym::Expr x = a[a.size() - 1 - i];
    sym::Expr y = b[b.size() - 1 - i];
    if (x.constant() != 1 && y.constant() != 1 && facts.prove_equal(x, y) != sym::Truth::yes) return false;
  }
  return true;
}

bool multiplies(const SymDims& a, const SymDims& b, const sym::Facts& facts) {
  if (a.empty() || b.empty()) return false;
  sym::Expr inner = b.size() == 1 ? b[0] : b[b.size() - 2];
  return facts.prove_equal(a.back(), inner) == sym::Truth::yes && broadcast(a, b, 2, facts);
}

}  // namespace

std::optional<ControlForm> loop_form(const Node& node) {
  if (node.op->control == nullptr) return std::nullopt;
  ControlForm form = node.op->control(node);
  return form.kind == ControlForm::Kind::loop ? std::optional(form) : std::nullopt;
}

sym::Expr known_trips(const analysis::Rdp& rdp, const Node& loop, const ControlForm& form) {
  const ir::Region& body = *loop.regions[0];
  if (form.first_trip) {
    const Value* first = loop.operands[*form.first_trip];
    if (first != nullptr && !is_known_true(rdp, *first)) return {};
  }
  if (form.counts && body.yields[0] != body.parameters[1].get() && !is_known_true(rdp, *body.yields[0])) return {};
  if (!form.inputs.empty()) {
    const std::optional<SymDims>& whole = rdp.known(*loop.operands[form.first_state + form.states]).type.dims;
    if (!whole || whole->empty()) return {};
    auto rank = static_cast<int64_t>(whole->size());
    int64_t axis = form.inputs[0].axis < 0 ? form.inputs[0].axis + rank : form.inputs[0].axis;
    return axis >= 0 && axis < rank ? (*whole)[static_cast<size_t>(axis)] : sym::Expr();
  }
  const Value* most = form.most_trips ? loop.operands[*form.most_trips] : nullptr;
  return most == nullptr ? sym::Expr() : only_element(rdp, *most);
}

bool surely_runs(const sym::Facts& outside, sym::Expr trips) {
  return trips && outside.range(trips).lo.value_or(0) >= 1;
}

bool is_elementwise(const Node& node) {
  if (node.op->mapping != ir::Mapping::one_to_one || node.results.size() != 1 || !node.op->deterministic) return false;
  constexpr std::array<std::string_view, 8> of_several{"add", "sub", "mul", "div", "pow", "max", "min", "sum"};
  return (node.op->operands.size() == 1 && node.op->operands[0].arity == ir::Arity::required &&
          node.op->find_attr("axis") == nullptr) ||
         std::ranges::find(of_several, node.op->name) != of_several.end();
}

bool cannot_fail(const analysis::Rdp& rdp, const Node& node, const sym::Facts& facts) {
  std::vector<const SymDims*> dims;
  for (const Value* operand : node.operands) {
    if (operand == nullptr) continue;
    const ir::Type& type = rdp.known(*operand).type;
    if (!type.is_tensor() || !type.dims || !is_float(type.dtype)) return false;
    dims.push_back(&*type.dims);
  }
  if (node.op->name == "matmul") return multiplies(*dims[0], *dims[1], facts);
  if (!is_elementwise(node)) return false;
  for (size_t i = 0; i < dims.size(); ++i)
    for (size_t k = 0; k < i; ++k)
      if (!broadcast(*dims[i], *dims[k], 0, facts)) return false;
  return true;
}

}  // namespace selkie::passes
