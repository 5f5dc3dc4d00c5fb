// Attention as the fused operators of com.microsoft run it: masks of integers, an additive bias and a past.
#pragma once

#include "ir/eval_context.h"
#include "ops/support/attention.h"

namespace selkie::ops {

struct FusedAttention {
  double scale = 0;  // 0: 1 / √(head size)
  bool causal = false;
  int64_t past = 0;              // keys before the first query
  const Tensor* mask = nullptr;  // see `mask_keys`
  double mask_value = -10000;    // added to scores of masked keys
  const Tensor* bias = nullptr;  // added to the scores, broadcasting
};

// What the attributes below and two operands say: a mask and a bias.
std::vector<ir::AttrDef> fused_attention_attrs();
FusedAttention fused_attention(const ir::EvalContext& e, size_t mask, size_t bias);
// Fails if an operand is given that no operator here takes.
void refuse_operand(const ir::EvalContext& e, size_t operand);

// Adds `value` to the scores of masked keys. The mask is [batch] (numbers of keys), [2 · batch] (ends, then begins),
// [3 · batch + 2] (which starts with numbers of keys), [batch, keys], [batch, queries, keys] or [batch, 1, n, n] with
// n ≥ keys, whose rows are those of all positions.
void mask_keys(Heads& scores, const Tensor& mask, double value);

// The output; `scores`, where given, receives the scores before softmax.
Heads run_attention(const FusedAttention& options, const Heads& q, const Heads& k, const Heads& v,
                    Heads* scores = nullptr);

// Adds part [begin, begin + heads · size) of a vector to all tokens.
void add_projection_bias(Heads& x, const Tensor& bias, int64_t begin);
// Root mean square normalisation of each head, scaled by a weight per element.
void normalize_heads(Heads& x, const Tensor& weight, double epsilon);
// Heads [begin, begin + count).
Heads slice_heads(const Heads& x, int64_t begin, int64_t count);

}  // namespace selkie::ops
