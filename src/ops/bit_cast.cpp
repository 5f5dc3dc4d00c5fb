// BitCast: the same bits under another dtype of the same size.
#include "ops/support/lower.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

constexpr DTypeSet castable = dtypes::all - dtypes::string;

void eval(EvalContext& e) {
  DType to = e.attr_dtype("to");
  const Tensor& x = e.tensor(0);
  if (to == DType::str || info(to).bits != info(x.dtype()).bits)
    fail("{} cannot be read as {}: elements differ in size", name(x.dtype()), name(to));
  if (is_sub_byte(to)) {
    std::vector<std::byte> packed = pack_sub_byte(x);
    e.set(0, unpack_sub_byte(to, x.dims(), packed.data(), packed.size()));
    return;
  }
  // Any byte but 0 and 1 is no bool.
  if (to == DType::boolean)
    e.set(0, narrow<uint64_t>(widen<uint64_t>(x.bit_cast_to(DType::u8)), to, x.dims()));
  else
    e.set(0, x.bit_cast_to(to));
}

void lower(LowerContext& c) {
  if (info(c.dtype(0)).bits != info(c.result_dtype()).bits) c.refuse("elements differ in size");
  c.define(0, [&c](const Index& at) {
    DType to = c.result_dtype();
    kir::Value x = c.operand(0, at);
    if (x.dtype() == to) return x;
    // A boolean is a byte of its own kind.
    if (x.dtype() == DType::boolean) x = cast(x, DType::u8);
    DType bits = to == DType::boolean ? DType::u8 : to;
    if (x.dtype() != bits) x = c.builder().make(kir::Op::bits, bits, {{x}});
    return cast(x, to);
  });
}

}  // namespace

OpDef bit_cast_op() {
  return {
      .name = "bit_cast",
      .onnx = {"", "BitCast", {26}},
      .doc = "the same bits under another dtype of the same size",
      .operands = {{"input", {"T1", castable}}},
      .results = {{"output", {"T2", castable}}},
      .attrs = {required_attr("to", AttrKind::integer)},
      .dynamism = isdos(),
      .mapping = Mapping::one_to_one,
      .forward =
          [](const ForwardContext& c) {
            std::optional<DType> to = dtype_from_onnx(c.attr_int("to"));
            return std::vector<Type>{to ? Type::tensor(*to, c.dims(0)) : Type{}};
          },
      .backward = backward_same,
      .value = absent("shape arithmetic has no bit patterns"),
      .eval = eval,
      .lower = lower,
      .grad = absent("bits have no derivative"),
      .samples = {{"$(f32[1]{1}) {to = 6}", "i32[1]{1065353216}"},
                  {"$(i8[1]{-1}) {to = 2}", "u8[1]{255}"},
                  {"$(bool[2]) {to = 3}", "i8[2]"},
                  {"$(i64[2, 3]) {to = 11}", "f64[2, 3]"},
                  {"$(i4[2]{-1, 7}) {to = 21}", "u4[2]{15, 7}"},
                  {"$(u4[2]) {to = 22}", "i4[2]"},
                  {"$(u2[2]) {to = 26}", "i2[2]"},
                  {"$(c64[2]) {to = 14}", "c64[2]"},
                  {"$(f16[3]) {to = 16}", "bf16[3]"},
                  {"$(c128[1]) {to = 15}", "c128[1]"},
                  {"$(i2[1]{-1}) {to = 25}", "u2[1]{3}"},
                  {"$(f32[2]) {to = 11}", "error: differ in size"}},
  };
}

}  // namespace selkie::ops
