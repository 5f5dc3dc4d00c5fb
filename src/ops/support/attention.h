// Attention's core: scores, softmax over keys and the weighted sum of values, in double, for any operator of that kind.
#pragma once

#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "base/tensor.h"

namespace selkie::ops {

// Values of shape [batch, heads, length, size].
struct Heads {
  int64_t batch = 0;
  int64_t heads = 0;
  int64_t length = 0;
  int64_t size = 0;
  std::vector<double> values;

  Heads() = default;
  Heads(int64_t batch_, int64_t heads_, int64_t length_, int64_t size_);
  double* matrix(int64_t b, int64_t h) { return values.data() + (b * heads + h) * length * size; }
  const double* matrix(int64_t b, int64_t h) const { return values.data() + (b * heads + h) * length * size; }
  Dims dims() const { return {batch, heads, length, size}; }
};

// From rank 4 as it is, or from [batch, length, heads · size]. `what` names the operand in errors.
Heads split_heads(const Tensor& x, int64_t heads, std::string_view what);
// From [batch, heads, length, size].
Heads heads_of(const Tensor& x, std::string_view what);
Tensor to_tensor(const Heads& x, DType dtype);
// As [batch, length, heads · size].
Tensor merge_heads(const Heads& x, DType dtype);
// `past` followed by `now` along the length.
Heads append(const Heads& past, const Heads& now);

// Fails unless keys and values fit the query: batch, head size, lengths, and a whole number of query heads per key
// head.
void check_attention(const Heads& q, const Heads& k, const Heads& v);
// scale · q · kᵀ of shape [batch, q heads, q length, k length]; query head h uses key head h / (q heads / k heads).
Heads attention_scores(const Heads& q, const Heads& k, double scale);
// x = cap · tanh(x / cap), where cap > 0.
void soften_scores(Heads& scores, double cap);
// Calls f(b, h, i, row) for each row of scores.
void for_each_row(Heads& scores, const std::function<void(int64_t, int64_t, int64_t, std::span<double>)>& f);
// Masks key j for query i where j > past + i.
void mask_causal(Heads& scores, int64_t past);
// Adds a mask that broadcasts to the scores; where booleans are false, the score is `refused`. Keys beyond a shorter
// mask are masked.
void add_mask(Heads& scores, const Tensor& mask, double refused = -std::numeric_limits<double>::infinity());
// Softmax of each row. `sinks` has none or one further score per head, which takes its share and is dropped.
void softmax_scores(Heads& scores, std::span<const double> sinks = {});
// probabilities · v of shape [batch, q heads, q length, v size].
Heads attention_output(const Heads& probabilities, const Heads& v);

}  // namespace selkie::ops
