// Split, SplitToSequence and ConcatFromSequence: a tensor in parts along one axis, and back.
#include "ops/support/blank.h"
#include "ops/support/containers.h"
#include "ops/support/lower.h"

namespace selkie::ops {
namespace {

// Parts of equal size; the last may be smaller.
std::vector<int64_t> equal_parts(int64_t total, int64_t parts) {
  if (parts < 1 || parts > std::max<int64_t>(total, 1) * 2 + 65536)
    fail("{} elements cannot be split into {} parts", total, parts);
  int64_t size = (total + parts - 1) / parts;
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i < parts; ++i) sizes.push_back(std::clamp<int64_t>(total - i * size, 0, size));
  return sizes;
}

void check_sizes(const std::vector<int64_t>& sizes, int64_t total) {
  int64_t sum = 0;
  for (int64_t size : sizes)
    if (size < 0 || __builtin_add_overflow(sum, size, &sum)) fail("part size {} is not valid", size);
  if (sum != total) fail("the parts have {} elements together, but the axis has {}", sum, total);
}

std::vector<Tensor> cut(const Tensor& x, int64_t axis, const std::vector<int64_t>& sizes) {
  std::vector<Tensor> parts;
  int64_t at = 0;
  for (int64_t size : sizes) {
    parts.push_back(slice_axis(x, axis, at, size));
    at += size;
  }
  return parts;
}

void eval_split(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  int64_t axis = normalize_axis(e.attr_int("axis"), x.rank());
  auto count = static_cast<int64_t>(e.result_count());
  std::vector<int64_t> sizes;
  if (e.has(1)) {
    sizes = ints_of(e.tensor(1));
    check_sizes(sizes, x.dim(axis));
  } else {
    if (e.has_attr("num_outputs") && e.attr_int("num_outputs") != count)
      fail("num_outputs is {}, but there are {} results", e.attr_int("num_outputs"), count);
    sizes = equal_parts(x.dim(axis), count);
  }
  if (static_cast<int64_t>(sizes.size()) != count)
    fail("{} parts are given, but there are {} results", sizes.size(), count);
  std::vector<Tensor> parts = cut(x, axis, sizes);
  for (size_t i = 0; i < parts.size(); ++i) e.set(i, parts[i]);
}

void eval_to_sequence(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  int64_t axis = normalize_axis(e.attr_int("axis"), x.rank());
  int64_t total = x.dim(axis);
  bool single = !e.has(1);
  std::vector<int64_t> sizes;
  if (single) {
    sizes.assign(static_cast<size_t>(total), 1);
  } else if (e.tensor(1).rank() == 0) {
    int64_t size = int_of(e.tensor(1));
    if (size < 1) fail("part size {} is not positive", size);
    for (int64_t at = 0; at < total; at += std::min(size, total - at)) sizes.push_back(std::min(size, total - at));
  } else {
    sizes = ints_of(e.tensor(1));
    check_sizes(sizes, total);
  }
  Sequence out;
  for (Tensor& part : cut(x, axis, sizes)) {
    if (single && e.attr_int("keepdims") == 0) part = without_axis(part, axis);
    out.items.emplace_back(std::move(part));
  }
  e.set(0, std::move(out));
}

void eval_from_sequence(EvalContext& e) {
  const auto& items = e.operand(0).sequence();
  if (items.empty()) fail("the sequence is empty");
  bool new_axis = e.attr_int("new_axis") != 0;
  std::vector<Tensor> parts;
  int64_t axis = 0;
  for (const HostValue& item : items) {
    Tensor part = item.tensor();
    axis = normalize_axis(e.attr_int("axis"), part.rank() + new_axis);
    if (part.dtype() != items[0].tensor().dtype())
      fail("the sequence holds {} and {}", name(items[0].tensor().dtype()), name(part.dtype()));
    parts.push_back(new_axis ? with_axis(part, axis) : part);
  }
  e.set(0, concat(parts, axis));
}

// Opset 1 took the sizes as a tensor of the data's type.
void sizes_as_integers(UpgradeContext& c) {
  if (c.node().operands.size() < 2 || c.node().operands[1] == nullptr) return;
  ir::Attributes to;
  to.set("to", static_cast<int64_t>(DType::i64));
  c.set_operand(1, c.emit("cast", {c.node().operands[1]}, std::move(to)));
}

void lower_split(LowerContext& c) {
  auto axis = static_cast<size_t>(normalize_axis(c.attr_int("axis"), static_cast<int64_t>(c.rank(0))));
  sym::Expr begin = c.constant(0);
  for (size_t i = 0; i < c.result_count(); ++i) {
    c.define(i, [&c, axis, begin](const Index& at) {
      Index from = at;
      from[axis] = at[axis] + c.size(begin);
      return c.operand(0, from);
    });
    begin = begin + c.result_dims(i)[axis];
  }
}

std::vector<Type> forward_split(const ForwardContext& c) {
  std::vector<Type> types(c.result_count(), Type::tensor(c.dtype(0)));
  if (!c.dims(0)) return types;
  auto axis = static_cast<size_t>(normalize_axis(c.attr_int("axis"), static_cast<int64_t>(c.rank(0))));
  sym::Expr total = (*c.dims(0))[axis];
  std::optional<ir::SymElements> sizes = c.has(1) ? c.elements(1) : std::nullopt;
  auto parts = static_cast<int64_t>(types.size());
  sym::Expr equal = sym::ceildiv(total, parts);
  for (size_t i = 0; i < types.size(); ++i) {
    SymDims dims = *c.dims(0);
    if (!c.has(1))  // the last parts may be smaller
      dims[axis] = c.proves_equal(equal * parts, total)
                       ? equal
                       : sym::min(sym::max(total - equal * static_cast<int64_t>(i), 0), equal);
    else
      dims[axis] = sizes && i < sizes->size() ? (*sizes)[i] : c.unknown(i, axis, {.least = {}, .most = total});
    types[i].dims = std::move(dims);
  }
  return types;
}

// The sizes are natural and make up the axis; outside it, all parts have the operand's dims.
void backward_split(BackwardContext& c) {
  if (!c.dims(0)) {
    if (!c.result_dims(0)) return;
    SymDims dims = *c.result_dims(0);
    dims[static_cast<size_t>(normalize_axis(c.attr_int("axis"), static_cast<int64_t>(dims.size())))] = {};
    c.set_dims(0, dims);
  }
  auto axis = static_cast<size_t>(normalize_axis(c.attr_int("axis"), static_cast<int64_t>(c.rank(0))));
  std::optional<ir::SymElements> sizes = c.contents(1);
  if (!sizes || sizes->empty()) return;
  sym::Expr sum = c.constant(0);
  for (sym::Expr size : *sizes) {
    c.less_equal(c.constant(0), size);
    sum = sum + size;
  }
  c.equal((*c.dims(0))[axis], sum);
}

// The size along the axis that all parts have; null where they differ, or that is not known.
sym::Expr common_size(const ForwardContext& c, sym::Expr total) {
  if (!c.has(1)) return c.constant(1);
  std::optional<ir::SymElements> sizes = c.contents(1);
  if (!sizes || sizes->empty() || !c.dims(1)) return {};
  sym::Expr first = sizes->front();
  if (c.rank(1) == 0) {
    if (c.proves_less_equal(total, first)) return total;
    std::optional<int64_t> size = first.constant();
    return size && *size > 0 && c.facts().prove_divisible(total, *size) == sym::Truth::yes ? first : sym::Expr();
  }
  for (sym::Expr size : *sizes)
    if (!c.proves_equal(size, first)) return {};
  return first;
}

std::vector<Type> forward_to_sequence(const ForwardContext& c) {
  Type part = Type::tensor(c.dtype(0));
  if (c.dims(0)) {
    SymDims dims = *c.dims(0);
    auto axis = normalize_axis(c.attr_int("axis"), static_cast<int64_t>(dims.size()));
    sym::Expr size = common_size(c, dims[static_cast<size_t>(axis)]);
    if (!c.has(1) && c.attr_int("keepdims") == 0)
      dims.erase(dims.begin() + axis);
    else
      dims[static_cast<size_t>(axis)] = size;
    if (size) part.dims = std::move(dims);
  }
  return {Type::seq(std::move(part))};
}

void backward_to_sequence(BackwardContext& c) {
  if (!c.has(1) || !c.dims(1)) return;
  std::optional<ir::SymElements> sizes = c.contents(1);
  if (c.rank(1) > 0)
    backward_split(c);
  else if (sizes && sizes->size() == 1)
    c.less_equal(c.constant(1), sizes->front());
}

// Outside the axis the result has the dims of the items, if they agree. There is at least one.
std::vector<Type> forward_from_sequence(const ForwardContext& c) {
  Type item = item_of(c.type(0));
  if (!item.is_tensor() || !item.dims) return {item};
  bool new_axis = c.attr_int("new_axis") != 0;
  auto axis = static_cast<size_t>(
      normalize_axis(c.attr_int("axis"), static_cast<int64_t>(item.dims->size()) + (new_axis ? 1 : 0)));
  if (new_axis) item.dims->insert(item.dims->begin() + static_cast<int64_t>(axis), c.constant(1));
  sym::Expr& dim = (*item.dims)[axis];
  dim = c.unknown(0, axis, {.least = dim, .most = {}});
  return {item};
}

OpDef base() {
  OpDef op = blank_record(Mapping::reorganize);
  op.operands = {{"input", any_tensor}, {"split", index_tensor, optional}};
  op.results = {{"outputs", any_tensor, variadic}};
  op.attrs = {int_attr("axis", 0)};
  op.dynamism = isvdos({"split"});
  op.value = absent("sequences have no known contents");
  op.eval = eval_split;
  return op;
}

OpDef split() {
  OpDef op = base();
  op.name = "split";
  op.onnx = {"", "Split", {1, 2, 11, 13, 18}};
  op.doc = "parts along one axis, of given or equal sizes";
  op.operands[1].type = i64_tensor;
  op.forward = forward_split;
  op.backward = backward_split;
  op.value = value_by_moving;
  op.lower = lower_split;
  op.attrs.push_back(optional_attr("num_outputs", AttrKind::integer));
  op.upgrades = {{2, sizes_as_integers}, {13, attr_to_operand("split", 1)}};
  op.samples = {{"$(i32[5]{1, 2, 3, 4, 5}, i64[2]{2, 3})", "i32[2]{1, 2}, i32[3]{3, 4, 5}"},
                {"$(f32[2, 5]) {axis = 1, num_outputs = 2}", "f32[2, 3], f32[2, 2]"},
                {"$(f32[0]) {num_outputs = 2}", "f32[0], f32[0]"},
                {"$(f32[5], i64[2]{2, 2})", "error: the parts have 4 elements"},
                {"$(f32[5]) {axis = 1}", "error: axis 1 is outside"}};
  return op;
}

OpDef to_sequence() {
  OpDef op = base();
  op.name = "split_to_sequence";
  op.onnx = {"", "SplitToSequence", {11, 24}};
  op.doc = "parts along one axis, as a sequence";
  op.results = {{"output_sequence", any_tensor, required, Container::seq}};
  op.attrs.push_back(int_attr("keepdims", 1));
  op.forward = forward_to_sequence;
  op.backward = backward_to_sequence;
  op.eval = eval_to_sequence;
  op.samples = {{"$(i32[3]{1, 2, 3}, i64[]{2})", "seq(i32[2]{1, 2}, i32[1]{3})"},
                {"$(f32[4, 1], i64[]{2})", "seq(f32[2, 1], f32[2, 1])"},
                {"$(f32[1, 4], i64[2]{2, 2}) {axis = 1}", "seq(f32[1, 2], f32[1, 2])"},
                {"$(f32[2], i64[3]{0, 2, 0})", "seq(f32[0], f32[2], f32[0])"},
                {"$(f32[2, 3]) {keepdims = 0}", "seq(f32[3], f32[3])"},
                {"$(f32[0])", "seq()"},
                {"$(f32[3], i64[]{0})", "error: not positive"}};
  return op;
}

OpDef from_sequence() {
  OpDef op = base();
  op.name = "concat_from_sequence";
  op.onnx = {"", "ConcatFromSequence", {11}};
  op.doc = "the items of a sequence one after the other, along one axis or a new one";
  op.operands = {{"input_sequence", any_tensor, required, Container::seq}};
  op.results = {{"concat_result", any_tensor}};
  op.attrs = {required_attr("axis", AttrKind::integer), int_attr("new_axis", 0)};
  op.dynamism = isdos();
  op.forward = forward_from_sequence;
  op.backward = absent("what a sequence holds is not required, only found");
  op.eval = eval_from_sequence;
  op.samples = {{"$(seq(i32[1]{1}, i32[2]{2, 3})) {axis = 0}", "i32[3]{1, 2, 3}"},
                {"$(seq(f32[2], f32[2])) {axis = -1, new_axis = 1}", "f32[2, 2]"},
                {"$(seq()) {axis = 0}", "error: the sequence is empty"},
                {"$(seq(f32[2], f32[2, 2])) {axis = 0}", "error: cannot be concatenated"}};
  return op;
}

}  // namespace

std::vector<OpDef> split_family() { return {split(), to_sequence(), from_sequence()}; }

}  // namespace selkie::ops
