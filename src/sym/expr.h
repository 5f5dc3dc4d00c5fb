// Symbolic integers: immutable, interned, canonical expressions over natural symbols.
// An expression is a polynomial whose atoms are symbols and floordiv, mod, min and max nodes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace selkie::sym {

class Context;
class Interner;
struct Node;

// Bounds of an expression, both inclusive; an absent bound is unknown (or does not exist).
struct Range {
  std::optional<int64_t> lo;
  std::optional<int64_t> hi;
  friend bool operator==(const Range&, const Range&) = default;
};

// A handle of one pointer. Canonical forms are interned, so equality of handles is equality wherever the rules decide
// it. A default-constructed Expr is null; only operator bool and operator== may be used on it.
class Expr {
 public:
  Expr() = default;
  explicit Expr(const Node* node) : node_(node) {}

  bool is_constant() const;
  std::optional<int64_t> constant() const;
  bool is_symbol() const;
  std::string_view symbol_name() const;
  Context& context() const;
  uint64_t id() const;  // Creation order within the context: a deterministic key.
  Range range() const;  // What holds for all natural values of the symbols.

  explicit operator bool() const { return node_ != nullptr; }
  friend bool operator==(Expr, Expr) = default;
  const Node* node() const { return node_; }

 private:
  const Node* node_ = nullptr;
};

// Owns and interns expressions. Not thread-safe. Expressions of different contexts must not be mixed.
class Context {
 public:
  Context();
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  Expr constant(int64_t value);
  Expr symbol(std::string_view name);  // A natural (>= 0); the same name is the same symbol.
  Expr fresh(std::string_view hint);   // A new symbol whose name is not taken: hint, hint_1, hint_2, ...
  size_t size() const;                 // Number of expressions interned so far.
  Interner& interner() { return *interner_; }

 private:
  std::unique_ptr<Interner> interner_;
};

// Constructors simplify. Arithmetic that leaves 64 bits, or an expression beyond the size limits, throws selkie::Error.
// Division rounds to minus infinity and mod has the sign of its divisor; dividing by zero is undefined, and an
// expression that contains it may be simplified to one that is defined.
Expr operator+(Expr a, Expr b);
Expr operator-(Expr a, Expr b);
Expr operator*(Expr a, Expr b);
Expr operator-(Expr a);
Expr floordiv(Expr a, Expr b);
Expr ceildiv(Expr a, Expr b);
Expr mod(Expr a, Expr b);
Expr min(Expr a, Expr b);
Expr max(Expr a, Expr b);

Expr operator+(Expr a, int64_t b);
Expr operator+(int64_t a, Expr b);
Expr operator-(Expr a, int64_t b);
Expr operator-(int64_t a, Expr b);
Expr operator*(Expr a, int64_t b);
Expr operator*(int64_t a, Expr b);
Expr floordiv(Expr a, int64_t b);
Expr ceildiv(Expr a, int64_t b);
Expr mod(Expr a, int64_t b);
Expr min(Expr a, int64_t b);
Expr max(Expr a, int64_t b);

// Canonical text, a function of the expression's structure only: "2*N + 3", "floordiv(N + 1, 2)", "min(a, b)".
// A name that is no identifier is quoted: "'past_len + 1'". parse() reads the text back to the same expression.
std::string to_string(Expr e);

// Reads + - * % (), the functions above and integer literals. Throws selkie::Error with the position on bad text.
Expr parse(Context& context, std::string_view text);

// Replaces symbols; a null result leaves the symbol as it is.
Expr substitute(Expr e, const std::function<Expr(Expr symbol)>& replacement);

// An expression that is never below (above) e, where `most` and `least` give natural bounds of symbols: null to keep a
// symbol, and nullopt if it has none. Nullopt where the form of e does not allow it.
struct SymbolBounds {
  std::function<std::optional<Expr>(Expr symbol)> most;
  std::function<std::optional<Expr>(Expr symbol)> least;
};
std::optional<Expr> upper_bound(Expr e, const SymbolBounds& bounds);
std::optional<Expr> lower_bound(Expr e, const SymbolBounds& bounds);

// The value under a binding; nullopt if a symbol is unbound, a divisor is zero, or 64 bits do not suffice.
std::optional<int64_t> evaluate(Expr e, const std::function<std::optional<int64_t>(std::string_view name)>& binding);

// Appends the symbols of e in first-occurrence order, without duplicating what is in out already.
void collect_symbols(Expr e, std::vector<Expr>& out);

}  // namespace selkie::sym
