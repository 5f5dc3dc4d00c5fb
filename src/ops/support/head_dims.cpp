#include "ops/support/head_dims.h"

#include "ops/support/dims.h"

namespace selkie::ops {

using ir::BackwardContext;
using ir::SymDims;
using sym::Expr;

HeadDims heads_dims(const std::optional<SymDims>& x) {
  if (!x || x->size() != 4) return {};
  return {(*x)[0], (*x)[1], (*x)[2], (*x)[3]};
}

HeadDims split_dims(const ir::ShapeContext& c, const std::optional<SymDims>& x, int64_t heads) {
  if (!x || x->size() != 3 || heads < 1) return heads_dims(x);
  return {(*x)[0], c.constant(heads), (*x)[1], sym::floordiv((*x)[2], heads)};
}

SymDims dims_of(const HeadDims& x) { return {x.batch, x.heads, x.length, x.size}; }

SymDims merged_dims(const HeadDims& x) { return {x.batch, x.length, x.heads && x.size ? x.heads * x.size : Expr()}; }

SymDims named(const ir::ForwardContext& c, size_t result, SymDims dims) {
  for (size_t axis = 0; axis < dims.size(); ++axis)
    if (!dims[axis]) dims[axis] = c.unknown(result, axis);
  return dims;
}

Expr either(Expr a, Expr b) { return a ? a : b; }

HeadDims attended(const HeadDims& q, const HeadDims& k, const HeadDims& v) {
  return {either(q.batch, either(k.batch, v.batch)), q.heads, q.length, v.size};
}

Expr appended_length(const ir::ShapeContext& c, size_t past, Expr now) {
  if (!c.has(past)) return now;
  Expr before = heads_dims(c.dims(past)).length;
  return before && now ? before + now : Expr();
}

void require_equal_known(BackwardContext& c, Expr a, Expr b) {
  if (a && b) c.equal(a, b);
}

void require_split(BackwardContext& c, size_t operand, int64_t heads) {
  if (heads >= 1 && c.has(operand) && c.dims(operand) && c.rank(operand) == 3)
    require_divisible(c, c.dims(operand)->at(2), heads);
}

void require_attention(BackwardContext& c, const HeadDims& q, const HeadDims& k, const HeadDims& v) {
  require_equal_known(c, q.batch, k.batch);
  require_equal_known(c, q.batch, v.batch);
  require_equal_known(c, q.size, k.size);
  require_equal_known(c, k.heads, v.heads);
  require_equal_known(c, k.length, v.length);
  if (q.heads && k.heads && k.heads.constant().value_or(0) > 0) require_divisible(c, q.heads, *k.heads.constant());
}

void require_past(BackwardContext& c, size_t operand, const HeadDims& now) {
  c.set_dims(operand, SymDims{now.batch, now.heads, Expr(), now.size});
}

}  // namespace selkie::ops
