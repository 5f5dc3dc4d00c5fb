#include "ops/support/attention.h"

#include <cmath>
#include <limits>

#include "base/convert.h"
#include "ops/support/gemm.h"
#include "ops/support/shape.h"
#include "ops/support/softmax.h"
#include "ops/support/zeros.h"

namespace selkie::ops {
namespace {

constexpr double masked = -std::numeric_limits<double>::infinity();

// [rows, columns] → [columns, rows].
std::vector<double> transposed(const double* x, int64_t rows, int64_t columns) {
  std::vector<double> out(static_cast<size_t>(rows * columns));
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) out[static_cast<size_t>(j * rows + i)] = x[i * columns + j];
  return out;
}

}  // namespace

Heads::Heads(int64_t batch_, int64_t heads_, int64_t length_, int64_t size_)
    : batch(batch_), heads(heads_), length(length_), size(size_) {
  values = zeros<double>(dims());
}

Heads heads_of(const Tensor& x, std::string_view what) {
  if (x.rank() != 4) fail("{} has shape {}, but must be of rank 4", what, to_string(x.dims()));
  Heads out;
  out.batch = x.dim(0);
  out.heads = x.dim(1);
  out.length = x.dim(2);
  out.size = x.dim(3);
  out.values = widen<double>(x);
  return out;
}

Heads split_heads(const Tensor& x, int64_t heads, std::string_view what) {
  if (x.rank() != 3) return heads_of(x, what);
  if (heads <= 0 || x.dim(2) % heads != 0)
    fail("{} of shape {} does not split into {} heads", what, to_string(x.dims()), heads);
  Tensor apart = x.reshaped({x.dim(0), x.dim(1), heads, x.dim(2) / heads});
  return heads_of(transpose(apart, std::vector<int64_t>{0, 2, 1, 3}), what);
}

Tensor to_tensor(const Heads& x, DType dtype) { return narrow<double>(x.values, dtype, x.dims()); }

Tensor merge_heads(const Heads& x, DType dtype) {
  Tensor apart = transpose(to_tensor(x, dtype), std::vector<int64_t>{0, 2, 1, 3});
  return apart.reshaped({x.batch, x.length, x.heads * x.size});
}

Heads append(const Heads& past, const Heads& now) {
  if (past.batch != now.batch || past.heads != now.heads || past.size != now.size)
    fail("the past of shape {} does not continue with {}", to_string(past.dims()), to_string(now.dims()));
  Heads out(now.batch, now.heads, past.length + now.length, now.size);
  for (int64_t b = 0; b < now.batch; ++b)
    for (int64_t h = 0; h < now.heads; ++h) {
      double* to = std::copy_n(past.matrix(b, h), past.length * past.size, out.matrix(b, h));
      std::copy_n(now.matrix(b, h), now.length * now.size, to);
    }
  return out;
}

void check_attention(const Heads& q, const Heads& k, const Heads& v) {
  if (k.batch != q.batch || v.batch != q.batch || k.size != q.size || k.heads != v.heads || k.length != v.length)
    fail("query {}, key {} and value {} do not fit together", to_string(q.dims()), to_string(k.dims()),
         to_string(v.dims()));
  if (k.heads == 0 ? q.heads != 0 : q.heads % k.heads != 0)
    fail("{} query heads are not a multiple of {} key heads", q.heads, k.heads);
}

Heads attention_scores(const Heads& q, const Heads& k, double scale) {
  Heads out(q.batch, q.heads, q.length, k.length);
  int64_t group = k.heads == 0 ? 1 : std::max<int64_t>(q.heads / k.heads, 1);
  for (int64_t b = 0; b < q.batch; ++b)
    for (int64_t h = 0; h < q.heads; ++h) {
      std::vector<double> keys = transposed(k.matrix(b, h / group), k.length, k.size);
      gemm(q.matrix(b, h), keys.data(), out.matrix(b, h), q.length, k.length, q.size);
    }
  for (double& x : out.values) x *= scale;
  return out;
}

void soften_scores(Heads& scores, double cap) {
  if (cap <= 0) return;
  for (double& x : scores.values) x = cap * std::tanh(x / cap);
}

void for_each_row(Heads& scores, const std::function<void(int64_t, int64_t, int64_t, std::span<double>)>& f) {
  for (int64_t b = 0; b < scores.batch; ++b)
    for (int64_t h = 0; h < scores.heads; ++h)
      for (int64_t i = 0; i < scores.length; ++i)
        f(b, h, i, {scores.matrix(b, h) + i * scores.size, static_cast<size_t>(scores.size)});
}

void mask_causal(Heads& scores, int64_t past) {
  for_each_row(scores, [&](int64_t, int64_t, int64_t i, std::span<double> row) {
    for (auto j = static_cast<size_t>(std::min(past + i + 1, scores.size)); j < row.size(); ++j) row[j] = masked;
  });
}

void add_mask(Heads& scores, const Tensor& mask, double refused) {
  if (mask.rank() == 0 || mask.rank() > 4)
    fail("the mask has shape {}, but must be of rank 1 to 4", to_string(mask.dims()));
  std::vector<double> values = widen<double>(mask);
  bool boolean = mask.dtype() == DType::boolean;
  int64_t width = mask.dim(mask.rank() - 1);
  Dims dims = mask.dims();
  dims.back() = scores.size;
  if (width > scores.size || broadcast(dims, scores.dims()) != scores.dims())
    fail("the mask of shape {} does not broadcast to scores of shape {}", to_string(mask.dims()),
         to_string(scores.dims()));
  std::vector<int64_t> strides = broadcast_strides(dims, scores.dims());
  for (size_t i = 0; i < 3; ++i)
    if (scores.size != 0) strides[i] = strides[i] / scores.size * width;
  for_each_row(scores, [&](int64_t b, int64_t h, int64_t i, std::span<double> row) {
    const double* from =
        values.empty() ? nullptr : &values[static_cast<size_t>(b * strides[0] + h * strides[1] + i * strides[2])];
    for (size_t j = 0; j < row.size(); ++j) {
      if (static_cast<int64_t>(j) >= width)
        row[j] = masked;
      else if (!boolean)
        row[j] += from[j];
      else if (from[j] == 0)
        row[j] = refused;
    }
  });
}

void softmax_scores(Heads& scores, std::span<const double> sinks) {
  for_each_row(scores, [&](int64_t, int64_t h, int64_t, std::span<double> row) {
    softmax(row, sinks.empty() ? masked : sinks[static_cast<size_t>(h)]);
  });
}

Heads attention_output(const Heads& probabilities, const Heads& v) {
  Heads out(probabilities.batch, probabilities.heads, probabilities.length, v.size);
  int64_t group = v.heads == 0 ? 1 : std::max<int64_t>(probabilities.heads / v.heads, 1);
  for (int64_t b = 0; b < out.batch; ++b)
    for (int64_t h = 0; h < out.heads; ++h)
      gemm(probabilities.matrix(b, h), v.matrix(b, h / group), out.matrix(b, h), out.length, v.size, v.length);
  return out;
}

}  // namespace selkie::ops
