#include "ops/support/transfer.h"

#include <algorithm>
#include <numeric>

#include "base/convert.h"
#include "ir/eval_context.h"
#include "ir/signature.h"
#include "ops/support/shape.h"

namespace selkie::ops {

using ir::Contents;
using ir::ShapeContext;
using ir::SymDims;
using ir::SymElements;
using ir::ValueContext;
using sym::Expr;

void backward_same(ir::BackwardContext& c) {
  if (c.result_dims(0)) c.set_dims(0, *c.result_dims(0));
}

void backward_broadcast_of(ir::BackwardContext& c, std::span<const size_t> operands) {
  if (!c.result_dims(0)) return;
  const SymDims out = *c.result_dims(0);
  // The rank of the result is that of some operand: if all others have less, the last one has it.
  std::optional<size_t> open;
  bool reached = false;
  size_t unknown = 0;
  for (size_t i : operands) {
    if (!c.has(i)) return;
    if (!c.dims(i)) {
      open = i;
      ++unknown;
    } else if (c.rank(i) == out.size()) {
      reached = true;
    }
  }
  if (unknown == 1 && !reached) c.set_rank(*open, out.size());
  for (size_t axis = 0; axis < out.size(); ++axis) {
    Expr whole = out[out.size() - 1 - axis];
    Expr leader;  // a dim that cannot be 1
    bool all_known = true;
    std::vector<Expr> others;
    for (size_t i : operands) {
      if (!c.dims(i)) {
        all_known = false;
        continue;
      }
      if (axis >= c.rank(i)) continue;
      Expr dim = (*c.dims(i))[c.rank(i) - 1 - axis];
      if (dim.constant() == 1) continue;
      if (c.excludes(dim, 1) && !leader)
        leader = dim;
      else
        others.push_back(dim);
    }
    if (leader) {
      c.equal(whole, leader);
      for (Expr dim : others)
        if (c.excludes(dim, 1)) c.equal(leader, dim);
    } else if (whole.constant() == 1) {
      for (Expr dim : others) c.equal(dim, whole);
    } else if (all_known && others.size() == 1) {
      c.equal(whole, others[0]);
    }
  }
}

void backward_broadcast(ir::BackwardContext& c) {
  std::vector<size_t> all(c.operand_count());
  std::iota(all.begin(), all.end(), size_t{0});
  backward_broadcast_of(c, all);
}

namespace {

// All elements that are moved, with one denominator; element 0 is the number 0, which padding fills in.
struct Pool {
  Contents all;

  // The positions of an operand's elements.
  Tensor add(const Contents* contents, const Dims& dims, Expr zero) {
    if (all.elements.empty()) all.elements.push_back(zero);
    int64_t count = element_count(dims);
    auto first = static_cast<int64_t>(all.elements.size());
    std::vector<int64_t> positions(static_cast<size_t>(count));
    std::iota(positions.begin(), positions.end(), first);
    if (contents == nullptr) {
      all.elements.resize(all.elements.size() + positions.size());
    } else {
      int64_t denominator = std::lcm(all.denominator, contents->denominator);
      for (Expr& e : all.elements)
        if (e) e = e * (denominator / all.denominator);
      for (Expr e : contents->elements) all.elements.push_back(e ? e * (denominator / contents->denominator) : e);
      all.denominator = denominator;
      all.rounded = all.rounded || contents->rounded;
    }
    return narrow<int64_t>(positions, DType::i64, dims);
  }
};

}  // namespace

void value_by_moving(ValueContext& c) {
  std::string_view moved = c.op().results[0].type.name;
  Pool pool;
  std::vector<HostValue> operands;
  for (size_t i = 0; i < c.operand_count(); ++i) {
    if (!c.has(i)) {
      operands.emplace_back();
      continue;
    }
    if (ir::operand_record(c.op().operands, i)->type.name == moved) {
      std::optional<Dims> dims = ir::small_dims(c.type(i));
      if (!dims) return;
      operands.emplace_back(pool.add(c.partial(i), *dims, c.constant(0)));
      continue;
    }
    std::optional<Tensor> number = ir::tensor_of(c.known(i));
    if (!number) return;
    operands.emplace_back(std::move(*number));
  }
  std::vector<HostValue> results;
  try {
    static const ir::Attributes none;
    ir::EvalContext context(c.op(), c.node() != nullptr ? c.node()->attrs : none, operands, c.result_count(),
                            ir::no_services(), c.node());
    c.op().eval(context);
    results = context.take_results();
  } catch (const Error&) {
    return;  // it fails at run time, if it is reached
  }
  for (size_t r = 0; r < results.size(); ++r) {
    if (!results[r].is_tensor() || results[r].tensor().dtype() != DType::i64 || !c.small_dims(r)) continue;
    if (ir::operand_record(c.op().results, r)->type.name != moved) continue;
    if (results[r].tensor().dims() != *c.small_dims(r)) continue;
    Contents contents{.denominator = pool.all.denominator, .rounded = pool.all.rounded};
    for (int64_t position : ints_of(results[r].tensor()))
      contents.elements.push_back(pool.all.elements[static_cast<size_t>(position)]);
    c.set(r, std::move(contents));
  }
}

void value_elementwise_with(ValueContext& c, std::vector<size_t> which, const SymFunction& f) {
  std::optional<Dims> out = c.small_dims(0);
  if (!out) return;
  std::vector<std::vector<int64_t>> strides(which.size());
  std::vector<const Contents*> operands(which.size());
  for (size_t i = 0; i < which.size(); ++i) {
    if (!c.has(which[i]) && i > 0) continue;
    operands[i] = c.partial(which[i]);
    std::optional<Dims> dims = ir::small_dims(c.type(which[i]));
    if (operands[i] == nullptr || !dims || operands[i]->denominator != 1 || operands[i]->rounded) return;
    strides[i] = broadcast_strides(*dims, *out);
  }
  SymElements elements;
  std::vector<Expr> arguments(which.size());
  for (Walk<0> walk(*out, {}); !walk.done(); walk.next()) {
    bool complete = true;
    for (size_t i = 0; i < which.size(); ++i) {
      if (operands[i] == nullptr) continue;
      int64_t offset = 0;
      for (size_t axis = 0; axis < out->size(); ++axis) offset += walk.index()[axis] * strides[i][axis];
      arguments[i] = operands[i]->elements[static_cast<size_t>(offset)];
      complete = complete && arguments[i];
    }
    Expr element = complete ? f(arguments) : Expr();
    if (element && !c.exact(element, c.result(0).dtype)) element = Expr();
    elements.push_back(element);
  }
  c.set(0, std::move(elements));
}

void value_elementwise(ValueContext& c, const SymFunction& f) {
  std::vector<size_t> all(c.operand_count());
  std::iota(all.begin(), all.end(), size_t{0});
  value_elementwise_with(c, std::move(all), f);
}

bool is_natural(const ShapeContext& c, Expr e) {
  sym::Range range = c.facts().range(e);
  return range.lo && *range.lo >= 0;
}

// a ≤ b as 0 or 1: min(1, max(0, b − a + 1)).
Expr less_equal(const ShapeContext& c, Expr a, Expr b) {
  sym::Truth truth = c.facts().prove_less_equal(a, b);
  if (truth != sym::Truth::unknown) return c.constant(truth == sym::Truth::yes ? 1 : 0);
  return sym::min(sym::max(b - a + 1, 0), 1);
}

// a = b as 0 or 1: 1 − min(1, |a − b|). The 0 in the maximum says that it is natural.
Expr equal(const ShapeContext& c, Expr a, Expr b) {
  sym::Truth truth = c.facts().prove_equal(a, b);
  if (truth != sym::Truth::unknown) return c.constant(truth == sym::Truth::yes ? 1 : 0);
  return 1 - sym::min(sym::max(sym::max(a - b, b - a), 0), 1);
}

Expr negation(Expr a) { return 1 - a; }

Expr choose(const ShapeContext& c, Expr condition, Expr a, Expr b) {
  if (auto decided = condition.constant()) return *decided != 0 ? a : b;
  if (c.proves_equal(a, b)) return a;
  return condition * a + (1 - condition) * b;
}

Expr quotient(const ShapeContext& c, Expr a, Expr b) {
  // A divisor of 0 is an error of the node's, so that natural is enough.
  return is_natural(c, a) && is_natural(c, b) && b.constant() != 0 ? sym::floordiv(a, b) : Expr();
}

Expr remainder(const ShapeContext& c, Expr a, Expr b) {
  return is_natural(c, b) && b.constant() != 0 ? sym::mod(a, b) : Expr();
}

namespace {

bool is_power_of_two(int64_t x) { return x > 0 && (x & (x - 1)) == 0; }

// Factors of more than this would make the range in which products are exact too small to be useful.
constexpr int64_t max_float_factor = 16;

struct Quotient {
  Expr numerator;
  int64_t denominator = 1;
  bool rounded = false;
};

void reduce(Quotient& q) {
  if (auto value = q.numerator.constant()) {
    int64_t g = std::gcd(*value, q.denominator);
    if (g > 1) q = {q.numerator.context().constant(*value / g), q.denominator / g, q.rounded};
  } else {
    while (q.denominator % 2 == 0) {
      Expr half = sym::floordiv(q.numerator, 2);
      if (half * 2 != q.numerator) break;
      q = {half, q.denominator / 2, q.rounded};
    }
  }
}

std::optional<Quotient> combine(ValueContext& c, FloatOp op, Quotient a, Quotient b) {
  Quotient out;
  if (op == FloatOp::mul) {
    out = {a.numerator * b.numerator, a.denominator * b.denominator};
    auto small = [](const Quotient& q) {
      return q.numerator.constant() && std::abs(*q.numerator.constant()) <= max_float_factor;
    };
    if (!small(a) && !small(b)) return std::nullopt;
  } else if (op == FloatOp::div) {
    std::optional<int64_t> divisor = b.numerator.constant();
    if (!divisor || *divisor <= 0 || *divisor > (1 << 20)) return std::nullopt;
    out = {a.numerator * b.denominator, a.denominator * *divisor};
  } else {
    int64_t common = std::lcm(a.denominator, b.denominator);
    Expr x = a.numerator * (common / a.denominator);
    Expr y = b.numerator * (common / b.denominator);
    out = {op == FloatOp::add ? x + y : x - y, common};
  }
  reduce(out);
  // A quotient by another number is rounded once, and what is rounded goes no further.
  if (!is_power_of_two(out.denominator)) {
    if (op != FloatOp::div) return std::nullopt;
    out.rounded = true;
  }
  if (out.denominator > (int64_t{1} << 24) || !c.exact(out.numerator, c.result(0).dtype)) return std::nullopt;
  return out;
}

void set_quotients(ValueContext& c, const std::vector<std::optional<Quotient>>& quotients) {
  Contents contents;
  for (const auto& q : quotients)
    if (q) contents.denominator = std::lcm(contents.denominator, q->denominator);
  if (contents.denominator > (int64_t{1} << 30)) return;
  for (const auto& q : quotients) {
    contents.elements.push_back(q ? q->numerator * (contents.denominator / q->denominator) : Expr());
    contents.rounded = contents.rounded || (q && q->rounded);
  }
  c.set(0, std::move(contents));
}

}  // namespace

void value_float(ValueContext& c, FloatOp op) {
  std::optional<Dims> out = c.small_dims(0);
  const Contents* a = c.partial(0);
  const Contents* b = c.partial(1);
  std::optional<Dims> a_dims = ir::small_dims(c.type(0));
  std::optional<Dims> b_dims = ir::small_dims(c.type(1));
  if (!out || a == nullptr || b == nullptr || a->rounded || b->rounded || !a_dims || !b_dims) return;
  std::vector<std::optional<Quotient>> quotients;
  Walk<2> walk(*out, {broadcast_strides(*a_dims, *out), broadcast_strides(*b_dims, *out)});
  for (; !walk.done(); walk.next()) {
    Quotient x{a->elements[static_cast<size_t>(walk.offset(0))], a->denominator};
    Quotient y{b->elements[static_cast<size_t>(walk.offset(1))], b->denominator};
    if (x.numerator) reduce(x);
    if (y.numerator) reduce(y);
    quotients.push_back(x.numerator && y.numerator ? combine(c, op, x, y) : std::nullopt);
  }
  set_quotients(c, quotients);
}

// A quotient n/d of |n| ≤ 2²⁴, rounded to nearest, lies on the same side of every integer as n/d itself: it is at least
// 1/d away from those it does not equal, and the rounding error is below that.
void value_floor(ValueContext& c, bool up) {
  const Contents* x = c.partial(0);
  if (x == nullptr) return;
  SymElements elements;
  for (Expr e : x->elements) {
    if (!e)
      elements.emplace_back();
    else
      elements.push_back(up ? -sym::floordiv(-e, x->denominator) : sym::floordiv(e, x->denominator));
  }
  c.set(0, std::move(elements));
}

}  // namespace selkie::ops
