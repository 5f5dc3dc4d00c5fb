#include "ops/support/dims.h"

#include <algorithm>
#include <numeric>

#include "ops/support/shape.h"

namespace selkie::ops {

using sym::Expr;

ir::SymDims constants(const ir::ShapeContext& c, std::span<const int64_t> numbers) {
  ir::SymDims dims;
  for (int64_t n : numbers) dims.push_back(c.constant(n));
  return dims;
}

Expr product(const ir::ShapeContext& c, std::span<const Expr> dims) {
  return std::accumulate(dims.begin(), dims.end(), c.constant(1), std::multiplies<>());
}

std::optional<int64_t> count_of(const ir::ShapeContext& c, size_t operand) {
  std::optional<Dims> dims = ir::small_dims(c.type(operand));
  return dims ? std::optional(element_count(*dims)) : std::nullopt;
}

std::vector<size_t> positions_of(const std::vector<int64_t>* axes, size_t rank) {
  std::vector<size_t> out(axes == nullptr ? rank : axes->size());
  if (axes == nullptr) {
    std::iota(out.begin(), out.end(), size_t{0});
    return out;
  }
  auto signed_rank = static_cast<int64_t>(rank);
  normalize_axes(*axes, signed_rank);
  std::transform(axes->begin(), axes->end(), out.begin(),
                 [&](int64_t axis) { return static_cast<size_t>(normalize_axis(axis, signed_rank)); });
  return out;
}

void require_natural(ir::BackwardContext& c, std::span<const Expr> elements) {
  for (Expr e : elements) c.less_equal(c.constant(0), e);
}

void require_broadcasts_to(ir::BackwardContext& c, size_t operand, std::span<const Expr> dims) {
  if (!c.dims(operand)) return;
  const ir::SymDims own = *c.dims(operand);
  if (own.size() > dims.size())
    fail("operand {} of rank {} does not broadcast to rank {}", operand, own.size(), dims.size());
  for (size_t i = 0; i < own.size(); ++i)
    if (c.excludes(own[i], 1)) c.equal(own[i], dims[dims.size() - own.size() + i]);
}

void require_same_dims(ir::BackwardContext& c, size_t a, size_t b) {
  if (c.dims(a))
    c.set_dims(b, ir::SymDims(*c.dims(a)));
  else if (c.dims(b))
    c.set_dims(a, ir::SymDims(*c.dims(b)));
}

void require_same_outside(ir::BackwardContext& c, size_t operand, const std::vector<size_t>& axes) {
  if (!c.result_dims(0)) return;
  ir::SymDims dims = *c.result_dims(0);
  for (size_t axis : axes) dims[axis] = {};
  c.set_dims(operand, dims);
}

void require_count(ir::BackwardContext& c, size_t operand, Expr count) {
  if (c.has(operand) && c.dims(operand)) c.equal(product(c, *c.dims(operand)), count);
}

void require_broadcast_to(ir::BackwardContext& c, std::span<const Expr> dims, std::span<const Expr> to) {
  if (dims.size() > to.size()) fail("rank {} does not broadcast to rank {}", dims.size(), to.size());
  for (size_t i = 0; i < dims.size(); ++i) {
    Expr whole = to[to.size() - dims.size() + i];
    if (whole && (c.excludes(dims[i], 1) || whole.constant() == 1)) c.equal(dims[i], whole);
  }
}

void require_same_dims(ir::BackwardContext& c, std::span<const size_t> operands) {
  for (size_t known : operands) {
    if (!c.has(known) || !c.dims(known)) continue;
    const ir::SymDims dims = *c.dims(known);
    for (size_t i : operands)
      if (i != known) c.set_dims(i, dims);
    return;
  }
}

void require_divisible(ir::BackwardContext& c, Expr e, int64_t divisor) {
  if (divisor > 1) c.equal(sym::mod(e, divisor), c.constant(0));
}

}  // namespace selkie::ops
