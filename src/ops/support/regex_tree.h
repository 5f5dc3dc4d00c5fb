// The syntax tree of a regular expression, and the sets of code points in it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace selkie::ops {

struct CodeRange {
  char32_t first;
  char32_t last;
};
using CodeClass = std::vector<CodeRange>;  // in any order
inline constexpr char32_t last_code_point = 0x10FFFF;

void add_all(CodeClass& to, const CodeClass& from);
CodeClass negated(CodeClass set);
// With both cases of its ASCII letters.
CodeClass both_cases(CodeClass set);
// "alpha", "digit", …: the classes that are written [[:name:]].
std::optional<CodeClass> named_class(std::string_view name);

// What is read from the text: one code point, or a place that must be of some kind.
enum class RegexAtom : uint8_t { one_of, text_start, text_end, line_start, line_end, word_border, no_word_border };

struct RegexTree {
  enum class Kind : uint8_t { atom, sequence, choice, repeat };
  Kind kind;
  RegexAtom atom = RegexAtom::one_of;
  CodeClass accepted = {};  // one_of
  std::vector<std::unique_ptr<RegexTree>> parts = {};
  int64_t least = 0;  // repeat
  int64_t most = -1;  // repeat; −1: any number
};

// Fails with a user error on wrong or unsupported syntax.
std::unique_ptr<RegexTree> parse_regex(std::string_view pattern);

}  // namespace selkie::ops
