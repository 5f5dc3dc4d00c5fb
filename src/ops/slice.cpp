// Slice: from start to end in steps, along some axes.
#include <limits>
#include <numeric>

#include "ops/support/lower.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

constexpr int64_t beyond_steps = std::numeric_limits<int32_t>::max();

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

// The count of `cut`, symbolically. Ends beyond any dim mean the end.
sym::Expr count_of(const ForwardContext& c, sym::Expr start, sym::Expr end, int64_t step, sym::Expr size) {
  constexpr int64_t beyond = std::numeric_limits<int32_t>::max();  // what exporters write for "to the end"
  auto absolute = [&](sym::Expr i) { return choose(c, less_equal(c, c.constant(0), i), i, i + size); };
  auto place = [&](sym::Expr i, sym::Expr low, sym::Expr high) {
    if (auto number = i.constant()) {
      if (*number >= beyond && (*number == std::numeric_limits<int64_t>::max() ||
                                c.services().require_less_equal(size, i, "a slice to the end")))
        return high;
      if (*number <= -beyond && (*number == std::numeric_limits<int64_t>::min() ||
                                 c.services().require_less_equal(size, c.constant(beyond), "a slice from the start")))
        return low;
    }
    sym::Expr at = absolute(i);
    if (!c.proves_less_equal(low, at)) at = sym::max(at, low);
    return c.proves_less_equal(at, high) ? at : sym::min(at, high);
  };
  sym::Expr low = c.constant(step > 0 ? 0 : -1);
  sym::Expr high = step > 0 ? size : size - 1;
  sym::Expr first = place(start, low, high);
  sym::Expr last = place(end, low, high);
  sym::Expr length = step > 0 ? last - first : first - last;
  if (!is_natural(c, length)) length = sym::max(length, 0);
  int64_t stride = step > 0                                      ? step
                   : step == std::numeric_limits<int64_t>::min() ? std::numeric_limits<int64_t>::max()
                                                                 : -step;
  return sym::ceildiv(length, stride);
}

// Every dim at most as large as before: what is known where the axes are not.
SymDims smaller_dims(const ForwardContext& c) {
  SymDims dims;
  for (size_t i = 0; i < c.rank(0); ++i) dims.push_back(c.unknown(0, i, {.least = {}, .most = (*c.dims(0))[i]}));
  return dims;
}

std::vector<Type> forward(const ForwardContext& c) {
  if (!c.dims(0)) return {Type::tensor(c.dtype(0))};
  std::optional<ir::SymElements> starts = c.elements(1);
  std::optional<ir::SymElements> ends = c.elements(2);
  std::optional<std::vector<int64_t>> axes = c.numbers(3);
  std::optional<std::vector<int64_t>> steps = c.numbers(4);
  if (!c.has(3) && starts) {
    axes.emplace(starts->size());
    std::iota(axes->begin(), axes->end(), int64_t{0});
  }
  if (!axes) return {Type::tensor(c.dtype(0), smaller_dims(c))};
  if (!c.has(4)) steps = std::vector<int64_t>(axes->size(), 1);
  SymDims dims = *c.dims(0);
  for (size_t k = 0; k < axes->size(); ++k) {
    auto axis = static_cast<size_t>(normalize_axis((*axes)[k], static_cast<int64_t>(dims.size())));
    bool known = starts && ends && steps && k < starts->size() && k < ends->size() && k < steps->size();
    if (known && (*steps)[k] == 0) fail("a step is 0");
    dims[axis] = known ? count_of(c, (*starts)[k], (*ends)[k], (*steps)[k], dims[axis])
                       : c.unknown(0, axis, {.least = {}, .most = dims[axis]});
  }
  return {Type::tensor(c.dtype(0), dims)};
}

// Dims outside the axes are the result's.
void backward(BackwardContext& c) {
  if (!c.result_dims(0) || c.dims(0)) return;
  std::optional<std::vector<int64_t>> axes = c.numbers(3);
  SymDims dims = *c.result_dims(0);
  if (!axes) dims.assign(dims.size(), {});
  for (int64_t axis : normalize_axes(axes.value_or(std::vector<int64_t>{}), static_cast<int64_t>(dims.size())))
    dims[static_cast<size_t>(axis)] = {};
  c.set_dims(0, dims);
}

// The first position of `cut`, symbolically; null where it is not known whether the start counts from the end.
sym::Expr first_of(const LowerContext& c, sym::Expr start, int64_t step, sym::Expr size) {
  if (!start.constant() && !is_natural(c, start)) return {};
  bool from_end = start.constant().value_or(0) < 0;
  constexpr int64_t beyond = std::numeric_limits<int32_t>::max();
  sym::Expr low = c.constant(step > 0 ? 0 : -1);
  sym::Expr high = step > 0 ? size : size - 1;
  if (start.constant().value_or(0) >= beyond) return high;
  if (start.constant().value_or(0) <= -beyond) return low;
  sym::Expr at = from_end ? start + size : start;
  return c.facts().simplify(sym::min(sym::max(at, low), high));
}

void lower(LowerContext& c) {
  std::optional<ir::SymElements> starts = c.contents(1);
  std::optional<std::vector<int64_t>> axes = c.numbers(3);
  std::optional<std::vector<int64_t>> steps = c.numbers(4);
  if (!starts || (c.has(3) && !axes) || (c.has(4) && !steps)) c.refuse("starts, axes or steps are not known");
  struct Line {
    sym::Expr first;
    int64_t step;
  };
  std::vector<Line> lines(c.rank(0), {.first = c.constant(0), .step = 1});
  for (size_t k = 0; k < starts->size(); ++k) {
    int64_t given = axes ? axes->at(k) : static_cast<int64_t>(k);
    auto axis = static_cast<size_t>(normalize_axis(given, static_cast<int64_t>(c.rank(0))));
    int64_t step = steps ? steps->at(k) : 1;
    if (step <= -beyond_steps || step >= beyond_steps) c.refuse("a step beyond any size");
    lines[axis] = {.first = first_of(c, (*starts)[k], step, (*c.dims(0))[axis]), .step = step};
    if (!lines[axis].first) c.refuse("a start may count from the end");
  }
  c.define(0, [&c, lines](const Index& at) {
    Index from;
    for (size_t i = 0; i < at.size(); ++i)
      from.push_back(c.size(lines[i].first) + at[i] * static_cast<double>(lines[i].step));
    return c.operand(0, from);
  });
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
      .forward = forward,
      .backward = backward,
      .value = value_by_moving,
      .eval = eval,
      .lower = lower,
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
