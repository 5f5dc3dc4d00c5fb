// Random facts and goals about raw trees, for tests of Facts and its prover.
#pragma once

#include "sym/facts.h"
#include "sym/random_tree.h"

namespace selkie::sym::testing {

inline uint32_t leaf(Random& random, RawTree& tree) {
  bool constant = pick(random, 0, 3) == 0;
  tree.push_back({constant ? Op::constant : Op::symbol, constant ? pick(random, 0, 9) : pick(random, 0, 3), 0, 0});
  return static_cast<uint32_t>(tree.size() - 1);
}

struct Shape {
  bool products;           // Of two unknowns.
  bool symbolic_divisors;  // Otherwise divisors are positive constants.
};

inline uint32_t grow(Random& random, RawTree& tree, int operations, Shape shape) {
  if (operations == 0) return leaf(random, tree);
  constexpr Op ops[] = {Op::add, Op::add, Op::add,      Op::sub, Op::sub,     Op::mul,
                        Op::min, Op::max, Op::floordiv, Op::mod, Op::ceildiv, Op::mul};
  Op op = ops[pick(random, 0, std::size(ops) - 1)];
  bool divides = op == Op::floordiv || op == Op::mod || op == Op::ceildiv;
  bool constant_right = (divides && !(shape.symbolic_divisors && pick(random, 0, 1))) ||
                        (op == Op::mul && !(shape.products && pick(random, 0, 1)));
  int left_operations = constant_right ? operations - 1 : static_cast<int>(pick(random, 0, operations - 1));
  uint32_t left = grow(random, tree, left_operations, shape);
  uint32_t right;
  if (constant_right) {
    tree.push_back({Op::constant, pick(random, 1, 5), 0, 0});
    right = static_cast<uint32_t>(tree.size() - 1);
  } else {
    right = grow(random, tree, operations - 1 - left_operations, shape);
  }
  tree.push_back({op, 0, left, right});
  return static_cast<uint32_t>(tree.size() - 1);
}

inline RawTree tree_of(Random& random, int operations, Shape shape) {
  RawTree tree;
  grow(random, tree, operations, shape);
  return tree;
}

enum class Relation { less_equal, equal, divisible, in_range };

struct Statement {
  Relation relation;
  RawTree left;
  RawTree right;
  int64_t lo;
  int64_t hi;
};

inline Statement random_statement(Random& random, int operations, Shape shape) {
  auto relation = static_cast<Relation>(pick(random, 0, 3));
  int64_t lo = pick(random, 0, 6);
  bool simple_left = pick(random, 0, 1) == 0;
  return {relation, tree_of(random, simple_left ? 0 : static_cast<int>(pick(random, 0, operations)), shape),
          tree_of(random, static_cast<int>(pick(random, 0, operations)), shape), lo, lo + pick(random, 0, 12)};
}

inline void add(Facts& facts, Context& context, const Statement& s) {
  Expr left = build(context, s.left);
  if (s.relation == Relation::less_equal) facts.add_less_equal(left, build(context, s.right), "test");
  if (s.relation == Relation::equal) facts.add_equal(left, build(context, s.right), "test");
  if (s.relation == Relation::divisible) facts.add_divisible(left, s.lo + 2, "test");
  if (s.relation == Relation::in_range) facts.add_range(left, {.lo = s.lo, .hi = s.hi}, "test");
}

inline Truth prove(const Facts& facts, Context& context, const Statement& s) {
  Expr left = build(context, s.left);
  if (s.relation == Relation::less_equal) return facts.prove_less_equal(left, build(context, s.right));
  if (s.relation == Relation::equal) return facts.prove_equal(left, build(context, s.right));
  if (s.relation == Relation::divisible) return facts.prove_divisible(left, s.lo + 2);
  Truth low = facts.prove_less_equal(context.constant(s.lo), left);
  Truth high = facts.prove_less_equal(left, context.constant(s.hi));
  if (low == Truth::no || high == Truth::no) return Truth::no;
  return low == Truth::yes && high == Truth::yes ? Truth::yes : Truth::unknown;
}

// Whether the statement holds under a binding; nullopt if a part of it is undefined there.
inline std::optional<bool> holds(const Statement& s, const Values& values) {
  auto left = evaluate(s.left, values);
  auto right = evaluate(s.right, values);
  bool binary = s.relation == Relation::less_equal || s.relation == Relation::equal;
  if (!left || (binary && !right)) return std::nullopt;
  switch (s.relation) {
    case Relation::less_equal:
      return *left <= *right;
    case Relation::equal:
      return *left == *right;
    case Relation::divisible:
      return *left % (s.lo + 2) == 0;
    default:
      return *left >= s.lo && *left <= s.hi;
  }
}

}  // namespace selkie::sym::testing
