// ScatterElements, ScatterND and the deprecated Scatter: a copy of the data with some elements or slices replaced.
#include "ops/support/scatter.h"

#include "ir/control.h"
#include "ops/support/blank.h"
#include "ops/support/dims.h"
#include "ops/support/nd_index.h"

namespace selkie::ops {
namespace {

void eval_elements(EvalContext& e) {
  const Tensor& data = e.tensor(0);
  const Tensor& indices = e.tensor(1);
  const Tensor& updates = e.tensor(2);
  if (data.rank() != indices.rank() || data.rank() == 0 || indices.dims() != updates.dims())
    fail("indices {} and updates {} must have the same shape, of the rank of data {}", to_string(indices.dims()),
         to_string(updates.dims()), to_string(data.dims()));
  int64_t axis = normalize_axis(e.attr_int("axis"), data.rank());
  for (int64_t i = 0; i < data.rank(); ++i)
    if (i != axis && indices.dim(i) > data.dim(i))
      fail("indices {} are larger than data {} at axis {}", to_string(indices.dims()), to_string(data.dims()), i);
  int64_t extent = data.dim(axis);
  std::vector<int64_t> picks = ints_of(indices);
  std::vector<int64_t> strides = strides_of(data.dims());
  int64_t step = std::exchange(strides[static_cast<size_t>(axis)], 0);
  std::vector<int64_t> targets;
  targets.reserve(picks.size());
  for (Walk<1> walk(indices.dims(), {strides}); !walk.done(); walk.next()) {
    int64_t pick = picks[targets.size()];
    if (pick < -extent || pick >= extent)
      fail("index {} is outside -{}..{} of axis {}", pick, extent, extent - 1, axis);
    targets.push_back(walk.offset(0) + (pick < 0 ? pick + extent : pick) * step);
  }
  e.set(0, scatter(data, targets, updates, e.attr_string("reduction")));
}

void eval_nd(EvalContext& e) {
  const Tensor& data = e.tensor(0);
  const Tensor& indices = e.tensor(1);
  const Tensor& updates = e.tensor(2);
  NdIndex index = nd_index(data, indices, 0);
  Dims expected(indices.dims().begin(), indices.dims().end() - 1);
  expected.insert(expected.end(), data.dims().begin() + indices.dims().back(), data.dims().end());
  if (updates.dims() != expected)
    fail("updates have shape {}, but must have {}", to_string(updates.dims()), to_string(expected));
  std::vector<int64_t> targets;
  targets.reserve(static_cast<size_t>(updates.count()));
  for (int64_t offset : index.offsets)
    for (int64_t i = 0; i < index.slice; ++i) targets.push_back(offset + i);
  e.set(0, scatter(data, targets, updates, e.attr_string("reduction")));
}

// Indices and updates have the same dims, and outside the axis at most those of the data.
void backward_elements(BackwardContext& c) {
  backward_same(c);
  constexpr size_t replaced[] = {1, 2};
  require_same_dims(c, replaced);
  for (auto [from, to] : {std::pair(0, 1), std::pair(1, 0)})
    if (c.dims(from)) c.set_rank(to, c.rank(from));
  require_same_dims(c, replaced);
  if (!c.dims(0)) return;
  const SymDims data = *c.dims(0);
  const SymDims indices = *c.dims(1);
  auto axis = static_cast<size_t>(normalize_axis(c.attr_int("axis"), static_cast<int64_t>(data.size())));
  for (size_t i = 0; i < data.size(); ++i)
    if (i != axis) c.less_equal(indices[i], data[i]);
}

// Updates have the leading dims of the indices, then those of the data that an index tuple does not address.
void backward_nd(BackwardContext& c) {
  backward_same(c);
  if (!c.dims(1) || c.rank(1) == 0) return;
  const SymDims indices = *c.dims(1);
  size_t outer = indices.size() - 1;
  std::optional<int64_t> width = indices.back().constant();
  if (!width && c.dims(0) && c.dims(2)) {
    width = static_cast<int64_t>(c.rank(0) + outer) - static_cast<int64_t>(c.rank(2));
    c.equal(indices.back(), c.constant(*width));
  }
  if (!width || *width < 0 || *width > ir::max_known_elements) return;
  auto addressed = static_cast<size_t>(*width);
  if (!c.dims(0) && c.dims(2) && c.rank(2) >= outer) c.set_rank(0, c.rank(2) - outer + addressed);
  if (!c.dims(0) || addressed > c.rank(0)) return;
  SymDims updates(indices.begin(), indices.end() - 1);
  updates.insert(updates.end(), c.dims(0)->begin() + *width, c.dims(0)->end());
  c.set_dims(2, updates);
}

void value(ValueContext& c) {
  if (c.attr_string("reduction") == "none") value_by_moving(c);
}

OpDef base() {
  OpDef op = blank_record(Mapping::shuffle);
  op.lower = absent("elements are written where indices say, which kernels do not do");
  op.operands = {{"data", any_tensor}, {"indices", index_tensor}, {"updates", any_tensor}};
  op.results = {{"output", any_tensor}};
  op.attrs = {int_attr("axis", 0), string_attr("reduction", "none")};
  op.forward = same_as_first;
  op.backward = backward_elements;
  op.value = value;
  op.eval = eval_elements;
  return op;
}

OpDef elements() {
  OpDef op = base();
  op.name = "scatter_elements";
  op.onnx = {"", "ScatterElements", {11, 13, 16, 18}};
  op.doc = "a copy of the data with one element replaced per index, along one axis";
  op.samples = {{"$(i32[3]{1, 2, 3}, i64[2]{0, -1}, i32[2]{9, 8})", "i32[3]{9, 2, 8}"},
                {"$(i32[2]{1, 2}, i64[2]{0, 0}, i32[2]{3, 4}) {reduction = \"add\"}", "i32[2]{8, 2}"},
                {"$(f32[2, 0], i64[1, 0], f32[1, 0])", "f32[2, 0]"},
                {"$(i64[1, 3]{1, 2, 3}, i64[1, 1]{2}, i64[1, 1]{9}) {axis = 1}", "i64[1, 3]{1, 2, 9}"},
                {"$(f32[2], i64[1]{2}, f32[1])", "error: index 2 is outside"},
                {"$(f32[2], i64[1]{0}, f32[1]) {reduction = \"avg\"}", "error: must be none, add"},
                {"$(f32[2], i64[1]{0}, f32[2])", "error: must have the same shape"}};
  return op;
}

OpDef nd() {
  OpDef op = base();
  op.name = "scatter_nd";
  op.onnx = {"", "ScatterND", {11, 13, 16, 18}};
  op.doc = "a copy of the data with slices replaced that index tuples address";
  op.operands[1].type = i64_tensor;
  op.attrs = {string_attr("reduction", "none")};
  op.backward = backward_nd;
  op.eval = eval_nd;
  op.control = [](const ir::Node&) { return ir::ControlForm{.kind = ir::ControlForm::Kind::replace}; };
  op.samples = {{"$(i32[2, 2]{1, 2, 3, 4}, i64[1, 1]{1}, i32[1, 2]{8, 9})", "i32[2, 2]{1, 2, 8, 9}"},
                {"$(i32[2]{5, 6}, i64[2, 1]{1, 1}, i32[2]{2, 3}) {reduction = \"mul\"}", "i32[2]{5, 36}"},
                {"$(f32[2, 3], i64[0, 1], f32[0, 3])", "f32[2, 3]"},
                {"$(i64[3]{4, 5, 6}, i64[1, 1]{-1}, i64[1]{9})", "i64[3]{4, 5, 9}"},
                {"$(f32[2, 3], i64[1, 0], f32[1, 2, 3])", "f32[2, 3]"},
                {"$(f32[2], i64[1, 1]{2}, f32[1])", "error: index 2 is outside"},
                {"$(f32[2], i64[1, 1]{0}, f32[2])", "error: updates have shape"}};
  return op;
}

OpDef deprecated() {
  OpDef op = elements();
  op.name = "scatter";
  op.onnx = {"", "Scatter", {9, 11}};
  op.doc = "the older name of scatter_elements, which it becomes at import";
  op.upgrades = {{11, [](UpgradeContext& c) { c.become("scatter_elements"); }}};
  return op;
}

}  // namespace

std::vector<OpDef> scatter_family() { return {elements(), nd(), deprecated()}; }

}  // namespace selkie::ops
