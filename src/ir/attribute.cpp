#include "ir/attribute.h"

#include <algorithm>
#include <array>

namespace selkie::ir {

std::string_view name(AttrKind kind) {
  static constexpr std::array<std::string_view, 10> names{
      "an integer",        "a float",  "a string", "a list of integers", "a list of floats",
      "a list of strings", "a tensor", "a type",   "a function",         "symbolic integers"};
  return names[static_cast<size_t>(kind)];
}

const Attribute* Attributes::find(std::string_view name) const {
  for (const auto& [key, value] : items_)
    if (key == name) return &value;
  return nullptr;
}

void Attributes::set(std::string_view name, Attribute value) {
  auto at =
      std::lower_bound(items_.begin(), items_.end(), name, [](const auto& item, auto n) { return item.first < n; });
  if (at != items_.end() && at->first == name)
    at->second = std::move(value);
  else
    items_.emplace(at, std::string(name), std::move(value));
}

void Attributes::erase(std::string_view name) {
  std::erase_if(items_, [&](const auto& item) { return item.first == name; });
}

}  // namespace selkie::ir
