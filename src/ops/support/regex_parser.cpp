#include <algorithm>
#include <string>

#include "ops/support/regex_scanner.h"
#include "ops/support/regex_tree.h"

namespace selkie::ops {
namespace {

using Tree = RegexTree;
using TreePtr = std::unique_ptr<Tree>;

constexpr int64_t most_repeats = 1000;  // as in RE2
constexpr int deepest = 500;

struct Flags {
  bool ignore_case = false;
  bool multi_line = false;
  bool dot_all = false;
};

TreePtr make(Tree tree) { return std::make_unique<Tree>(std::move(tree)); }

class Parser : RegexScanner {
 public:
  explicit Parser(std::string_view pattern) : RegexScanner(pattern) {}

  TreePtr parse() {
    TreePtr tree = choice();
    if (!at_end()) wrong("a ) has no (");
    return tree;
  }

 private:
  TreePtr one_of(CodeClass set) const {
    return make(
        {.kind = Tree::Kind::atom, .accepted = flags_.ignore_case ? both_cases(std::move(set)) : std::move(set)});
  }
  static TreePtr border(RegexAtom atom) { return make({.kind = Tree::Kind::atom, .atom = atom}); }

  TreePtr choice() {
    if (++depth_ > deepest) wrong("groups are nested too deeply");
    Tree tree{.kind = Tree::Kind::choice};
    do tree.parts.push_back(sequence());
    while (accept(U"|"));
    --depth_;
    return make(std::move(tree));
  }

  TreePtr sequence() {
    Tree tree{.kind = Tree::Kind::sequence};
    while (!at_end() && peek() != '|' && peek() != ')') {
      if (accept(U"\\Q")) {
        while (!at_end() && !accept(U"\\E")) {
          char32_t c = take();
          tree.parts.push_back(one_of({{c, c}}));
        }
        continue;
      }
      if (TreePtr part = repeated(atom())) tree.parts.push_back(std::move(part));
    }
    return make(std::move(tree));
  }

  // Any repetition operators after an atom. RE2 refuses two in a row.
  TreePtr repeated(TreePtr part) {
    bool repeats = false;
    for (;;) {
      int64_t least = 0;
      int64_t most = -1;
      if (accept(U"*")) {
      } else if (accept(U"+")) {
        least = 1;
      } else if (accept(U"?")) {
        most = 1;
      } else if (!counts(least, most)) {
        return part;
      }
      if (part == nullptr) wrong("there is nothing to repeat");
      if (repeats) wrong("a repetition is repeated without a group");
      repeats = true;
      accept(U"?");  // lazy
      Tree tree{.kind = Tree::Kind::repeat, .least = least, .most = most};
      tree.parts.push_back(std::move(part));
      part = make(std::move(tree));
    }
  }

  // {n}, {n,} or {n,m}; any other brace is a literal.
  bool counts(int64_t& least, int64_t& most) {
    size_t before = place();
    auto number = [&]() -> std::optional<int64_t> {
      if (peek() < '0' || peek() > '9') return std::nullopt;
      int64_t value = 0;
      while (peek() >= '0' && peek() <= '9') value = std::min<int64_t>(value * 10 + (take() - '0'), most_repeats + 1);
      return value;
    };
    std::optional<int64_t> low;
    if (accept(U"{") && (low = number())) {
      std::optional<int64_t> high = low;
      if (accept(U",")) high = number();
      if (accept(U"}")) {
        if (*low > most_repeats || (high && *high > most_repeats)) wrong("a repetition of more than 1000");
        if (high && *high < *low) wrong("a repetition whose bounds are in the wrong order");
        least = *low;
        most = high.value_or(-1);
        return true;
      }
    }
    go_back(before);
    return false;
  }

  TreePtr atom() {
    char32_t c = take();
    switch (c) {
      case '(':
        return group();
      case '[':
        return one_of(bracket());
      case '.':
        return one_of(flags_.dot_all ? CodeClass{{0, last_code_point}} : negated({{'\n', '\n'}}));
      case '^':
        return border(flags_.multi_line ? RegexAtom::line_start : RegexAtom::text_start);
      case '$':
        return border(flags_.multi_line ? RegexAtom::line_end : RegexAtom::text_end);
      case '*':
      case '+':
      case '?':
        wrong("there is nothing to repeat");
      case '\\':
        return escaped();
      default:
        return one_of({{c, c}});
    }
  }

  // After "(": a group, or flags, which last to the end of the group around them and give no tree.
  TreePtr group() {
    Flags outer = flags_;
    if (accept(U"?P<") || accept(U"?<")) {
      if (peek() == '=' || peek() == '!') wrong("looking behind is not supported");
      while (peek() != '>') take();
      take();
    } else if (accept(U"?") && flags()) {
      return nullptr;
    }
    TreePtr tree = choice();
    if (!accept(U")")) wrong("a ) is missing");
    flags_ = outer;
    return tree;
  }

  // Flags after "(?"; true where the group ends with them.
  bool flags() {
    bool value = true;
    for (;;) {
      switch (take()) {
        case 'i':
          flags_.ignore_case = value;
          break;
        case 'm':
          flags_.multi_line = value;
          break;
        case 's':
          flags_.dot_all = value;
          break;
        case 'U':
          break;  // which of several matches is taken makes no difference to whether there is one
        case '-':
          value = false;
          break;
        case ':':
          return false;
        case ')':
          return true;
        default:
          wrong("an unknown kind of group");
      }
    }
  }

  TreePtr escaped() {
    switch (peek()) {
      case 'b':
        return take(), border(RegexAtom::word_border);
      case 'B':
        return take(), border(RegexAtom::no_word_border);
      case 'A':
        return take(), border(RegexAtom::text_start);
      case 'z':
        return take(), border(RegexAtom::text_end);
      case 'C':
        return take(), one_of({{0, last_code_point}});
      default:
        return one_of(escaped_class());
    }
  }

  // After a backslash, inside brackets or outside: a class or one code point.
  CodeClass escaped_class() {
    auto named = [](std::string_view name) { return *named_class(name); };
    // RE2's \s, unlike [[:space:]], has no vertical tab.
    const CodeClass space{{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}};
    switch (peek()) {
      case 'd':
        return take(), named("digit");
      case 'D':
        return take(), negated(named("digit"));
      case 'w':
        return take(), named("word");
      case 'W':
        return take(), negated(named("word"));
      case 's':
        return take(), space;
      case 'S':
        return take(), negated(space);
      default: {
        char32_t c = escaped_code();
        return {{c, c}};
      }
    }
  }

  // After "[".
  CodeClass bracket() {
    bool negate = accept(U"^");
    CodeClass set;
    for (bool first = true; first || peek() != ']'; first = false) {
      if (at_end()) wrong("a ] is missing");
      if (accept(U"[:")) {
        add_all(set, posix_class());
        continue;
      }
      CodeClass low = bracket_item();
      bool range = peek() == '-' && peek(1) != 0 && peek(1) != ']';
      if (range) {
        take();
        CodeClass high = bracket_item();
        if (low.size() != 1 || low[0].first != low[0].last || high.size() != 1 || high[0].first != high[0].last ||
            high[0].first < low[0].first)
          wrong("a range whose ends are no range");
        low[0].last = high[0].first;
      }
      add_all(set, low);
    }
    take();
    if (flags_.ignore_case) set = both_cases(std::move(set));
    return negate ? negated(std::move(set)) : set;
  }

  CodeClass bracket_item() {
    char32_t c = take();
    if (c == '\\') return escaped_class();
    return {{c, c}};
  }

  // After "[:", inside brackets.
  CodeClass posix_class() {
    bool negate = accept(U"^");
    std::string name;
    while (peek() != ':') name += static_cast<char>(take() & 0x7F);
    if (!accept(U":]")) wrong("a :] is missing");
    std::optional<CodeClass> set = named_class(name);
    if (!set) wrong("a class of characters that does not exist");
    return negate ? negated(std::move(*set)) : *set;
  }

  Flags flags_;
  int depth_ = 0;
};

}  // namespace

std::unique_ptr<RegexTree> parse_regex(std::string_view pattern) { return Parser(pattern).parse(); }

}  // namespace selkie::ops
