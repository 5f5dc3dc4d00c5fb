#include "ops/support/fused_attention.h"

#include <algorithm>
#include <cmath>

#include "base/convert.h"

namespace selkie::ops {
namespace {

void mask_by_lengths(Heads& scores, const std::vector<int64_t>& lengths, double value) {
  auto batch = static_cast<size_t>(scores.batch);
  if (lengths.size() != batch && lengths.size() != 2 * batch && lengths.size() != 3 * batch + 2)
    fail("a mask of {} elements does not fit a batch of {}", lengths.size(), batch);
  bool has_begins = lengths.size() == 2 * batch;
  for_each_row(scores, [&](int64_t b, int64_t, int64_t, std::span<double> row) {
    auto at = static_cast<size_t>(b);
    auto keys = static_cast<int64_t>(row.size());
    int64_t end = std::clamp<int64_t>(lengths[at], 0, keys);
    int64_t begin = has_begins ? std::clamp<int64_t>(lengths[batch + at], 0, keys) : 0;
    for (int64_t j = 0; j < keys; ++j)
      if (j < begin || j >= end) row[static_cast<size_t>(j)] += value;
  });
}

}  // namespace

std::vector<ir::AttrDef> fused_attention_attrs() {
  return {ir::float_attr("mask_filter_value", -10000), ir::required_attr("num_heads", ir::AttrKind::integer),
          ir::float_attr("scale", 0), ir::int_attr("unidirectional", 0)};
}

FusedAttention fused_attention(const ir::EvalContext& e, size_t mask, size_t bias) {
  return {.scale = e.attr_float("scale"),
          .causal = e.attr_int("unidirectional") != 0,
          .past = 0,
          .mask = e.has(mask) ? &e.tensor(mask) : nullptr,
          .mask_value = e.attr_float("mask_filter_value"),
          .bias = e.has(bias) ? &e.tensor(bias) : nullptr};
}

void refuse_operand(const ir::EvalContext& e, size_t operand) {
  if (e.has(operand)) fail("operand '{}' is not supported", e.op().operands[operand].name);
}

void mask_keys(Heads& scores, const Tensor& mask, double value) {
  std::vector<int64_t> flags = ints_of(mask);
  if (mask.rank() == 1) return mask_by_lengths(scores, flags, value);
  bool per_key = mask.dims() == Dims{scores.batch, scores.size};
  bool per_query = mask.dims() == Dims{scores.batch, scores.length, scores.size};
  bool square = mask.rank() == 4 && mask.dim(0) == scores.batch && mask.dim(1) == 1 && mask.dim(2) == mask.dim(3) &&
                mask.dim(2) >= scores.size && scores.size >= scores.length;
  if (!per_key && !per_query && !square)
    fail("a mask of shape {} does not fit scores of shape {}", to_string(mask.dims()), to_string(scores.dims()));
  int64_t columns = mask.dim(mask.rank() - 1);
  int64_t rows = per_key ? 1 : per_query ? scores.length : columns;
  int64_t first = square ? scores.size - scores.length : 0;
  for_each_row(scores, [&](int64_t b, int64_t, int64_t i, std::span<double> row) {
    auto at = static_cast<size_t>((b * rows + (per_key ? 0 : first + i)) * columns);
    for (size_t j = 0; j < row.size(); ++j)
      if (flags[at + j] <= 0) row[j] += value;
  });
}

Heads run_attention(const FusedAttention& options, const Heads& q, const Heads& k, const Heads& v, Heads* scores) {
  check_attention(q, k, v);
  double scale = options.scale != 0 ? options.scale : 1 / std::sqrt(static_cast<double>(q.size));
  Heads all = attention_scores(q, k, scale);
  if (options.mask != nullptr) mask_keys(all, *options.mask, options.mask_value);
  if (options.causal) mask_causal(all, options.past);
  if (options.bias != nullptr) add_mask(all, *options.bias);
  if (scores != nullptr) *scores = all;
  softmax_scores(all);
  return attention_output(all, v);
}

void add_projection_bias(Heads& x, const Tensor& bias, int64_t begin) {
  if (bias.rank() != 1 || bias.count() < begin + x.heads * x.size)
    fail("the bias has shape {}, but at least {} elements are needed", to_string(bias.dims()),
         begin + x.heads * x.size);
  std::vector<double> values = widen<double>(bias);
  for_each_row(x, [&](int64_t, int64_t h, int64_t, std::span<double> row) {
    for (size_t i = 0; i < row.size(); ++i) row[i] += values[static_cast<size_t>(begin + h * x.size) + i];
  });
}

void normalize_heads(Heads& x, const Tensor& weight, double epsilon) {
  std::vector<double> w = widen<double>(weight);
  if (static_cast<int64_t>(w.size()) != x.size) fail("{} weights normalise heads of {}", w.size(), x.size);
  for_each_row(x, [&](int64_t, int64_t, int64_t, std::span<double> row) {
    double sum = 0;
    for (double v : row) sum += v * v;
    double factor = 1 / std::sqrt(sum / static_cast<double>(row.size()) + epsilon);
    for (size_t i = 0; i < row.size(); ++i) row[i] *= factor * w[i];
  });
}

Heads slice_heads(const Heads& x, int64_t begin, int64_t count) {
  CHECK(begin >= 0 && count >= 0 && begin + count <= x.heads);
  Heads out(x.batch, count, x.length, x.size);
  for (int64_t b = 0; b < x.batch; ++b) std::copy_n(x.matrix(b, begin), count * x.length * x.size, out.matrix(b, 0));
  return out;
}

}  // namespace selkie::ops
