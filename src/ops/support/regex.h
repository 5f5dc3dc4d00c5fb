// Regular expressions in RE2's syntax, matched in time linear in the text by simulating the automaton.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ops/support/regex_tree.h"

namespace selkie::ops {

// One instruction of the automaton; `next` and `other` are indices of instructions.
struct RegexStep {
  enum class Kind : uint8_t { atom, fork, accept };
  Kind kind;
  RegexAtom atom = RegexAtom::one_of;
  CodeClass accepted = {};  // one_of
  size_t next = 0;
  size_t other = 0;  // fork
};

class Regex {
 public:
  // Fails with a user error that names what in the pattern is wrong or not supported.
  explicit Regex(std::string_view pattern);
  // Whether the whole text matches.
  bool matches(std::string_view text) const;

 private:
  std::vector<RegexStep> steps_;
  size_t start_ = 0;
};

}  // namespace selkie::ops
