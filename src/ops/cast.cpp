// Cast and CastLike: the same values in another dtype.
#include "ops/support/cast.h"

#include "ops/support/lower.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

CastRules rules(const EvalContext& e) {
  const std::string& mode = e.attr_string("round_mode");
  if (mode != "up" && mode != "down" && mode != "nearest")
    fail("round_mode is '{}', but must be up, down or nearest", mode);
  return {.overflow = e.attr_int("saturate") != 0 ? Overflow::saturate : Overflow::special,
          .rounding = mode == "up"     ? Rounding::up
                      : mode == "down" ? Rounding::down
                                       : Rounding::nearest_even};
}

std::vector<Type> forward_cast(const ForwardContext& c) {
  std::optional<DType> dtype = dtype_from_onnx(c.attr_int("to"));
  return {dtype ? Type::tensor(*dtype, c.dims(0)) : Type{}};
}

// Between integers an element keeps its value where it fits; floats are quotients, cut towards zero.
void value(ValueContext& c) {
  const ir::Contents* x = c.partial(0);
  if (x == nullptr) return;
  DType from = c.dtype(0);
  DType to = c.result(0).dtype;
  ir::Contents out;
  if (is_float(to)) {
    if (x->rounded) return;
    out.denominator = x->denominator;
  }
  for (sym::Expr e : x->elements) {
    sym::Expr& element = out.elements.emplace_back();
    if (!e) continue;
    if (to == DType::boolean && from != DType::boolean) {
      element = sym::min(sym::max(e, -e), 1);
    } else if (is_float(from) && !is_float(to)) {
      if (!is_natural(c, e)) continue;
      element = sym::floordiv(e, x->denominator);
    } else {
      element = e;
    }
    if (!c.exact(element, to)) element = {};
  }
  c.set(0, std::move(out));
}

// Between numbers. Smaller floats round and saturate by rules of their own, and text has no kernels.
void lower(LowerContext& c) {
  c.define(0, [&c](const Index& at) {
    kir::Value x = c.operand(0, at);
    return is_float(c.dtype(0)) ? from_real(x, c.result_dtype()) : cast(x, c.result_dtype());
  });
}

// Opset 1 spelled the dtype as a string: "FLOAT".
void dtype_as_number(UpgradeContext& c) {
  static constexpr std::string_view names[] = {"FLOAT",  "UINT8",  "INT8",   "UINT16",    "INT16",
                                               "INT32",  "INT64",  "STRING", "BOOL",      "FLOAT16",
                                               "DOUBLE", "UINT32", "UINT64", "COMPLEX64", "COMPLEX128"};
  const ir::Attribute* to = c.node().attrs.find("to");
  const auto* text = to ? std::get_if<std::string>(to) : nullptr;
  if (text == nullptr) return;
  for (size_t i = 0; i < std::size(names); ++i) {
    if (names[i] != *text) continue;
    c.node().attrs.set("to", static_cast<int64_t>(i + 1));
    return;
  }
  fail("'{}' is not an element type", *text);
}

OpDef cast_record() {
  return {
      .name = "cast",
      .onnx = {"", "Cast", {1, 6, 9, 13, 19, 21, 23, 24, 25}},
      .doc = "the same values in another dtype",
      .operands = {{"input", {"T1", dtypes::all}}},
      .results = {{"output", {"T2", dtypes::all}}},
      .attrs = {required_attr("to", AttrKind::integer), int_attr("saturate", 1), string_attr("round_mode", "up")},
      .dynamism = isdos(),
      .mapping = Mapping::one_to_one,
      .forward = forward_cast,
      .backward = backward_same,
      .value = value,
      .eval = [](EvalContext& e) { e.set(0, cast(e.tensor(0), e.attr_dtype("to"), rules(e))); },
      .lower = lower,
      .grad = later::training,
      .upgrades = {{6, dtype_as_number}},
      .samples = {{"$(f32[2]{1.5, -1.5}) {to = 7}", "i64[2]{1, -1}"},
                  {"$(f32[0, 3]) {to = 11}", "f64[0, 3]"},
                  {"$(i32[2]{0, 3}) {to = 9}", "bool[2]{false, true}"},
                  {"$(str[2]{\"1.5\", \"-inf\"}) {to = 1}", "f32[2]{1.5, -inf}"},
                  {"$(f32[1]{1000}) {to = 17}", "f8e4m3fn[1]{448}"},
                  {"$(i32[1]{300}) {to = 2}", "u8[1]{44}"},
                  {"$(f32[2]) {to = 99}", "error: not an element type"},
                  {"$(str[1]{\"x\"}) {to = 1}", "error: not a number"}},
  };
}

OpDef cast_like_record() {
  OpDef op = cast_record();
  op.name = "cast_like";
  op.onnx = {"", "CastLike", {15, 19, 21, 23, 24, 25}};
  op.doc = "the same values in the dtype of another tensor";
  op.operands = {{"input", {"T1", dtypes::all}}, {"target_type", {"T2", dtypes::all}}};
  op.attrs = {int_attr("saturate", 1), string_attr("round_mode", "up")};
  op.forward = [](const ForwardContext& c) { return std::vector<Type>{Type::tensor(c.dtype(1), c.dims(0))}; };
  op.eval = [](EvalContext& e) { e.set(0, cast(e.tensor(0), e.tensor(1).dtype(), rules(e))); };
  op.upgrades = {};
  op.samples = {{"$(f32[2]{1.5, -1.5}, i64[3])", "i64[2]{1, -1}"},
                {"$(f32[0], f64[])", "f64[0]"},
                {"$(f32[2])", "error: at least 2"}};
  return op;
}

}  // namespace

std::vector<OpDef> cast_family() { return {cast_record(), cast_like_record()}; }

}  // namespace selkie::ops
