// Random raw expression trees and seeds, for tests and benchmarks. A raw tree is evaluated as written, without rules.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "sym/expr.h"

namespace selkie::sym::testing {

enum class Op : uint8_t { constant, symbol, add, sub, mul, floordiv, ceildiv, mod, min, max };

inline constexpr std::array<const char*, 4> symbol_names = {"N", "H", "past_len", "odd name"};

// Nodes in post-order: operands come before their user, the root is last.
struct RawNode {
  Op op;
  int64_t value;  // A constant, or the index of a symbol.
  uint32_t left;
  uint32_t right;
};
using RawTree = std::vector<RawNode>;
using Values = std::array<int64_t, symbol_names.size()>;
using Random = std::mt19937_64;

inline int64_t pick(Random& random, int64_t lo, int64_t hi) {
  return std::uniform_int_distribution<int64_t>(lo, hi)(random);
}

inline uint32_t grow_tree(Random& random, RawTree& tree, int operations) {
  if (operations == 0) {
    bool constant = pick(random, 0, 2) == 0;
    int64_t value = constant ? pick(random, -8, 16) : pick(random, 0, symbol_names.size() - 1);
    tree.push_back({constant ? Op::constant : Op::symbol, value, 0, 0});
  } else {
    int left_operations = static_cast<int>(pick(random, 0, operations - 1));
    auto op = static_cast<Op>(pick(random, static_cast<int>(Op::add), static_cast<int>(Op::max)));
    uint32_t left = grow_tree(random, tree, left_operations);
    uint32_t right = grow_tree(random, tree, operations - 1 - left_operations);
    tree.push_back({op, 0, left, right});
  }
  return static_cast<uint32_t>(tree.size() - 1);
}

inline RawTree random_tree(Random& random, int operations) {
  RawTree tree;
  grow_tree(random, tree, operations);
  return tree;
}

inline Expr apply(Op op, Expr a, Expr b) {
  switch (op) {
    case Op::add:
      return a + b;
    case Op::sub:
      return a - b;
    case Op::mul:
      return a * b;
    case Op::floordiv:
      return floordiv(a, b);
    case Op::ceildiv:
      return ceildiv(a, b);
    case Op::mod:
      return mod(a, b);
    case Op::min:
      return min(a, b);
    default:
      return max(a, b);
  }
}

// Canonicalises the tree: one constructor application per operation.
template <class Buffer>
Expr build(Context& context, std::span<const Expr> symbols, const RawTree& tree, Buffer& buffer) {
  buffer.clear();
  for (const RawNode& node : tree) {
    buffer.push_back(node.op == Op::constant ? context.constant(node.value)
                     : node.op == Op::symbol ? symbols[static_cast<size_t>(node.value)]
                                             : apply(node.op, buffer[node.left], buffer[node.right]));
  }
  return buffer.back();
}

inline std::vector<Expr> make_symbols(Context& context) {
  std::vector<Expr> symbols;
  for (const char* name : symbol_names) symbols.push_back(context.symbol(name));
  return symbols;
}

inline Expr build(Context& context, const RawTree& tree) {
  std::vector<Expr> buffer;
  return build(context, make_symbols(context), tree, buffer);
}

// The definition of each operation; nullopt for division by zero or beyond 64 bits.
inline std::optional<int64_t> apply(Op op, int64_t a, int64_t b) {
  auto floor_of = [](__int128 x, __int128 y) { return x / y - (x % y != 0 && (x < 0) != (y < 0)); };
  __int128 x = a;
  __int128 y = b;
  if ((op == Op::floordiv || op == Op::ceildiv || op == Op::mod) && b == 0) return std::nullopt;
  __int128 result = op == Op::add        ? x + y
                    : op == Op::sub      ? x - y
                    : op == Op::mul      ? x * y
                    : op == Op::floordiv ? floor_of(x, y)
                    : op == Op::ceildiv  ? -floor_of(-x, y)
                    : op == Op::mod      ? x - y * floor_of(x, y)
                    : op == Op::min      ? std::min(x, y)
                                         : std::max(x, y);
  auto narrow = static_cast<int64_t>(result);
  return narrow == result ? std::optional(narrow) : std::nullopt;
}

inline std::optional<int64_t> evaluate(const RawTree& tree, const Values& values) {
  std::vector<int64_t> results;
  for (const RawNode& node : tree) {
    std::optional<int64_t> value = node.op == Op::constant ? node.value
                                   : node.op == Op::symbol ? values[static_cast<size_t>(node.value)]
                                                           : apply(node.op, results[node.left], results[node.right]);
    if (!value) return std::nullopt;
    results.push_back(*value);
  }
  return results.back();
}

inline std::optional<int64_t> evaluate(Expr e, const Values& values) {
  return evaluate(e, [&](std::string_view name) -> std::optional<int64_t> {
    for (size_t i = 0; i < values.size(); ++i) {
      if (name == symbol_names[i]) return values[i];
    }
    return std::nullopt;
  });
}

// 0 and 1 are where division and products go wrong, so they come often.
inline Values random_values(Random& random) {
  Values values;
  for (int64_t& value : values) {
    int64_t choice = pick(random, 0, 5);
    value = choice < 2 ? choice : pick(random, 0, choice < 5 ? 20 : 1000);
  }
  return values;
}

// A fixed seed, and one that differs from run to run unless SELKIE_SEED sets it. It is printed with each failure.
std::vector<uint64_t> seeds();

}  // namespace selkie::sym::testing
