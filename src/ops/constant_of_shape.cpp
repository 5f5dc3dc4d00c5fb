// ConstantOfShape: one element repeated over a shape given at run time.
#include "ops/support/lower.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

void eval(EvalContext& e) {
  std::vector<int64_t> dims = ints_of(e.tensor(0));
  Tensor zero(DType::f32, {1});
  const Tensor& value = e.has_attr("value") ? e.attr<Tensor>("value") : zero;
  if (value.count() != 1) fail("the value must have one element, but its shape is {}", to_string(value.dims()));
  e.set(0, filled(value, std::move(dims)));
}

std::vector<Type> forward(const ForwardContext& c) {
  const ir::Attribute* value = c.find_attr("value");
  DType dtype = value ? std::get<Tensor>(*value).dtype() : DType::f32;
  std::optional<ir::SymElements> dims = c.elements(0);
  return {Type::tensor(dtype, dims)};
}

void value(ValueContext& c) {
  std::optional<Dims> dims = c.small_dims(0);
  if (!dims) return;
  const ir::Attribute* given = c.find_attr("value");
  std::optional<ir::Contents> one = ir::Contents{.elements = {c.constant(0)}};
  if (given != nullptr) one = ir::contents_of(std::get<Tensor>(*given), c.symbols());
  if (!one || one->elements.size() != 1) return;
  one->elements.resize(static_cast<size_t>(element_count(*dims)), one->elements[0]);
  c.set(0, std::move(*one));
}

void backward(BackwardContext& c) {
  for (sym::Expr e : c.contents(0).value_or(ir::SymElements{})) c.less_equal(c.constant(0), e);
}

void lower(LowerContext& c) {
  const ir::Attribute* given = c.find_attr("value");
  Tensor value = given != nullptr ? std::get<Tensor>(*given) : Tensor(DType::f32, {1});
  if (value.count() != 1) c.refuse("the value must have one element");
  c.define(0, [&c, value](const Index&) {
    kir::Builder& b = c.builder();
    if (is_float(value.dtype())) return b.number(value.dtype(), widen<double>(value)[0]);
    return cast(b.integer(widen<int64_t>(value)[0]), value.dtype());
  });
}

}  // namespace

OpDef constant_of_shape_op() {
  return {
      .name = "constant_of_shape",
      .onnx = {"", "ConstantOfShape", {9, 20, 21, 23, 24, 25}},
      .doc = "one element repeated over a shape",
      .operands = {{"input", i64_tensor}},
      .results = {{"output", any_tensor}},
      .attrs = {optional_attr("value", AttrKind::tensor)},
      .dynamism = isvdos({"input"}),
      .mapping = Mapping::one_to_many,
      .forward = forward,
      .backward = backward,
      .value = value,
      .eval = eval,
      .lower = lower,
      .grad = absent("the result does not depend on real values"),
      .samples = {{"$(i64[2]{2, 2}) {value = i32[1]{7}}", "i32[2, 2]{7, 7, 7, 7}"},
                  {"$(i64[0])", "f32[]{0}"},
                  {"$(i64[2]{3, 0})", "f32[3, 0]"},
                  {"$(i64[1]{-1})", "error: is negative"},
                  {"$(i64[3]{4611686018427387904, 4611686018427387904, 4})", "error: too many elements"}},
  };
}

}  // namespace selkie::ops
