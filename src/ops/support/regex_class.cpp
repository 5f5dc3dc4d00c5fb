#include <algorithm>

#include "ops/support/regex_tree.h"

namespace selkie::ops {
namespace {

struct NamedClass {
  std::string_view name;
  CodeClass set;
};

const std::vector<NamedClass>& named_classes() {
  static const std::vector<NamedClass> rows{
      {"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
      {"alpha", {{'A', 'Z'}, {'a', 'z'}}},
      {"ascii", {{0, 0x7F}}},
      {"blank", {{'\t', '\t'}, {' ', ' '}}},
      {"cntrl", {{0, 0x1F}, {0x7F, 0x7F}}},
      {"digit", {{'0', '9'}}},
      {"graph", {{'!', '~'}}},
      {"lower", {{'a', 'z'}}},
      {"print", {{' ', '~'}}},
      {"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
      {"space", {{'\t', '\r'}, {' ', ' '}}},
      {"upper", {{'A', 'Z'}}},
      {"word", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}, {'_', '_'}}},
      {"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}},
  };
  return rows;
}

}  // namespace

CodeClass negated(CodeClass set) {
  std::sort(set.begin(), set.end(), [](const CodeRange& a, const CodeRange& b) { return a.first < b.first; });
  CodeClass out;
  char32_t next = 0;
  for (const CodeRange& r : set) {
    if (r.first > next) out.push_back({next, r.first - 1});
    next = std::max<char32_t>(next, r.last + 1);
  }
  if (next <= last_code_point) out.push_back({next, last_code_point});
  return out;
}

void add_all(CodeClass& to, const CodeClass& from) { to.insert(to.end(), from.begin(), from.end()); }

// Both cases of ASCII letters.
CodeClass both_cases(CodeClass set) {
  auto overlap = [&](char32_t first, char32_t last, int32_t shift) {
    CodeClass more;
    for (const CodeRange& r : set)
      if (std::max(r.first, first) <= std::min(r.last, last))
        more.push_back({std::max(r.first, first) + static_cast<char32_t>(shift),
                        std::min(r.last, last) + static_cast<char32_t>(shift)});
    return more;
  };
  CodeClass upper = overlap('a', 'z', 'A' - 'a');
  CodeClass lower = overlap('A', 'Z', 'a' - 'A');
  add_all(set, upper);
  add_all(set, lower);
  return set;
}

std::optional<CodeClass> named_class(std::string_view name) {
  for (const NamedClass& row : named_classes())
    if (row.name == name) return row.set;
  return std::nullopt;
}

}  // namespace selkie::ops
