// Canonical text of expressions, and the reader of it.
#include "sym/text.h"

#include <algorithm>
#include <cctype>

#include "sym/node.h"
#include "sym/rules.h"

namespace selkie::sym {
namespace {

constexpr int max_nesting = 256;

constexpr std::string_view call_names[] = {"floordiv", "ceildiv", "mod", "min", "max"};

bool starts_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool continues_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }

// Words with a meaning of their own are quoted when they are symbols; `in` belongs to the fact language.
bool is_reserved(std::string_view name) {
  return name == "in" || std::find(std::begin(call_names), std::end(call_names), name) != std::end(call_names);
}

bool is_plain_name(std::string_view name) {
  return starts_name(name[0]) && std::all_of(name.begin(), name.end(), continues_name) && !name.ends_with('.') &&
         name.find("..") == name.npos && !is_reserved(name);
}

void print_name(std::string_view name, std::string& out) {
  if (is_plain_name(name)) {
    out += name;
    return;
  }
  out += '\'';
  for (char c : name) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  out += '\'';
}

std::string_view call_name(Kind kind) {
  switch (kind) {
    case Kind::floordiv:
      return "floordiv";
    case Kind::mod:
      return "mod";
    case Kind::min:
      return "min";
    default:
      return "max";
  }
}

void print(const Node* node, std::string& out);

// |coefficient| * monomial; the sign is the caller's.
void print_term(const Term& term, std::string& out) {
  uint64_t magnitude = term.coefficient < 0 ? 0 - static_cast<uint64_t>(term.coefficient) : term.coefficient;
  if (magnitude != 1) out += fmt::format("{}*", magnitude);
  print(term.monomial, out);
}

void print_sum(const Node* node, std::string& out) {
  bool first = true;
  for (const Term& term : node->terms()) {
    bool negative = term.coefficient < 0;
    out += first ? (negative ? "-" : "") : (negative ? " - " : " + ");
    print_term(term, out);
    first = false;
  }
  if (node->value < 0) out += fmt::format(" - {}", 0 - static_cast<uint64_t>(node->value));
  if (node->value > 0) out += fmt::format(" + {}", node->value);
}

void print_product(const Node* node, std::string& out) {
  bool first = true;
  for (const Factor& factor : node->factors()) {
    for (int64_t i = 0; i < factor.power; ++i) {
      if (!first) out += '*';
      print(factor.atom, out);
      first = false;
    }
  }
}

void print(const Node* node, std::string& out) {
  switch (node->kind) {
    case Kind::constant:
      out += fmt::format("{}", node->value);
      return;
    case Kind::symbol:
      return print_name(node->name(), out);
    case Kind::sum:
      return print_sum(node, out);
    case Kind::product:
      return print_product(node, out);
    default:
      out += call_name(node->kind);
      for (size_t i = 0; i < node->operands().size(); ++i) {
        out += i == 0 ? "(" : ", ";
        print(node->operands()[i], out);
      }
      out += ')';
  }
}

}  // namespace

std::string to_string(Expr e) {
  std::string out;
  print(e.node(), out);
  return out;
}

Expr parse(Context& context, std::string_view text) {
  Reader reader(context, text);
  Expr result = reader.expression();
  reader.finish();
  return result;
}

void Reader::fail_here(std::string_view what) const {
  fail("{} at position {} of symbolic text \"{}\"", what, position_, text_);
}

void Reader::skip_space() {
  while (position_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[position_]))) ++position_;
}

bool Reader::accept(std::string_view token) {
  skip_space();
  if (!text_.substr(position_).starts_with(token)) return false;
  position_ += token.size();
  return true;
}

bool Reader::accept_word(std::string_view word) {
  skip_space();
  size_t end = position_ + word.size();
  if (!text_.substr(position_).starts_with(word) || (end < text_.size() && continues_name(text_[end]))) return false;
  position_ = end;
  return true;
}

void Reader::expect(std::string_view token) {
  if (!accept(token)) fail_here(fmt::format("expected '{}'", token));
}

bool Reader::at_end() {
  skip_space();
  return position_ == text_.size();
}

void Reader::finish() {
  if (!at_end()) fail_here("unexpected text");
}

Expr Reader::expression() {
  Expr result = term(accept("-"));
  while (true) {
    if (accept("+")) {
      result = result + term(false);
    } else if (accept("-")) {
      result = result + term(true);
    } else {
      return result;
    }
  }
}

Expr Reader::term(bool negative) {
  Expr result = factor(negative);
  while (true) {
    if (accept("*")) {
      result = result * factor(false);
    } else if (accept("%")) {
      result = mod(result, factor(false));
    } else {
      return result;
    }
  }
}

// A sign before a literal belongs to it, because -2^63 has no positive counterpart.
Expr Reader::factor(bool negative) {
  while (accept("-")) negative = !negative;
  skip_space();
  if (position_ == text_.size()) fail_here("expected an expression");
  char c = text_[position_];
  if (std::isdigit(static_cast<unsigned char>(c))) return context_.constant(literal(negative));
  Expr result;
  if (accept("(")) {
    if (++nesting_ > max_nesting) fail_here("nesting too deep");
    result = expression();
    expect(")");
    --nesting_;
  } else if (c == '\'') {
    result = context_.symbol(quoted_name());
  } else if (starts_name(c)) {
    result = named();
  } else {
    fail_here("expected an expression");
  }
  return negative ? -result : result;
}

int64_t Reader::literal(bool negative) {
  int64_t value = 0;
  for (; position_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[position_])); ++position_) {
    int64_t digit = text_[position_] - '0';
    if (__builtin_mul_overflow(value, 10, &value) || __builtin_sub_overflow(value, digit, &value)) {
      fail_here("integer beyond 64 bits");
    }
  }
  if (!negative && __builtin_sub_overflow(0, value, &value)) fail_here("integer beyond 64 bits");
  return value;
}

int64_t Reader::integer() {
  bool negative = accept("-");
  skip_space();
  if (position_ == text_.size() || !std::isdigit(static_cast<unsigned char>(text_[position_]))) {
    fail_here("expected an integer");
  }
  return literal(negative);
}

std::string Reader::quoted_name() {
  std::string name;
  for (++position_; position_ < text_.size() && text_[position_] != '\''; ++position_) {
    if (text_[position_] == '\\') {
      if (++position_ == text_.size()) break;
      name += text_[position_] == 'n' ? '\n' : text_[position_];
      continue;
    }
    name += text_[position_];
  }
  if (position_ == text_.size()) fail_here("missing closing quote");
  ++position_;
  if (name.empty()) fail_here("empty symbol name");
  return name;
}

// A symbol, or a function if a parenthesis follows. Two dots end a name: they belong to a range.
Expr Reader::named() {
  size_t start = position_;
  while (position_ < text_.size() && continues_name(text_[position_]) && !text_.substr(position_).starts_with("..")) {
    ++position_;
  }
  std::string_view name = text_.substr(start, position_ - start);
  if (!is_reserved(name)) return context_.symbol(name);
  if (name == "in") fail_here("'in' is a word of the fact language; quote it to name a symbol");
  if (++nesting_ > max_nesting) fail_here("nesting too deep");
  expect("(");
  std::vector<Expr> operands{expression()};
  while (accept(",")) operands.push_back(expression());
  expect(")");
  --nesting_;
  if (name == "min" || name == "max") return lattice(name == "min" ? Kind::min : Kind::max, operands);
  if (operands.size() != 2) fail_here(fmt::format("{} takes two operands", name));
  if (name == "floordiv") return floordiv(operands[0], operands[1]);
  return name == "mod" ? mod(operands[0], operands[1]) : ceildiv(operands[0], operands[1]);
}

}  // namespace selkie::sym
