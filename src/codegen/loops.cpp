#include "codegen/loops.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "sym/facts.h"
#include "sym/node.h"

namespace selkie::codegen {
namespace {

using kir::Block;
using kir::ExprId;
using kir::Kernel;
using kir::Statement;
using LoopKind = Statement::LoopKind;

// A flat loop is cut into pieces of so many elements, which threads share.
constexpr int64_t piece = 4096;

bool is_loop(const Statement& s) { return s.kind == Statement::Kind::loop; }

class LoopShaper {
 public:
  LoopShaper(Kernel& kernel, sym::Context& symbols) : kernel_(kernel), symbols_(symbols) {}

  void run() {
    find_used(kernel_.body);
    Statement* outer = nest(kernel_.body);
    if (outer == nullptr) return;
    while (merge_some(*outer)) {
    }
    if (outer->loop_kind == LoopKind::vector)
      cut(*outer);
    else
      flatten(*outer);
  }

 private:
  // The loop that a block ends in, which is that over the output; what is before it are reductions.
  static Statement* nest(Block& block) {
    if (block.empty() || !is_loop(block.back())) return nullptr;
    bool reduction = std::ranges::any_of(block.back().body,
                                         [](const Statement& s) { return s.kind == Statement::Kind::accumulate; });
    return reduction ? nullptr : &block.back();
  }

  // Merges one pair of loops of the nest, from the inside out.
  bool merge_some(Statement& loop) {
    if (loop.body.size() != 1 || !is_loop(loop.body[0])) {
      Statement* inner = nest(loop.body);
      return inner != nullptr && merge_some(*inner);
    }
    if (merge_some(loop.body[0])) return true;
    Statement& inner = loop.body[0];
    if (nest(loop.body) == nullptr || !same_in_one_line(loop, inner)) return false;
    replace(loop.variable, symbols_.constant(0));
    Statement merged = std::move(inner);
    merged.extent = merged.extent * loop.extent;
    loop = std::move(merged);
    return true;
  }

  // Whether every index is the same with outer = 0 and inner running over both: i·n + j for all of them.
  bool same_in_one_line(const Statement& outer, const Statement& inner) {
    try {
      for (ExprId id : used_) {
        const kir::Expr& e = kernel_[id];
        if (!e.integer) continue;
        sym::Expr in_line = sym::substitute(e.integer, [&](sym::Expr s) {
          if (s == outer.variable) return symbols_.constant(0);
          if (s == inner.variable) return inner.variable + inner.extent * outer.variable;
          return sym::Expr();
        });
        if (in_line != e.integer) return false;
      }
    } catch (const LimitError&) {
      return false;
    }
    return true;
  }

  void find_used(const Block& block) {
    for (const Statement& s : block) {
      find_used(s.index);
      find_used(s.value);
      find_used(s.body);
    }
  }

  void find_used(ExprId id) {
    if (id == kir::no_expr || !used_.insert(id).second) return;
    for (ExprId operand : kernel_[id].operands) find_used(operand);
  }

  void replace(sym::Expr symbol, sym::Expr by) {
    auto replacement = [&](sym::Expr s) { return s == symbol ? by : sym::Expr(); };
    for (kir::Expr& e : kernel_.expressions)
      if (e.integer) e.integer = sym::substitute(e.integer, replacement);
    auto extents = [&](auto& self, Block& block) -> void {
      for (Statement& s : block) {
        if (s.extent) s.extent = sym::substitute(s.extent, replacement);
        self(self, s.body);
      }
    };
    extents(extents, kernel_.body);
  }

  // One flat loop: range over pieces, vector within.
  void cut(Statement& loop) {
    sym::Expr pieces = symbols_.fresh("piece");
    sym::Expr extent = loop.extent;
    sym::Expr inside = symbols_.fresh("j");
    replace(loop.variable, pieces * piece + inside);
    Statement inner = std::move(loop);
    inner.variable = inside;
    inner.extent = sym::min(extent - pieces * piece, symbols_.constant(piece));
    loop = {.kind = Statement::Kind::loop,
            .loop_kind = LoopKind::range,
            .variable = pieces,
            .extent = sym::ceildiv(extent, piece),
            .body = {}};
    loop.body.push_back(std::move(inner));
  }

  // The outer loops become one range, from whose variable theirs are computed.
  void flatten(Statement& outer) {
    std::vector<std::pair<sym::Expr, sym::Expr>> loops{{outer.variable, outer.extent}};
    Block body = std::move(outer.body);
    while (body.size() == 1 && is_loop(body[0]) && body[0].loop_kind == LoopKind::serial && nest(body) != nullptr) {
      loops.emplace_back(body[0].variable, body[0].extent);
      Block inner = std::move(body[0].body);
      body = std::move(inner);
    }
    outer.loop_kind = LoopKind::range;
    outer.body = std::move(body);
    if (loops.size() == 1) return;
    sym::Expr row = symbols_.fresh("row");
    outer.variable = row;
    outer.extent = symbols_.constant(1);
    sym::Expr rest = row;
    for (size_t i = loops.size(); i-- > 0;) {
      auto [variable, extent] = loops[i];
      outer.extent = outer.extent * extent;
      replace(variable, i == 0 ? rest : sym::mod(rest, extent));
      rest = sym::floordiv(rest, extent);
    }
  }

  Kernel& kernel_;
  sym::Context& symbols_;
  std::set<ExprId> used_;
};

// A loop's variable, and what holds wherever that variable occurs.
struct Scope {
  sym::Expr variable;
  sym::Facts facts;
};

// Outer loops come before inner ones. A loop whose facts contradict each other never runs.
void find_scopes(const Block& block, const sym::Facts& outside, std::vector<Scope>& scopes) {
  for (const Statement& s : block) {
    sym::Facts inside = outside;
    try {
      if (is_loop(s)) inside.add_less_equal(s.variable + 1, s.extent, "a loop");
    } catch (const Error&) {
      continue;
    }
    if (is_loop(s)) scopes.push_back({.variable = s.variable, .facts = inside});
    find_scopes(s.body, inside, scopes);
  }
}

// Where a loop's variable runs over an axis that was cut out of a longer one, its quotient is 0 and its remainder is
// itself: only with those gone are elements seen to lie beside each other. An index may use only what its innermost
// loop tells: what stands beside a reduction is computed even if the reduction is over nothing.
void simplify_indices(Kernel& kernel, sym::Context& symbols) {
  std::vector<Scope> scopes;
  find_scopes(kernel.body, sym::Facts(symbols), scopes);
  for (kir::Expr& e : kernel.expressions) {
    if (!e.integer || e.integer.node()->depth == 0) continue;
    std::vector<sym::Expr> used;
    sym::collect_symbols(e.integer, used);
    auto innermost = std::find_if(scopes.rbegin(), scopes.rend(), [&](const Scope& scope) {
      return std::ranges::find(used, scope.variable) != used.end();
    });
    if (innermost != scopes.rend()) e.integer = innermost->facts.simplify(e.integer);
  }
}

}  // namespace

Kernel shape_loops(Kernel kernel, sym::Context& symbols) {
  simplify_indices(kernel, symbols);
  LoopShaper(kernel, symbols).run();
  kir::set_sizes(kernel);
  return kernel;
}

}  // namespace selkie::codegen
