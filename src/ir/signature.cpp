#include "ir/signature.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace selkie::ir {

const Operand* operand_record(const std::vector<Operand>& records, size_t i) {
  if (i < records.size()) return &records[i];
  return !records.empty() && records.back().arity == Arity::variadic ? &records.back() : nullptr;
}

std::optional<std::string> arity_problem(const std::vector<Operand>& records, size_t count, std::string_view what) {
  size_t least = 0;
  for (size_t i = 0; i < records.size(); ++i)
    if (records[i].arity == Arity::required) least = i + 1;
  bool open = !records.empty() && records.back().arity == Arity::variadic;
  if (count < least) return fmt::format("{} {} given, but at least {} are needed", count, what, least);
  if (!open && count > records.size())
    return fmt::format("{} {} given, but at most {} are taken", count, what, records.size());
  return std::nullopt;
}

std::string_view name(Container container) {
  static constexpr std::array<std::string_view, 5> names{"a tensor", "a sequence", "an optional", "a map", "any value"};
  return names[static_cast<size_t>(container)];
}

std::string to_string(DTypeSet set) {
  std::string out;
  for (const DTypeInfo& row : all_dtypes())
    if (set.contains(row.dtype)) out += (out.empty() ? "" : ", ") + std::string(row.name);
  return out;
}

}  // namespace selkie::ir
