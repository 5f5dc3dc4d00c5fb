// Det: determinants of square matrices.
#include <cmath>

#include "ops/support/record.h"

namespace selkie::ops {
namespace {

// Gaussian elimination with partial pivoting; the matrix is used up.
double determinant(double* m, int64_t n) {
  double result = 1;
  for (int64_t k = 0; k < n; ++k) {
    int64_t pivot = k;
    for (int64_t i = k + 1; i < n; ++i)
      if (std::fabs(m[i * n + k]) > std::fabs(m[pivot * n + k])) pivot = i;
    if (m[pivot * n + k] == 0) return 0;
    if (pivot != k) {
      std::swap_ranges(m + k * n, m + (k + 1) * n, m + pivot * n);
      result = -result;
    }
    result *= m[k * n + k];
    for (int64_t i = k + 1; i < n; ++i) {
      double factor = m[i * n + k] / m[k * n + k];
      for (int64_t j = k; j < n; ++j) m[i * n + j] -= factor * m[k * n + j];
    }
  }
  return result;
}

void eval(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  if (x.rank() < 2 || x.dim(x.rank() - 1) != x.dim(x.rank() - 2))
    fail("matrices must be square, but the shape is {}", to_string(x.dims()));
  int64_t n = x.dim(x.rank() - 1);
  Dims dims(x.dims().begin(), x.dims().end() - 2);
  std::vector<double> values = widen<double>(x);
  std::vector<double> results;
  for (int64_t i = 0; i < element_count(dims); ++i) results.push_back(determinant(values.data() + i * n * n, n));
  e.set(0, narrow<double>(results, x.dtype(), dims));
}

std::vector<Type> forward(const ForwardContext& c) {
  if (!c.dims(0) || c.dims(0)->size() < 2) return {Type::tensor(c.dtype(0))};
  return {Type::tensor(c.dtype(0), SymDims(c.dims(0)->begin(), c.dims(0)->end() - 2))};
}

// The last two dims are those of square matrices.
void backward(BackwardContext& c) {
  if (!c.dims(0) && c.result_dims(0)) c.set_rank(0, c.result_dims(0)->size() + 2);
  if (!c.dims(0) || c.rank(0) < 2) return;
  const SymDims dims = *c.dims(0);
  c.equal(dims[dims.size() - 2], dims.back());
}

}  // namespace

OpDef det_op() {
  return {
      .name = "det",
      .onnx = {"", "Det", {11, 22}},
      .doc = "determinants of the square matrices in the last two dims",
      .operands = {{"x", float_tensor}},
      .results = {{"y", float_tensor}},
      .dynamism = isdos(),
      .mapping = Mapping::many_to_many,
      .forward = forward,
      .backward = backward,
      .value = absent("shape arithmetic has no determinants"),
      .eval = eval,
      .lower = later::cpu,
      .grad = later::training,
      .samples = {{"$(f32[2, 2]{1, 2, 3, 4})", "f32[]{-2}"},
                  {"$(f32[3, 0, 0])", "f32[3]{1, 1, 1}"},
                  {"$(f32[0, 2, 2])", "f32[0]"},
                  {"$(f32[1, 1]{3})", "f32[]{3}"},
                  {"$(f32[2, 3])", "error: must be square"}},
  };
}

}  // namespace selkie::ops
