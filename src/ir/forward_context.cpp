#include "ir/forward_context.h"

namespace selkie::ir {

const Type& ForwardContext::type(size_t i) const {
  static const Type unknown;
  return i < operands_.size() ? operands_[i] : unknown;
}

std::optional<SymElements> ForwardContext::contents(size_t i) const {
  return i < contents_.size() ? contents_[i] : std::nullopt;
}

std::optional<std::vector<int64_t>> ForwardContext::numbers(size_t i) const {
  std::optional<SymElements> elements = contents(i);
  if (!elements) return std::nullopt;
  std::vector<int64_t> out;
  for (sym::Expr e : *elements) {
    if (!e.constant()) return std::nullopt;
    out.push_back(*e.constant());
  }
  return out;
}

const Attribute* ForwardContext::find_attr(std::string_view name) const {
  if (const Attribute* found = attrs_.find(name)) return found;
  const AttrDef* def = op_.find_attr(name);
  CHECK(def != nullptr, "{} has no attribute '{}'", op_.name, name);
  return def->fallback ? &*def->fallback : nullptr;
}

}  // namespace selkie::ir
