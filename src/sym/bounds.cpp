// Bounds of an expression from bounds of its symbols, by the monotonicity of its parts.
#include "sym/node.h"
#include "sym/range.h"

namespace selkie::sym {
namespace {

class Bounder {
 public:
  Bounder(Context& context, const SymbolBounds& bounds) : context_(context), bounds_(bounds) {}

  std::optional<Expr> bound(const Node* node, bool upper) {
    switch (node->kind) {
      case Kind::constant:
        return Expr(node);
      case Kind::symbol: {
        std::optional<Expr> found = (upper ? bounds_.most : bounds_.least)(Expr(node));
        return found && !*found ? Expr(node) : found;
      }
      case Kind::sum:
        return sum(node, upper);
      case Kind::product:
        return product(node, upper);
      case Kind::floordiv:
        return quotient(node, upper);
      case Kind::mod:
        return rest(node, upper);
      case Kind::min:
      case Kind::max:
        return lattice(node, upper);
    }
    return std::nullopt;
  }

 private:
  std::optional<Expr> sum(const Node* node, bool upper) {
    Expr total = context_.constant(node->value);
    for (const Term& term : node->terms()) {
      std::optional<Expr> part = bound(term.monomial, term.coefficient > 0 ? upper : !upper);
      if (!part) return std::nullopt;
      total = total + *part * term.coefficient;
    }
    return total;
  }

  // Naturals multiply monotonically.
  std::optional<Expr> product(const Node* node, bool upper) {
    Expr total = context_.constant(1);
    for (const Factor& factor : node->factors()) {
      std::optional<Expr> part = is_natural(factor.atom->range()) ? bound(factor.atom, upper) : std::nullopt;
      if (!part || !is_natural(part->range())) return std::nullopt;
      for (int64_t i = 0; i < factor.power; ++i) total = total * *part;
    }
    return total;
  }

  std::optional<Expr> quotient(const Node* node, bool upper) {
    Expr divisor(node->operands()[1]);
    if (!is_positive(divisor.range())) return std::nullopt;
    std::optional<Expr> above = bound(node->operands()[0], upper);
    // A natural dividend falls with its divisor.
    std::optional<Expr> below = is_natural(node->operands()[0]->range()) || divisor.is_constant()
                                    ? bound(divisor.node(), !upper)
                                    : std::nullopt;
    if (!above || !below || !is_positive(below->range())) return std::nullopt;
    return floordiv(*above, *below);
  }

  std::optional<Expr> rest(const Node* node, bool upper) {
    const Node* divisor = node->operands()[1];
    if (!is_positive(divisor->range())) return std::nullopt;
    if (!upper) return context_.constant(0);
    std::optional<Expr> most = bound(divisor, true);
    return most ? std::optional(*most - 1) : std::nullopt;
  }

  // For an upper bound of min one operand is enough.
  std::optional<Expr> lattice(const Node* node, bool upper) {
    bool any_serves = (node->kind == Kind::min) == upper;
    std::optional<Expr> total;
    for (const Node* operand : node->operands()) {
      std::optional<Expr> part = bound(operand, upper);
      if (!part && any_serves) continue;
      if (!part) return std::nullopt;
      total = !total ? *part : node->kind == Kind::min ? min(*total, *part) : max(*total, *part);
    }
    return total;
  }

  Context& context_;
  const SymbolBounds& bounds_;
};

}  // namespace

std::optional<Expr> upper_bound(Expr e, const SymbolBounds& bounds) {
  return Bounder(e.context(), bounds).bound(e.node(), true);
}

std::optional<Expr> lower_bound(Expr e, const SymbolBounds& bounds) {
  return Bounder(e.context(), bounds).bound(e.node(), false);
}

}  // namespace selkie::sym
