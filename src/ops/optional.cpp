// Optionals: a value that may be there or not.
#include "ops/support/blank.h"
#include "ops/support/containers.h"

namespace selkie::ops {
namespace {

bool left_out(const ir::ShapeContext& c) {
  const std::vector<ir::Value*>& operands = c.node()->operands;
  return operands.empty() || operands[0] == nullptr;
}

std::vector<Type> forward_make(const ForwardContext& c) {
  if (!left_out(c)) return {Type::opt(c.type(0))};
  const ir::Attribute* declared = c.find_attr("type");
  return {Type::opt(declared != nullptr ? without_dims(std::get<Type>(*declared)) : Type{})};
}

std::vector<Type> forward_get(const ForwardContext& c) {
  return {c.type(0).kind == Type::Kind::opt ? item_of(c.type(0)) : c.type(0)};
}

void backward_get(BackwardContext& c) {
  if (c.type(0).is_tensor()) backward_same(c);
}

void value_get(ValueContext& c) {
  if (const ir::Contents* own = c.partial(0)) c.set(0, *own);
}

// Whether there is a value is known of operands that are left out, and of those that are no optionals.
void value_has(ValueContext& c) {
  if (left_out(c))
    c.set(0, ir::SymElements{c.constant(0)});
  else if (c.has(0) && c.type(0).kind != Type::Kind::opt)
    c.set(0, ir::SymElements{c.constant(1)});
}

OpDef base() {
  OpDef op = blank_record();
  op.operands = {{"input", any_tensor, optional, Container::any}};
  op.results = {{"output", any_tensor, required, Container::any}};
  op.backward = absent("what an optional holds is not required, only found");
  op.value = absent("contents of optionals are not followed");
  op.lower = absent("optionals are handled by the virtual machine");
  return op;
}

OpDef make() {
  OpDef op = base();
  op.name = "optional";
  op.onnx = {"", "Optional", {15}};
  op.doc = "an optional that holds the operand, or an empty one of the given type";
  op.attrs = {optional_attr("type", AttrKind::type)};
  op.forward = forward_make;
  op.eval = [](EvalContext& e) { e.set(0, Optional{e.has(0) ? std::make_shared<HostValue>(e.operand(0)) : nullptr}); };
  op.samples = {{"$(f32[2])", "opt(f32[2])"}, {"$() {type = f32[*]}", "opt()"}};
  return op;
}

OpDef get() {
  OpDef op = base();
  op.name = "optional_get_element";
  op.onnx = {"", "OptionalGetElement", {15, 18}};
  op.doc = "what an optional holds; a value that is no optional stands for itself";
  op.operands[0].arity = required;
  op.forward = forward_get;
  op.backward = backward_get;
  op.value = value_get;
  op.eval = [](EvalContext& e) {
    if (!e.operand(0).is_optional())
      e.set(0, e.operand(0));
    else if (e.operand(0).optional().value)
      e.set(0, *e.operand(0).optional().value);
    else
      fail("the optional is empty");
  };
  op.samples = {{"$(opt(f32[2]))", "f32[2]"}, {"$(f32[2])", "f32[2]"}, {"$(opt())", "error: the optional is empty"}};
  return op;
}

OpDef has() {
  OpDef op = base();
  op.name = "optional_has_element";
  op.onnx = {"", "OptionalHasElement", {15, 18}};
  op.doc = "whether an optional holds a value";
  op.results = {{"output", bool_tensor}};
  op.forward = [](const ForwardContext&) { return std::vector<Type>{Type::tensor(DType::boolean, SymDims{})}; };
  op.value = value_has;
  op.eval = [](EvalContext& e) {
    bool empty = !e.has(0) || (e.operand(0).is_optional() && !e.operand(0).optional().value);
    e.set(0, Tensor::scalar_bool(!empty));
  };
  op.samples = {{"$(opt(f32[2]))", "bool[]{true}"},
                {"$(opt())", "bool[]{false}"},
                {"$()", "bool[]{false}"},
                {"$(f32[2])", "bool[]{true}"}};
  return op;
}

}  // namespace

std::vector<OpDef> optional_family() { return {make(), get(), has()}; }

}  // namespace selkie::ops
