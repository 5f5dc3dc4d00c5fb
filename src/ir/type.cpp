#include "ir/type.h"

#include <fmt/core.h>

#include "base/error.h"

namespace selkie::ir {
namespace {

std::string join(const std::vector<Type>& types, size_t begin, size_t end) {
  std::string out;
  for (size_t i = begin; i < end; ++i) out += (i > begin ? ", " : "") + to_string(types[i]);
  return out;
}

}  // namespace

Type Type::function(std::vector<Type> parameters, std::vector<Type> results) {
  Type type{.kind = Kind::function, .parts = std::move(parameters)};
  type.parameter_count = type.parts.size();
  type.parts.insert(type.parts.end(), results.begin(), results.end());
  return type;
}

std::string to_string(const Type& type) {
  switch (type.kind) {
    case Type::Kind::unknown:
      return "?";
    case Type::Kind::tensor: {
      std::string out(name(type.dtype));
      if (!type.dims) return out + "[*]";
      out += '[';
      for (size_t i = 0; i < type.dims->size(); ++i) out += (i > 0 ? ", " : "") + sym::to_string((*type.dims)[i]);
      return out + ']';
    }
    case Type::Kind::seq:
      return "seq<" + to_string(type.parts[0]) + ">";
    case Type::Kind::opt:
      return "opt<" + to_string(type.parts[0]) + ">";
    case Type::Kind::map:
      return fmt::format("map<{}, {}>", name(type.dtype), to_string(type.parts[0]));
    case Type::Kind::tuple:
      return "(" + join(type.parts, 0, type.parts.size()) + ")";
    case Type::Kind::function:
      return "fn(" + join(type.parts, 0, type.parameter_count) + ") -> (" +
             join(type.parts, type.parameter_count, type.parts.size()) + ")";
    case Type::Kind::data:
      return type.name;
  }
  CHECK(false);
  return {};
}

bool compatible(const Type& from, const Type& to) {
  if (from.is_unknown() || to.is_unknown()) return true;
  if (from.kind != to.kind) return false;
  if ((from.kind == Type::Kind::tensor || from.kind == Type::Kind::map) && from.dtype != to.dtype) return false;
  if (from.kind == Type::Kind::data) return from.name == to.name;
  if (from.kind == Type::Kind::tensor) {
    if (!from.dims || !to.dims) return true;
    if (from.dims->size() != to.dims->size()) return false;
    for (size_t i = 0; i < from.dims->size(); ++i) {
      auto a = (*from.dims)[i].constant();
      auto b = (*to.dims)[i].constant();
      if (a && b && *a != *b) return false;
    }
    return true;
  }
  if (from.parts.size() != to.parts.size() || from.parameter_count != to.parameter_count) return false;
  for (size_t i = 0; i < from.parts.size(); ++i)
    if (!compatible(from.parts[i], to.parts[i])) return false;
  return true;
}

}  // namespace selkie::ir
