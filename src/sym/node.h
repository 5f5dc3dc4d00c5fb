// The stored form of expressions and the interner that makes each form unique. Private to sym/.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "sym/expr.h"

namespace selkie::sym {

// The order of kinds is the order of printing among monomials of one degree.
enum class Kind : uint8_t { symbol, floordiv, mod, min, max, product, sum, constant };

// coefficient * monomial; a monomial is an atom (symbol, floordiv, mod, min, max) or a product.
struct Term {
  int64_t coefficient;
  const Node* monomial;
};

// atom ^ power.
struct Factor {
  const Node* atom;
  int64_t power;
};

// Limits that keep every operation bounded; beyond them a constructor throws.
inline constexpr size_t max_terms = 4096;
inline constexpr size_t max_operands = 256;
inline constexpr int64_t max_degree = 1024;
inline constexpr uint32_t max_depth = 200;
inline constexpr uint64_t max_size = 1 << 16;

// What the node holds behind itself: symbol: chars; sum: Terms; product: Factors; a call: operands.
struct Node {
  Context* context;
  uint64_t order_key;  // Decides most structural comparisons without a walk.
  int64_t value;       // constant: the value; sum: the constant part; otherwise 0.
  int64_t lo;          // Bounds for all natural values of the symbols, where has_lo and has_hi say so.
  int64_t hi;
  Term as_term;  // 1 * this and this ^ 1, so that views need no storage of their own.
  Factor as_factor;
  uint32_t id;
  uint32_t count;   // Of the items behind the node.
  uint32_t size;    // Nodes of the expression written out as a tree.
  uint16_t depth;   // Nesting of function atoms.
  uint16_t degree;  // Of the leading monomial; an atom has degree 1.
  Kind kind;
  bool has_lo;
  bool has_hi;

  Range range() const {
    return {.lo = has_lo ? std::optional(lo) : std::nullopt, .hi = has_hi ? std::optional(hi) : std::nullopt};
  }
  bool is_atom() const { return kind < Kind::product; }
  bool is_division() const { return kind == Kind::floordiv || kind == Kind::mod; }
  std::string_view name() const { return {reinterpret_cast<const char*>(this + 1), count}; }
  std::span<const Term> terms() const { return {reinterpret_cast<const Term*>(this + 1), count}; }
  std::span<const Factor> factors() const { return {reinterpret_cast<const Factor*>(this + 1), count}; }
  std::span<const Node* const> operands() const { return {reinterpret_cast<const Node* const*>(this + 1), count}; }
};

// Any expression seen as a sum of terms plus a constant, without building one.
class SumView {
 public:
  explicit SumView(const Node* node)
      : terms_(node->kind == Kind::sum ? node->terms() : std::span(&node->as_term, node->kind != Kind::constant)),
        constant_(node->value) {}
  std::span<const Term> terms() const { return terms_; }
  int64_t constant() const { return constant_; }

 private:
  std::span<const Term> terms_;
  int64_t constant_;
};

// A monomial seen as a list of factors.
class ProductView {
 public:
  explicit ProductView(const Node* node)
      : factors_(node->kind == Kind::product ? node->factors() : std::span(&node->as_factor, 1)) {}
  std::span<const Factor> factors() const { return factors_; }

 private:
  std::span<const Factor> factors_;
};

// A vector with room for N elements in place: sums and products are mostly short.
template <class T, size_t N>
class Buffer {
 public:
  void push_back(T value) {
    if (size_ < N) {
      inline_[size_++] = value;
      return;
    }
    if (size_ == N) heap_.assign(inline_.begin(), inline_.end());
    heap_.push_back(value);
    ++size_;
  }
  void resize(size_t size) {  // Only to shrink.
    if (size_ > N) {
      heap_.resize(size);
      if (size <= N) std::copy(heap_.begin(), heap_.end(), inline_.begin());
    }
    size_ = size;
  }
  void erase(size_t index) {
    std::copy(begin() + index + 1, end(), begin() + index);
    resize(size_ - 1);
  }
  T* begin() { return size_ > N ? heap_.data() : inline_.data(); }
  T* end() { return begin() + size_; }
  const T* begin() const { return size_ > N ? heap_.data() : inline_.data(); }
  const T* end() const { return begin() + size_; }
  size_t size() const { return size_; }
  T& operator[](size_t i) { return begin()[i]; }
  const T& operator[](size_t i) const { return begin()[i]; }
  std::span<const T> span() const { return {begin(), size_}; }

 private:
  size_t size_ = 0;
  std::array<T, N> inline_;
  std::vector<T> heap_;
};

using Terms = Buffer<Term, 16>;
using Factors = Buffer<Factor, 8>;
using Operands = Buffer<Expr, 8>;

// A total order on structure alone: higher degree first, then kind, then names and operands; constants last.
int compare(const Node* a, const Node* b);

// Finds or creates nodes. Arguments must already be canonical: sorted, combined, without trivial forms.
class Interner {
 public:
  explicit Interner(Context& context);

  const Node* constant(int64_t value);
  const Node* symbol(std::string_view name);
  bool has_symbol(std::string_view name) const;
  const Node* sum(std::span<const Term> terms, int64_t constant);  // Also gives the trivial forms: constant, monomial.
  const Node* product(std::span<const Factor> factors);            // Likewise; factors must not be empty.
  const Node* call(Kind kind, std::span<const Expr> operands);     // floordiv, mod, min, max.
  size_t size() const { return count_; }

 private:
  // An open-addressing table; the hash beside the pointer saves most reads of the node.
  struct Slot {
    uint64_t hash;
    const Node* node;
  };

  template <class Equal>
  Slot& find(uint64_t hash, Equal equal);
  const Node* insert(Slot& slot, uint64_t hash, Node node, const Range& range, const void* items, size_t bytes);
  void* allocate(size_t bytes);
  void grow();

  Context& context_;
  std::vector<Slot> table_;
  size_t count_ = 0;
  std::vector<std::unique_ptr<std::byte[]>> chunks_;
  std::byte* free_ = nullptr;
  size_t room_ = 0;
  std::array<const Node*, 257> small_constants_{};
};

// 64-bit arithmetic that throws selkie::Error instead of wrapping.
[[noreturn]] void fail_overflow();
inline int64_t checked_add(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_add_overflow(a, b, &result)) fail_overflow();
  return result;
}
inline int64_t checked_mul(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_mul_overflow(a, b, &result)) fail_overflow();
  return result;
}
inline bool is_value(Expr e, int64_t value) { return e.node()->kind == Kind::constant && e.node()->value == value; }
inline int64_t checked_neg(int64_t a) { return checked_mul(a, -1); }

}  // namespace selkie::sym
