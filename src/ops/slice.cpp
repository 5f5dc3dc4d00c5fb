// Slice: from start to end in steps, along some axes.
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

struct Cut {
  int64_t first = 0;
  int64_t count = 0;
  int64_t step = 1;
};

// The positions first, first + step, … that lie in the slice, as numpy cuts.
Cut cut(int64_t start, int64_t end, int64_t step, int64_t size) {
  if (step == 0) fail("a step is 0");
  auto absolute = [size](int64_t i) { return i < 0 ? i + size : i; };
  if (step > 0) {
    int64_t first = std::clamp<int64_t>(absolute(start), 0, size);
    int64_t last = std::clamp<int64_t>(absolute(end), 0, size);
    return {first, last <= first ? 0 : 1 + (last - first - 1) / step, step};
  }
  int64_t first = std::clamp<int64_t>(absolute(start), -1, size - 1);
  int64_t last = std::clamp<int64_t>(absolute(end), -1, size - 1);
  uint64_t stride = 0 - static_cast<uint64_t>(step);
  return {first, first <= last ? 0 : 1 + static_cast<int64_t>(static_cast<uint64_t>(first - last - 1) / stride), step};
}

void eval(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  std::vector<int64_t> starts = ints_of(e.tensor(1));
  std::vector<int64_t> ends = ints_of(e.tensor(2));
  std::vector<int64_t> axes;
  if (e.has(3))
    axes = ints_of(e.tensor(3));
  else
    for (size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  std::vector<int64_t> steps = e.has(4) ? ints_of(e.tensor(4)) : std::vector<int64_t>(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    fail("starts, ends, axes and steps have {}, {}, {} and {} entries", starts.size(), ends.size(), axes.size(),
         steps.size());
  normalize_axes(axes, x.rank());
  Dims dims = x.dims();
  std::vector<int64_t> strides = strides_of(x.dims());
  int64_t offset = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    auto axis = static_cast<size_t>(normalize_axis(axes[i], x.rank()));
    Cut c = cut(starts[i], ends[i], steps[i], x.dims()[axis]);
    dims[axis] = c.count;
    offset += c.count > 0 ? c.first * strides[axis] : 0;
    strides[axis] = c.count > 1 ? strides[axis] * c.step : 0;  // a huge step reaches one element only
  }
  e.set(0, strided_copy(x, std::move(dims), strides, offset));
}

// Opset 1 had starts, ends and axes as attributes.
void attributes_to_operands(UpgradeContext& c) {
  attr_to_operand("starts", 1)(c);
  attr_to_operand("ends", 2)(c);
  attr_to_operand("axes", 3)(c);
}

}  // namespace

OpDef slice_op() {
  return {
      .name = "slice",
      .onnx = {"", "Slice", {1, 10, 11, 13}},
      .doc = "the elements from start to end in steps, along some axes",
      .operands = {{"data", any_tensor},
                   {"starts", index_tensor},
                   {"ends", index_tensor},
                   {"axes", index_tensor, optional},
                   {"steps", index_tensor, optional}},
      .results = {{"output", any_tensor}},
      .dynamism = isvdos({"starts", "ends", "axes", "steps"}),
      .mapping = Mapping::reorganize,
      .forward = later::rdp,
      .backward = later::rdp,
      .value = later::rdp,
      .eval = eval,
      .lower = later::cpu,
      .grad = later::training,
      .upgrades = {{10, attributes_to_operands}},
      .samples = {{"$(i32[5]{1, 2, 3, 4, 5}, i64[1]{1}, i64[1]{-1})", "i32[3]{2, 3, 4}"},
                  {"$(i32[5]{1, 2, 3, 4, 5}, i64[1]{-1}, i64[1]{-9223372036854775808}, i64[1]{0}, i64[1]{-2})",
                   "i32[3]{5, 3, 1}"},
                  {"$(f32[2, 3], i64[1]{3}, i64[1]{1}, i64[1]{1})", "f32[2, 0]"},
                  {"$(f32[2, 3], i32[1]{0}, i32[1]{2147483647}, i32[1]{-1}, i32[1]{2})", "f32[2, 2]"},
                  {"$(f32[3], i64[1]{0}, i64[1]{2}, i64[1]{0}, i64[1]{0})", "error: a step is 0"},
                  {"$(f32[3], i64[1]{0}, i64[2]{2, 2})", "error: entries"},
                  {"$(f32[3], i64[1]{0}, i64[1]{2}, i64[1]{1})", "error: axis 1 is outside"}},
  };
}

}  // namespace selkie::ops
