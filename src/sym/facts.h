// What is known about symbolic integers beyond their form: equalities, ranges, order, divisibility.
// Facts only grow. A fact that contradicts the known ones throws selkie::Error, which names the sources of both.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sym/expr.h"

namespace selkie::sym {

struct Term;
enum class Truth { no, yes, unknown };

// Copyable: the facts of a region are a refined copy of those of its parent. All expressions must be of one context.
// Every call is bounded in steps; what is not found within them is `unknown`, or not derived.
class Facts {
 public:
  explicit Facts(Context& context) : context_(&context) {}

  // Each returns whether it refined anything; `source` says who established the fact.
  bool add_equal(Expr a, Expr b, std::string source);
  bool add_range(Expr e, Range range, std::string source);
  bool add_divisible(Expr e, int64_t divisor, std::string source);
  bool add_less_equal(Expr a, Expr b, std::string source);
  // The products are equal, as in a reshape; common factors that cannot be zero are cancelled.
  bool add_product_equal(std::span<const Expr> a, std::span<const Expr> b, std::string source);
  // Text such as "N in 1..512", "H % 32 == 0", "a <= b", "a < b", "a == b + 1"; a comma separates facts.
  bool add(std::string_view text, std::string source);

  // Those that say something about these expressions, or about symbols that such facts mention, and so on. A region
  // needs no others, and a copy of all would take time quadratic in the number of regions.
  Facts about(std::span<const Expr> expressions) const;

  // Canonical text of each stated fact, which add() reads.
  std::vector<std::string> to_strings() const;

  // Holds every fact against numbers: for tests of whoever states them. Facts with symbols that are not bound are left
  // out; the text of the first one that does not hold is returned, and `checked` counts those that were looked at.
  std::optional<std::string> violated(const std::function<std::optional<int64_t>(std::string_view name)>& binding,
                                      size_t& checked) const;

  Expr simplify(Expr e) const;
  Range range(Expr e) const;
  // yes (no): proven to hold (not to hold) under every binding that satisfies the facts and for which it is defined.
  Truth prove_equal(Expr a, Expr b) const;
  Truth prove_less_equal(Expr a, Expr b) const;
  Truth prove_divisible(Expr e, int64_t divisor) const;
  // Who established what is known about the parts of e, at most a few.
  std::vector<std::string> sources_about(Expr e) const;

 private:
  class Selection;
  friend class Prover;
  friend class Simplifier;

  using Evidence = std::vector<uint32_t>;  // Sorted indices into sources_.

  // range.lo <= form <= range.hi, for a form without constant part, with content 1 and a positive first coefficient.
  struct Bound {
    Expr form;
    Range range;
    Evidence lo_evidence;
    Evidence hi_evidence;
    bool stated = false;  // By a caller, not derived from other facts.
    bool alive = true;
  };
  // form = residue modulo modulus.
  struct Congruence {
    Expr form;
    int64_t modulus = 1;
    int64_t residue = 0;
    Evidence evidence;
    bool alive = true;
  };
  // key is replaced by value; a key is a symbol, another atom, or a product.
  struct Definition {
    Expr key;
    Expr value;
    Evidence evidence;
    bool alive = true;
  };
  // Where a symbol or monomial occurs, by index into the vectors below.
  struct Occurrences {
    std::vector<uint32_t> bounds;
    std::vector<uint32_t> congruences;
    std::vector<uint32_t> definitions;
  };
  using Index = std::unordered_map<uint64_t, uint32_t>;  // From Expr::id.

  Evidence evidence(std::string source);
  Evidence evidence_about(Expr e) const;
  std::string describe(const Evidence& evidence) const;
  [[noreturn]] void contradict(const std::string& fact, const Evidence& from, Expr about, const Evidence& used) const;

  bool equal(Expr a, Expr b, const Evidence& from);
  bool bound(Expr e, Range range, const Evidence& from, bool stated);
  bool congruent(Expr e, int64_t modulus, int64_t residue, const Evidence& from);
  void define(Expr key, Expr value, const Evidence& from);
  void index_definition(uint32_t index);
  void replace_symbol(Expr symbol, const Evidence& from);
  bool store_bound(Expr form, Range range, const Evidence& from, bool stated);
  bool store_congruence(Expr form, int64_t m1, int64_t r1, int64_t m2, int64_t r2, const Evidence& from);
  void restate_definition(uint32_t index);
  bool propagate(bool refined);
  void propagate_sum(const Bound& fact);
  void propagate_atom(const Bound& fact);
  void propagate_choice(const Bound& fact, const Evidence& from);
  void index_symbols(Expr e, std::vector<uint32_t> Occurrences::* list, uint32_t position);
  Expr strip_nonzero(Expr difference) const;
  Term solvable_term(Expr difference) const;
  void changed();

  Context* context_;
  std::vector<std::string> sources_;
  std::vector<Bound> bounds_;
  std::vector<Congruence> congruences_;
  std::vector<Definition> definitions_;
  Index bound_of_;
  Index congruence_of_;
  Index definition_of_;
  std::unordered_map<uint64_t, std::vector<uint32_t>> products_by_atom_;  // Definitions of products, by first atom.
  std::vector<uint32_t> compounds_;                                       // Definitions of what is no symbol.
  std::unordered_map<uint64_t, Occurrences> occurrences_;
  std::unordered_map<std::string, uint32_t> source_ids_;
  std::vector<uint32_t> queue_;

  // Answers for the facts as they are now; dropped at each change.
  mutable std::unordered_map<uint64_t, Expr> simplified_;
  mutable std::unordered_map<uint64_t, Range> ranges_;
};

}  // namespace selkie::sym
