#include "ops/support/containers.h"

#include <algorithm>

namespace selkie::ops {

using ir::Type;

Type item_of(const Type& container) {
  bool holds_one = container.kind == Type::Kind::seq || container.kind == Type::Kind::opt;
  return holds_one && !container.parts.empty() ? container.parts[0] : Type{};
}

Type common_type(const ir::ShapeContext& c, const Type& a, const Type& b) {
  bool typed = a.kind == Type::Kind::tensor || a.kind == Type::Kind::map;
  if (a.kind != b.kind || (typed && a.dtype != b.dtype) || a.name != b.name || a.parts.size() != b.parts.size() ||
      a.parameter_count != b.parameter_count)
    return {};
  Type out = a;
  if (a.dims && !(b.dims && std::equal(a.dims->begin(), a.dims->end(), b.dims->begin(), b.dims->end(),
                                       [&](sym::Expr x, sym::Expr y) { return c.proves_equal(x, y); })))
    out.dims.reset();
  for (size_t i = 0; i < a.parts.size(); ++i) out.parts[i] = common_type(c, a.parts[i], b.parts[i]);
  return out;
}

Type without_dims(Type type) {
  type.dims.reset();
  for (Type& part : type.parts) part = without_dims(std::move(part));
  return type;
}

Type visible_type(const ir::ShapeContext& c, Type type) {
  if (type.dims && !std::ranges::all_of(*type.dims, [&](sym::Expr e) { return c.services().visible(e); }))
    type.dims.reset();
  for (Type& part : type.parts) part = visible_type(c, std::move(part));
  return type;
}

}  // namespace selkie::ops
