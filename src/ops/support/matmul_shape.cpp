#include "ops/support/matmul_shape.h"

#include "ops/support/shape.h"

namespace selkie::ops {

using ir::SymDims;

std::optional<SymDims> matmul_dims(const ir::ShapeContext& c, size_t a, size_t b) {
  if (!c.dims(a) || !c.dims(b) || c.dims(a)->empty() || c.dims(b)->empty()) return std::nullopt;
  SymDims x = *c.dims(a);
  SymDims y = *c.dims(b);
  bool vector_x = x.size() == 1;
  bool vector_y = y.size() == 1;
  if (vector_x) x.insert(x.begin(), c.constant(1));
  if (vector_y) y.push_back(c.constant(1));
  std::optional<SymDims> dims = broadcast(c, SymDims(x.begin(), x.end() - 2), SymDims(y.begin(), y.end() - 2));
  if (!vector_x) dims->push_back(x[x.size() - 2]);
  if (!vector_y) dims->push_back(y.back());
  return dims;
}

void matmul_backward(ir::BackwardContext& c, size_t a, size_t b) {
  const std::optional<SymDims>& out = c.result_dims(0);
  for (auto [open, known] : {std::pair(a, b), std::pair(b, a)}) {
    if (c.dims(open) || !c.dims(known) || !out) continue;
    // A product with a vector has one axis less; a matrix has no batch axes, so that the other one has them all.
    if (c.rank(known) == 1)
      c.set_rank(open, out->size() + 1);
    else if (c.rank(known) == 2 || c.rank(known) < out->size())
      c.set_rank(open, out->size());
  }
  if (!c.dims(a) || !c.dims(b) || c.dims(a)->empty() || c.dims(b)->empty()) return;
  const SymDims x = *c.dims(a);
  const SymDims y = *c.dims(b);
  c.equal(x.back(), y.size() == 1 ? y[0] : y[y.size() - 2]);
  if (!out || x.size() < 2 || y.size() < 2 || out->size() < 2) return;
  c.equal(x[x.size() - 2], (*out)[out->size() - 2]);
  c.equal(y.back(), out->back());
}

}  // namespace selkie::ops
