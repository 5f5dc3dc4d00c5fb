#include "ops/support/regex.h"

#include <utility>

#include "base/error.h"
#include "ops/support/utf8.h"

namespace selkie::ops {
namespace {

bool contains(const CodeClass& accepted, char32_t c) {
  for (const CodeRange& range : accepted)
    if (c >= range.first && c <= range.last) return true;
  return false;
}

bool is_word(char32_t c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// The instructions that are alive at one position of the text.
class Alive {
 public:
  Alive(const std::vector<RegexStep>& steps, const std::u32string& text)
      : steps_(steps), text_(text), seen_(steps.size(), 0) {}

  // Adds `step` and what follows from it without reading, at a position of the text.
  void add(size_t step, size_t position) {
    pending_.assign(1, step);
    while (!pending_.empty()) {
      size_t at = pending_.back();
      pending_.pop_back();
      if (seen_[at] == round_) continue;
      seen_[at] = round_;
      const RegexStep& s = steps_[at];
      bool reads = s.kind == RegexStep::Kind::atom && s.atom == RegexAtom::one_of;
      if (reads || s.kind == RegexStep::Kind::accept) {
        list_.push_back(at);
      } else if (s.kind == RegexStep::Kind::fork) {
        pending_.push_back(s.other);
        pending_.push_back(s.next);
      } else if (holds(s.atom, position)) {
        pending_.push_back(s.next);
      }
    }
  }
  std::vector<size_t> take() {
    ++round_;
    return std::exchange(list_, {});
  }

 private:
  bool holds(RegexAtom atom, size_t at) const {
    bool border = (at > 0 && is_word(text_[at - 1])) != (at < text_.size() && is_word(text_[at]));
    switch (atom) {
      case RegexAtom::text_start:
        return at == 0;
      case RegexAtom::text_end:
        return at == text_.size();
      case RegexAtom::line_start:
        return at == 0 || text_[at - 1] == '\n';
      case RegexAtom::line_end:
        return at == text_.size() || text_[at] == '\n';
      case RegexAtom::word_border:
        return border;
      case RegexAtom::no_word_border:
        return !border;
      default:
        return false;
    }
  }

  const std::vector<RegexStep>& steps_;
  const std::u32string& text_;
  std::vector<size_t> seen_;
  std::vector<size_t> list_;
  std::vector<size_t> pending_;
  size_t round_ = 1;
};

constexpr size_t most_steps = 20'000;

// Makes code from the tree, back to front. Repetition copies code.
class Compiler {
 public:
  explicit Compiler(std::vector<RegexStep>& steps) : steps_(steps) {}

  // The first instruction of `tree` when `next` comes after it.
  size_t compile(const RegexTree& tree, size_t next) {
    spend();  // repeated trees that need no instruction take time as well
    switch (tree.kind) {
      case RegexTree::Kind::atom:
        return add({.kind = RegexStep::Kind::atom, .atom = tree.atom, .accepted = tree.accepted, .next = next});
      case RegexTree::Kind::sequence:
        for (size_t i = tree.parts.size(); i-- > 0;) next = compile(*tree.parts[i], next);
        return next;
      case RegexTree::Kind::choice: {
        size_t first = compile(*tree.parts.back(), next);
        for (size_t i = tree.parts.size() - 1; i-- > 0;) first = fork(compile(*tree.parts[i], next), first);
        return first;
      }
      case RegexTree::Kind::repeat:
        return repeat(tree, next);
    }
    return next;
  }

 private:
  void spend() {
    if (++spent_ > most_steps) fail("the pattern is too large: its repetitions need more than {} steps", most_steps);
  }
  size_t add(RegexStep step) {
    steps_.push_back(std::move(step));
    return steps_.size() - 1;
  }
  size_t fork(size_t a, size_t b) { return add({.kind = RegexStep::Kind::fork, .next = a, .other = b}); }

  size_t repeat(const RegexTree& tree, size_t next) {
    const RegexTree& part = *tree.parts[0];
    if (tree.most < 0) {
      size_t loop = fork(next, next);
      size_t body = compile(part, loop);
      steps_[loop].next = body;
      next = loop;
    } else {
      size_t end = next;
      for (int64_t i = tree.least; i < tree.most; ++i) next = fork(compile(part, next), end);
    }
    for (int64_t i = 0; i < tree.least; ++i) next = compile(part, next);
    return next;
  }

  std::vector<RegexStep>& steps_;
  size_t spent_ = 0;
};

}  // namespace

Regex::Regex(std::string_view pattern) {
  steps_.push_back({.kind = RegexStep::Kind::accept});
  start_ = Compiler(steps_).compile(*parse_regex(pattern), 0);
}

bool Regex::matches(std::string_view text) const {
  std::u32string codes = from_utf8(text);
  Alive alive(steps_, codes);
  alive.add(start_, 0);
  for (size_t at = 0; at < codes.size(); ++at)
    for (size_t step : alive.take())
      if (steps_[step].kind == RegexStep::Kind::atom && contains(steps_[step].accepted, codes[at]))
        alive.add(steps_[step].next, at + 1);
  for (size_t step : alive.take())
    if (steps_[step].kind == RegexStep::Kind::accept) return true;
  return false;
}

}  // namespace selkie::ops
