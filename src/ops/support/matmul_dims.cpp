#include "ops/support/matmul_dims.h"

#include "ops/support/shape.h"

namespace selkie::ops {

using ir::BackwardContext;
using ir::SymDims;

std::optional<SymDims> matmul_dims(const ir::ShapeContext& c, const std::optional<SymDims>& a,
                                   const std::optional<SymDims>& b) {
  if (!a || !b || a->empty() || b->empty()) return std::nullopt;
  SymDims x = *a;
  SymDims y = *b;
  if (a->size() == 1) x.insert(x.begin(), c.constant(1));
  if (b->size() == 1) y.push_back(c.constant(1));
  std::optional<SymDims> dims = broadcast(c, SymDims(x.begin(), x.end() - 2), SymDims(y.begin(), y.end() - 2));
  if (a->size() > 1) dims->push_back(x[x.size() - 2]);
  if (b->size() > 1) dims->push_back(y.back());
  return dims;
}

void require_product(BackwardContext& c, const SymDims& a, const SymDims& b) {
  if (a.empty() || b.empty()) return;
  c.equal(a.back(), b.size() == 1 ? b[0] : b[b.size() - 2]);
  const std::optional<SymDims>& out = c.result_dims(0);
  if (!out || a.size() < 2 || b.size() < 2 || out->size() < 2) return;
  c.equal(a[a.size() - 2], (*out)[out->size() - 2]);
  c.equal(b.back(), out->back());
}

// A vector takes one dim from the other factor. Else batch dims broadcast, so that one factor has as many as the
// product, and both have at least two.
void require_product_rank(BackwardContext& c, size_t a, size_t b) {
  const std::optional<SymDims>& out = c.result_dims(0);
  for (auto [open, known] : {std::pair(a, b), std::pair(b, a)}) {
    if (c.dims(open) || !c.dims(known) || !out) continue;
    if (c.rank(known) == 1)
      c.set_rank(open, out->size() + 1);
    else if (c.rank(known) == 2 || c.rank(known) < out->size())
      c.set_rank(open, out->size());
  }
}

void matmul_backward(BackwardContext& c, size_t a, size_t b) {
  require_product_rank(c, a, b);
  if (c.dims(a) && c.dims(b)) require_product(c, SymDims(*c.dims(a)), SymDims(*c.dims(b)));
}

}  // namespace selkie::ops
