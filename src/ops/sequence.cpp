// Sequences: construction, access, insertion, removal, length.
#include "ir/control.h"
#include "ops/support/blank.h"
#include "ops/support/containers.h"

namespace selkie::ops {
namespace {

// A position counted from the end if negative; `last` is the largest allowed.
size_t position(const Tensor& tensor, size_t size, size_t last) {
  int64_t at = int_of(tensor);
  auto count = static_cast<int64_t>(size);
  if (at < -count || at > static_cast<int64_t>(last)) fail("position {} is outside a sequence of {} items", at, count);
  return static_cast<size_t>(at < 0 ? at + count : at);
}

void check_growth(EvalContext& e, size_t size) {
  if (static_cast<int64_t>(size) > e.services().limits().sequence_items)
    fail("the sequence would have {} items, which is over the limit", size);
}

std::vector<Type> forward_construct(const ForwardContext& c) {
  Type item = c.type(0);
  for (size_t i = 1; i < c.operand_count(); ++i) item = common_type(c, item, c.type(i));
  return {Type::seq(std::move(item))};
}

std::vector<Type> forward_empty(const ForwardContext& c) {
  std::optional<DType> dtype = dtype_from_onnx(c.attr_int("dtype"));
  if (!dtype) fail("attribute 'dtype' is {}, which is not an element type", c.attr_int("dtype"));
  return {Type::seq(Type::tensor(*dtype))};
}

// What the records of this family have in common.
OpDef base() {
  OpDef op = blank_record();
  op.backward = absent("what a sequence holds is not required, only found");
  op.value = absent("contents of sequences are not followed");
  op.lower = absent("sequences are handled by the virtual machine");
  return op;
}

OpDef at() {
  OpDef op = base();
  op.name = "sequence_at";
  op.onnx = {"", "SequenceAt", {11}};
  op.doc = "one item of a sequence";
  op.operands = {{"sequence", any_tensor, required, Container::seq}, {"position", index_tensor}};
  op.results = {{"tensor", any_tensor}};
  op.dynamism = isvdos({"position"});
  op.forward = [](const ForwardContext& c) { return std::vector<Type>{item_of(c.type(0))}; };
  op.eval = [](EvalContext& e) {
    const auto& items = e.operand(0).sequence();
    if (items.empty()) fail("the sequence is empty");
    e.set(0, items[position(e.tensor(1), items.size(), items.size() - 1)]);
  };
  op.control = [](const ir::Node&) { return ir::ControlForm{.kind = ir::ControlForm::Kind::item}; };
  op.samples = {{"$(seq(f32[2], f32[3]), i64[]{-1})", "f32[3]"},
                {"$(seq(f32[2]), i64[]{1})", "error: position 1 is outside"},
                {"$(seq(), i64[]{0})", "error: the sequence is empty"}};
  return op;
}

OpDef construct() {
  OpDef op = base();
  op.name = "sequence_construct";
  op.onnx = {"", "SequenceConstruct", {11}};
  op.doc = "a sequence of the operands";
  op.operands = {{"first", any_tensor}, {"rest", any_tensor, variadic}};
  op.results = {{"sequence", any_tensor, required, Container::seq}};
  op.forward = forward_construct;
  op.eval = [](EvalContext& e) {
    Sequence out;
    for (size_t i = 0; i < e.operand_count(); ++i) out.items.push_back(e.operand(i));
    e.set(0, std::move(out));
  };
  op.samples = {{"$(f32[2], f32[3])", "seq(f32[2], f32[3])"}, {"$(f32[2], i64[3])", "error: must be f32"}};
  return op;
}

OpDef empty() {
  OpDef op = base();
  op.name = "sequence_empty";
  op.onnx = {"", "SequenceEmpty", {11}};
  op.doc = "a sequence without items";
  op.results = {{"sequence", any_tensor, required, Container::seq}};
  op.attrs = {int_attr("dtype", static_cast<int64_t>(DType::f32))};
  op.forward = forward_empty;
  op.backward = absent("there are no operands");
  op.eval = [](EvalContext& e) {
    e.attr_dtype("dtype");
    e.set(0, Sequence{});
  };
  op.samples = {{"$()", "seq()"}, {"$() {dtype = 99}", "error: not an element type"}};
  return op;
}

OpDef erase() {
  OpDef op = base();
  op.name = "sequence_erase";
  op.onnx = {"", "SequenceErase", {11}};
  op.doc = "a sequence without one of its items, by default the last";
  op.operands = {{"sequence", any_tensor, required, Container::seq}, {"position", index_tensor, optional}};
  op.results = {{"output", any_tensor, required, Container::seq}};
  op.forward = same_as_first;
  op.eval = [](EvalContext& e) {
    Sequence out{e.operand(0).sequence()};
    if (out.items.empty()) fail("the sequence is empty");
    size_t last = out.items.size() - 1;
    out.items.erase(out.items.begin() + static_cast<int64_t>(e.has(1) ? position(e.tensor(1), last + 1, last) : last));
    e.set(0, std::move(out));
  };
  op.samples = {{"$(seq(f32[2], f32[3]), i64[]{0})", "seq(f32[3])"},
                {"$(seq(f32[2], f32[3]))", "seq(f32[2])"},
                {"$(seq())", "error: the sequence is empty"}};
  return op;
}

OpDef insert() {
  OpDef op = base();
  op.name = "sequence_insert";
  op.onnx = {"", "SequenceInsert", {11}};
  op.doc = "a sequence with one more item, by default at its end";
  op.operands = {
      {"sequence", any_tensor, required, Container::seq}, {"tensor", any_tensor}, {"position", index_tensor, optional}};
  op.results = {{"output", any_tensor, required, Container::seq}};
  op.forward = [](const ForwardContext& c) {
    return std::vector<Type>{Type::seq(common_type(c, item_of(c.type(0)), c.type(1)))};
  };
  op.eval = [](EvalContext& e) {
    Sequence out{e.operand(0).sequence()};
    size_t size = out.items.size();
    check_growth(e, size + 1);
    if (size > 0 && out.items[0].is_tensor() && out.items[0].tensor().dtype() != e.tensor(1).dtype())
      fail("the tensor is of type {}, but the sequence holds {}", name(e.tensor(1).dtype()),
           name(out.items[0].tensor().dtype()));
    out.items.insert(out.items.begin() + static_cast<int64_t>(e.has(2) ? position(e.tensor(2), size, size) : size),
                     e.operand(1));
    e.set(0, std::move(out));
  };
  op.control = [](const ir::Node&) { return ir::ControlForm{.kind = ir::ControlForm::Kind::insert}; };
  op.samples = {{"$(seq(f32[2]), f32[3], i64[]{0})", "seq(f32[3], f32[2])"},
                {"$(seq(), f32[3])", "seq(f32[3])"},
                {"$(seq(f32[2]), i64[3])", "error: the sequence holds f32"}};
  return op;
}

OpDef length() {
  OpDef op = base();
  op.name = "sequence_length";
  op.onnx = {"", "SequenceLength", {11}};
  op.doc = "the number of items";
  op.operands = {{"sequence", any_tensor, required, Container::seq}};
  op.results = {{"length", i64_tensor}};
  op.forward = [](const ForwardContext&) { return std::vector<Type>{Type::tensor(DType::i64, SymDims{})}; };
  op.eval = [](EvalContext& e) { e.set(0, Tensor::scalar_i64(static_cast<int64_t>(e.operand(0).sequence().size()))); };
  op.grad = absent("the result is an integer");
  op.control = [](const ir::Node&) { return ir::ControlForm{.kind = ir::ControlForm::Kind::length}; };
  op.samples = {
      {"$(seq(f32[2], f32[3]))", "i64[]{2}"}, {"$(seq())", "i64[]{0}"}, {"$(f32[2])", "error: must be a sequence"}};
  return op;
}

}  // namespace

std::vector<OpDef> sequence_family() { return {at(), construct(), empty(), erase(), insert(), length()}; }

}  // namespace selkie::ops
