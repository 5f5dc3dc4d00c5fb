#include "runtime/calls.h"

#include <algorithm>
#include <limits>

#include "base/convert.h"
#include "base/error.h"

namespace selkie::runtime {

void bind_elements(const program::Bind& b, const Tensor& tensor, std::span<int64_t> slots) {
  std::vector<int64_t> elements = widen<int64_t>(tensor);
  for (auto [i, slot] : b.elements)
    if (i < elements.size()) slots[slot] = std::max<int64_t>(elements[i], 0);
  // -2^63 has no positive counterpart; no size is large enough to tell the next number from it.
  constexpr int64_t least = -std::numeric_limits<int64_t>::max();
  for (auto [i, slot] : b.negative)
    if (i < elements.size()) slots[slot] = elements[i] < 0 ? -std::max(elements[i], least) : 0;
}

kernels::Attention attention_call(const program::Attention& a, std::span<const int64_t> slots, bool has_boolean_mask,
                                  const Floats& floats) {
  auto strides = [&](const program::Attention::Heads& heads) {
    return kernels::HeadStrides{
        .batch = slots[heads.strides[0]], .head = slots[heads.strides[1]], .row = slots[heads.strides[2]]};
  };
  kernels::Attention call{.batch = slots[a.batch],
                          .heads = slots[a.heads],
                          .key_heads = slots[a.key_heads],
                          .queries = slots[a.queries],
                          .keys = slots[a.keys],
                          .depth = slots[a.depth],
                          .columns = slots[a.columns],
                          .scale = a.scale,
                          .query = floats(a.query.value),
                          .query_strides = strides(a.query),
                          .key = floats(a.key.value),
                          .key_strides = strides(a.key),
                          .value = floats(a.value.value),
                          .value_strides = strides(a.value),
                          .output = floats(a.output.value),
                          .output_strides = strides(a.output),
                          .causal = a.causal};
  if (a.mask != program::no_register) {
    kernels::MaskStrides mask{.batch = slots[a.mask_strides[0]],
                              .head = slots[a.mask_strides[1]],
                              .row = slots[a.mask_strides[2]],
                              .key = slots[a.mask_strides[3]]};
    if (has_boolean_mask) {
      call.allowed = reinterpret_cast<const uint8_t*>(floats(a.mask));
      call.allowed_strides = mask;
      call.refused = a.masked_score;
    } else {
      call.added = floats(a.mask);
      call.added_strides = mask;
    }
  }
  return call;
}

kernels::Recurrent recurrent_call(const program::Recurrent& r, std::span<const int64_t> slots, const Floats& floats) {
  int64_t steps = slots[r.steps];
  int64_t batch = slots[r.batch];
  const auto* lengths =
      r.lengths == program::no_register ? nullptr : reinterpret_cast<const int32_t*>(floats(r.lengths));
  for (int64_t i = 0; lengths != nullptr && i < batch; ++i)
    if (lengths[i] < 0 || lengths[i] > steps)
      fail("there are {} steps, but a sequence has length {}, in {}", steps, lengths[i], r.node);
  std::vector<std::string_view> activations(r.activations.begin(), r.activations.end());
  std::string_view why_not;
  auto functions = kernels::serves({.kind = static_cast<kernels::RecurrentKind>(r.cell),
                                    .directions = static_cast<int>(r.directions),
                                    .activations = activations},
                                   &why_not);
  if (!functions) fail("{} cannot be run: {}", r.node, why_not);
  int64_t state = r.batch_first ? r.hidden : batch * r.hidden;
  int64_t between = r.batch_first ? r.directions * r.hidden : r.hidden;
  return {.shape = {.kind = static_cast<kernels::RecurrentKind>(r.cell),
                    .steps = steps,
                    .batch = batch,
                    .input = r.input,
                    .hidden = r.hidden,
                    .directions = r.directions,
                    .linear_before_reset = r.linear_before_reset},
          .functions = *functions,
          .reversed = {r.reversed, true},
          .packed = floats(r.weights),
          .peepholes = r.peepholes,
          .x = floats(r.x),
          .batch_first = r.batch_first,
          .lengths = lengths,
          .initial_h = floats(r.initial_h),
          .initial_c = floats(r.initial_c),
          .y = floats(r.y),
          .y_step_stride = r.directions * r.hidden * (r.batch_first ? 1 : batch),
          .y_strides = {.direction = state, .batch = r.batch_first ? steps * r.directions * r.hidden : r.hidden},
          .y_h = floats(r.y_h),
          .y_c = floats(r.y_c),
          .state_strides = {.direction = state, .batch = between}};
}

}  // namespace selkie::runtime
