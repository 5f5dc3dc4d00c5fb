#include "ops/support/requirements.h"

#include <functional>
#include <numeric>

namespace selkie::ops {

using ir::BackwardContext;
using ir::SymDims;
using sym::Expr;

Expr product_of(const ir::ShapeContext& c, std::span<const Expr> dims) {
  return std::accumulate(dims.begin(), dims.end(), c.constant(1), std::multiplies<>());
}

void require_count(BackwardContext& c, size_t operand, Expr count) {
  if (c.has(operand) && c.dims(operand)) c.equal(product_of(c, *c.dims(operand)), count);
}

void require_broadcast_to(BackwardContext& c, std::span<const Expr> dims, std::span<const Expr> to) {
  if (dims.size() > to.size()) fail("rank {} does not broadcast to rank {}", dims.size(), to.size());
  for (size_t i = 0; i < dims.size(); ++i) {
    Expr whole = to[to.size() - dims.size() + i];
    if (whole && (c.excludes(dims[i], 1) || whole.constant() == 1)) c.equal(dims[i], whole);
  }
}

void require_same_dims(BackwardContext& c, std::span<const size_t> operands) {
  for (size_t known : operands) {
    if (!c.has(known) || !c.dims(known)) continue;
    const SymDims dims = *c.dims(known);
    for (size_t i : operands)
      if (i != known) c.set_dims(i, dims);
    return;
  }
}

void require_divisible(BackwardContext& c, Expr e, int64_t divisor) {
  if (divisor > 1) c.equal(sym::mod(e, divisor), c.constant(0));
}

}  // namespace selkie::ops
