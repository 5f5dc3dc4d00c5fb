// ReverseSequence: the first elements of each batch entry in reverse order.
#include "ops/support/dims.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

void eval(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  if (x.rank() < 2) fail("the input must have rank 2 or more, but its shape is {}", to_string(x.dims()));
  int64_t batch_axis = normalize_axis(e.attr_int("batch_axis"), x.rank());
  int64_t time_axis = normalize_axis(e.attr_int("time_axis"), x.rank());
  if (batch_axis == time_axis) fail("batch_axis and time_axis are both {}", batch_axis);
  std::vector<int64_t> lengths = ints_of(e.tensor(1));
  int64_t time = x.dim(time_axis);
  if (static_cast<int64_t>(lengths.size()) != x.dim(batch_axis))
    fail("{} lengths are given for a batch of {}", lengths.size(), x.dim(batch_axis));
  for (int64_t length : lengths)
    if (length < 0 || length > time) fail("length {} is outside 0..{}", length, time);
  std::vector<int64_t> strides = strides_of(x.dims());
  Tensor out(x.dtype(), x.dims());
  dispatch_storage(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = out.mutable_data<T>();
    for (Walk<1> walk(x.dims(), {strides}); !walk.done(); walk.next()) {
      int64_t at = walk.index()[static_cast<size_t>(time_axis)];
      int64_t length = lengths[static_cast<size_t>(walk.index()[static_cast<size_t>(batch_axis)])];
      int64_t shift = at < length ? (length - 1 - 2 * at) * strides[static_cast<size_t>(time_axis)] : 0;
      *to++ = x.data<T>()[walk.offset(0) + shift];
    }
  });
  e.set(0, std::move(out));
}

// There is a length for each entry of the batch.
void backward(BackwardContext& c) {
  backward_same(c);
  if (!c.dims(0)) return;
  auto axis = static_cast<size_t>(normalize_axis(c.attr_int("batch_axis"), static_cast<int64_t>(c.rank(0))));
  require_count(c, 1, c.dims(0)->at(axis));
}

}  // namespace

OpDef reverse_sequence_op() {
  return {
      .name = "reverse_sequence",
      .onnx = {"", "ReverseSequence", {10}},
      .doc = "the first `sequence_lens` elements of each batch entry in reverse order",
      .operands = {{"input", any_tensor}, {"sequence_lens", i64_tensor}},
      .results = {{"y", any_tensor}},
      .attrs = {int_attr("batch_axis", 1), int_attr("time_axis", 0)},
      .dynamism = isdos(),
      .mapping = Mapping::shuffle,
      .forward = same_as_first,
      .backward = backward,
      .value = absent("shape arithmetic has no batches"),
      .eval = eval,
      .lower = absent("lengths, which may be as large as the axis, are not checked before a kernel runs"),
      .grad = later::training,
      .samples = {{"$(i32[3, 2]{1, 2, 3, 4, 5, 6}, i64[2]{2, 3})", "i32[3, 2]{3, 6, 1, 4, 5, 2}"},
                  {"$(f32[0, 2], i64[2]{0, 0})", "f32[0, 2]"},
                  {"$(f32[1, 0, 3], i64[1]{0}) {batch_axis = 0, time_axis = 1}", "f32[1, 0, 3]"},
                  {"$(f32[3, 2], i64[2]{4, 0})", "error: length 4 is outside"},
                  {"$(f32[3, 2], i64[1]{1})", "error: 1 lengths"}},
  };
}

}  // namespace selkie::ops
