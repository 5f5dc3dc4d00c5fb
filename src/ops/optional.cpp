// Optionals: a value that may be there or not.
#include "ops/support/blank.h"

namespace selkie::ops {
namespace {

OpDef base() {
  OpDef op = blank_record();
  op.operands = {{"input", any_tensor, optional, Container::any}};
  op.results = {{"output", any_tensor, required, Container::any}};
  op.value = later::rdp;
  op.lower = absent("optionals are handled by the virtual machine");
  return op;
}

OpDef make() {
  OpDef op = base();
  op.name = "optional";
  op.onnx = {"", "Optional", {15}};
  op.doc = "an optional that holds the operand, or an empty one of the given type";
  op.attrs = {optional_attr("type", AttrKind::type)};
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
