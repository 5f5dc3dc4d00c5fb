// Pad: elements added (or, with negative pads, removed) at both ends of axes.
#include <algorithm>

#include "ops/support/dims.h"
#include "ops/support/lower.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

enum class Mode : uint8_t { constant, reflect, edge, wrap };

Mode mode_of(const std::string& name) {
  if (name == "constant") return Mode::constant;
  if (name == "reflect") return Mode::reflect;
  if (name == "edge") return Mode::edge;
  if (name == "wrap") return Mode::wrap;
  fail("mode is '{}', but must be constant, reflect, edge or wrap", name);
}

// Where an output position comes from along one axis of `size`; −1: from the constant.
int64_t source(int64_t i, int64_t size, Mode mode) {
  if (i >= 0 && i < size) return i;
  switch (mode) {
    case Mode::constant:
      return -1;
    case Mode::edge:
      return i < 0 ? 0 : size - 1;
    case Mode::wrap:
      return ((i % size) + size) % size;
    case Mode::reflect: {
      if (size == 1) return 0;
      int64_t period = 2 * (size - 1);
      int64_t at = ((i % period) + period) % period;
      return at < size ? at : period - at;
    }
  }
  return -1;
}

// For each axis, the source of every output position.
std::vector<std::vector<int64_t>> sources(const Tensor& x, const std::vector<int64_t>& axes,
                                          const std::vector<int64_t>& pads, Mode mode) {
  std::vector<std::vector<int64_t>> out(static_cast<size_t>(x.rank()));
  std::vector<int64_t> before(out.size(), 0);
  std::vector<int64_t> after(out.size(), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    before[static_cast<size_t>(axes[i])] = pads[i];
    after[static_cast<size_t>(axes[i])] = pads[i + axes.size()];
  }
  for (size_t axis = 0; axis < out.size(); ++axis) {
    int64_t size = x.dims()[axis];
    int64_t total = size + before[axis] + after[axis];
    if (size == 0 && total > 0 && mode != Mode::constant) fail("axis {} is empty and has no elements to repeat", axis);
    for (int64_t i = 0; i < total; ++i) out[axis].push_back(source(i - before[axis], size, mode));
  }
  return out;
}

void eval(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  std::vector<int64_t> axes;
  if (e.has(3)) {
    std::vector<int64_t> given = ints_of(e.tensor(3));
    normalize_axes(given, x.rank());
    for (int64_t axis : given) axes.push_back(normalize_axis(axis, x.rank()));
  } else {
    for (int64_t i = 0; i < x.rank(); ++i) axes.push_back(i);
  }
  std::vector<int64_t> pads = ints_of(e.tensor(1));
  if (pads.size() != 2 * axes.size()) fail("{} pads are given for {} axes", pads.size(), axes.size());
  if (e.has(2) && e.tensor(2).count() != 1)
    fail("the constant must have one element, but its shape is {}", to_string(e.tensor(2).dims()));
  Dims total = x.dims();
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t& dim = total[static_cast<size_t>(axes[i])];
    int64_t size = dim;
    if (__builtin_add_overflow(dim, pads[i], &dim) || __builtin_add_overflow(dim, pads[i + axes.size()], &dim))
      fail("pads are too large");
    if (dim < 0)
      fail("pads {} and {} remove more than the {} elements of axis {}", pads[i], pads[i + axes.size()], size, axes[i]);
  }
  Tensor out(x.dtype(), total);  // refuses sizes that do not fit before any list is made
  if (out.count() == 0) {
    e.set(0, std::move(out));
    return;
  }
  std::vector<std::vector<int64_t>> from = sources(x, axes, pads, mode_of(e.attr_string("mode")));
  std::vector<int64_t> strides = strides_of(x.dims());
  dispatch_storage(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T fill = e.has(2) ? *e.tensor(2).data<T>() : T{};
    T* to = out.mutable_data<T>();
    for (Walk<0> walk(out.dims(), {}); !walk.done(); walk.next()) {
      int64_t offset = 0;
      bool inside = true;
      for (size_t axis = 0; axis < from.size(); ++axis) {
        int64_t at = from[axis][static_cast<size_t>(walk.index()[axis])];
        inside = inside && at >= 0;
        offset += at * strides[axis];
      }
      *to++ = inside ? x.data<T>()[offset] : fill;
    }
  });
  e.set(0, std::move(out));
}

// The axes that pads are given for; nothing where they are not known.
std::optional<std::vector<size_t>> padded_axes(const ir::ShapeContext& c, size_t rank) {
  if (!c.has(3)) return positions_of(nullptr, rank);
  std::optional<std::vector<int64_t>> axes = count_of(c, 3) == 0 ? std::vector<int64_t>{} : c.numbers(3);
  return axes ? std::optional(positions_of(&*axes, rank)) : std::nullopt;
}

// Two pads per axis tell the rank where no axes are named.
std::optional<size_t> rank_from_pads(const ir::ShapeContext& c) {
  std::optional<int64_t> count = c.has(3) ? std::nullopt : count_of(c, 1);
  return count ? std::optional(static_cast<size_t>(*count / 2)) : std::nullopt;
}

void check_count(const ir::SymElements& pads, size_t axes) {
  if (pads.size() != 2 * axes) fail("{} pads are given for {} axes", pads.size(), axes);
}

std::vector<Type> forward(const ForwardContext& c) {
  if (!c.dims(0)) {
    std::optional<size_t> rank = rank_from_pads(c);
    return {rank ? Type::tensor(c.dtype(0), c.unknown_dims(0, *rank)) : Type::tensor(c.dtype(0))};
  }
  std::optional<std::vector<size_t>> axes = padded_axes(c, c.rank(0));
  if (!axes) return {Type::tensor(c.dtype(0), c.unknown_dims(0, c.rank(0)))};
  std::optional<ir::SymElements> pads = c.elements(1);
  if (pads) check_count(*pads, axes->size());
  SymDims dims = *c.dims(0);
  for (size_t i = 0; i < axes->size(); ++i) {
    sym::Expr& dim = dims[(*axes)[i]];
    dim = pads ? dim + (*pads)[i] + (*pads)[i + axes->size()] : c.unknown(0, (*axes)[i]);
  }
  return {Type::tensor(c.dtype(0), dims)};
}

void backward(BackwardContext& c) {
  if (c.result_dims(0))
    c.set_rank(0, c.result_dims(0)->size());
  else if (std::optional<size_t> rank = rank_from_pads(c))
    c.set_rank(0, *rank);
  if (!c.dims(0) || !c.result_dims(0)) return;
  SymDims dims = *c.result_dims(0);
  require_natural(c, dims);
  std::optional<std::vector<size_t>> axes = padded_axes(c, dims.size());
  if (!axes) return;
  std::optional<ir::SymElements> pads = c.contents(1);
  if (pads) check_count(*pads, axes->size());
  // An empty axis has no elements to repeat.
  if (mode_of(c.attr_string("mode")) != Mode::constant) {
    sym::Expr any = sym::min(product(c, dims), 1);
    for (size_t axis : *axes)
      if (const sym::Expr size = c.dims(0)->at(axis); !c.excludes(size, 0)) c.less_equal(any, size);
  }
  for (size_t i = 0; i < axes->size(); ++i) {
    sym::Expr& dim = dims[(*axes)[i]];
    dim = pads ? dim - (*pads)[i] - (*pads)[i + axes->size()] : sym::Expr();
  }
  c.set_dims(0, dims);
}

// Where an element comes from along an axis of `size`, given its place relative to the first one.
kir::Value source(const LowerContext& c, kir::Value i, sym::Expr size, Mode mode, bool reflected_once) {
  kir::Value zero = c.size(c.constant(0));
  kir::Value last = c.size(size - 1);
  auto distance = [&](kir::Value v) { return max(v, zero - v); };
  switch (mode) {
    case Mode::constant:
      return i;
    case Mode::edge:
      return max(min(i, last), zero);
    case Mode::wrap:
      return mod(i, c.size(size));
    case Mode::reflect: {
      if (reflected_once) return last - distance(last - distance(i));
      sym::Expr period = 2 * (size - 1);
      kir::Value at = mod(i, c.size(sym::max(period, 1)));
      return min(at, c.size(period) - at);
    }
  }
  return i;
}

void lower(LowerContext& c) {
  std::optional<std::vector<size_t>> axes = padded_axes(c, c.rank(0));
  std::optional<ir::SymElements> pads = c.contents(1);
  if (!axes || !pads) c.refuse("pads or axes are not known");
  check_count(*pads, axes->size());
  // Each such dim is a sum of several symbols, and a position is the product of all.
  if (std::ranges::count_if(*pads, [](sym::Expr e) { return !e.constant(); }) > 2)
    c.refuse("more than two pads that only the run tells");
  Mode mode = mode_of(c.attr_string("mode"));
  if (c.has(2) && !has_one_element(c, 2)) c.refuse("the constant may have more than one element");
  c.define(0, [&c, mode, axes = *axes, pads = *pads](const Index& at) {
    Index from = at;
    kir::Value inside = c.builder().number(DType::boolean, 1);
    for (size_t i = 0; i < axes.size(); ++i) {
      sym::Expr size = (*c.dims(0))[axes[i]];
      sym::Expr before = pads[i];
      sym::Expr after = pads[i + axes.size()];
      kir::Value& index = from[axes[i]];
      index = index - c.size(before);
      bool no_more_before = c.proves_less_equal(before, c.constant(0));
      bool no_more_after = c.proves_less_equal(after, c.constant(0));
      if (no_more_before && no_more_after) continue;
      bool once = c.proves_less_equal(before + 1, size) && c.proves_less_equal(after + 1, size);
      index = source(c, index, size, mode, once);
      if (mode != Mode::constant) continue;
      if (!no_more_before) inside = inside & (c.size(c.constant(0)) <= index);
      if (!no_more_after) inside = inside & (index < c.size(size));
    }
    if (mode != Mode::constant) return c.operand(0, from);
    DType dtype = c.result_dtype();
    kir::Value fill = c.has(2) ? only_element(c, 2, dtype) : c.builder().number(dtype, 0);
    return select(inside, c.operand_if(inside, 0, from), fill);
  });
}

// Opset 1 and 2 had pads and value as attributes (opset 1 under the name `paddings`).
void attributes_to_operands(UpgradeContext& c) {
  if (const ir::Attribute* old = c.node().attrs.find("paddings")) {
    c.node().attrs.set("pads", *old);
    c.node().attrs.erase("paddings");
  }
  attr_to_operand("pads", 1)(c);
  if (c.node().attrs.find("value") == nullptr) return;
  attr_to_operand("value", 2)(c);
  c.set_operand(2, c.emit("cast_like", {c.node().operands[2], c.node().operands[0]}));
}

}  // namespace

OpDef pad_op() {
  return {
      .name = "pad",
      .onnx = {"", "Pad", {1, 2, 11, 13, 18, 19, 21, 23, 24, 25}},
      .doc =
          "elements added at both ends of axes: a constant, or the tensor's own reflected, repeated at the edge or "
          "wrapped",
      .operands = {{"data", any_tensor},
                   {"pads", i64_tensor},
                   {"constant_value", any_tensor, optional},
                   {"axes", index_tensor, optional}},
      .results = {{"output", any_tensor}},
      .attrs = {string_attr("mode", "constant")},
      .dynamism = isvdos({"pads", "axes"}),
      .mapping = Mapping::reorganize,
      .forward = forward,
      .backward = backward,
      .value = value_by_moving,
      .eval = eval,
      .lower = lower,
      .grad = later::training,
      .upgrades = {{11, attributes_to_operands}},
      .samples = {{"$(i32[3]{1, 2, 3}, i64[2]{1, 2}, i32[]{9})", "i32[6]{9, 1, 2, 3, 9, 9}"},
                  {"$(i32[3]{1, 2, 3}, i64[2]{2, 2}) {mode = \"reflect\"}", "i32[7]{3, 2, 1, 2, 3, 2, 1}"},
                  {"$(i32[3]{1, 2, 3}, i64[2]{1, 1}) {mode = \"wrap\"}", "i32[5]{3, 1, 2, 3, 1}"},
                  {"$(i32[3]{1, 2, 3}, i64[2]{-1, 1}) {mode = \"edge\"}", "i32[3]{2, 3, 3}"},
                  {"$(f32[2, 0], i64[2]{0, 1}, _, i64[1]{1})", "f32[2, 1]"},
                  {"$(i64[2]{5, 6}, i64[2]{-1, 1}, i64[]{9}, i32[1]{-1})", "i64[2]{6, 9}"},
                  {"$(f32[1, 4], i64[4]{0, -4, 0, 0})", "f32[1, 0]"},
                  {"$(f32[], i64[0])", "f32[]"},
                  {"$(f32[3], i64[1]{1})", "error: 1 pads are given for 1 axes"},
                  {"$(f32[3], i64[2]{-2, -2})", "error: remove more than"},
                  {"$(f32[3], i64[2]{0, 0}) {mode = \"mirror\"}", "error: must be constant, reflect"}},
  };
}

}  // namespace selkie::ops
