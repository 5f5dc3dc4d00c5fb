// Binary arithmetic with rules of its own: bit_shift, mod, pow.
#include <cmath>

#include "ops/support/blank.h"
#include "ops/support/elementwise.h"
#include "ops/support/lower.h"

namespace selkie::ops {
namespace {

OpDef base() {
  OpDef op = blank_record(Mapping::one_to_one);
  op.forward = broadcast_all;
  op.backward = backward_broadcast;
  return op;
}

void eval_shift(EvalContext& e) {
  const std::string& direction = e.attr_string("direction");
  if (direction != "LEFT" && direction != "RIGHT") fail("direction is '{}', but must be LEFT or RIGHT", direction);
  bool left = direction == "LEFT";
  e.set(0,
        map_pairs<uint64_t>(e.tensor(0), e.tensor(1), e.tensor(0).dtype(), [left](uint64_t x, uint64_t n) -> uint64_t {
          if (n >= 64) return 0;
          return left ? x << n : x >> n;
        }));
}

// With fmod the result has the sign of the dividend, else that of the divisor.
int64_t modulo(int64_t a, int64_t b, bool fmod) {
  if (b == 0) fail("integer division by zero");
  if (b == -1) return 0;
  int64_t rest = a % b;
  return !fmod && rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

void eval_mod(EvalContext& e) {
  const Tensor& a = e.tensor(0);
  bool fmod = e.attr_int("fmod") != 0;
  if (is_float(a.dtype())) {
    if (!fmod) fail("floats need fmod = 1");
    e.set(0, map_pairs<double>(a, e.tensor(1), a.dtype(), [](double x, double y) { return std::fmod(x, y); }));
  } else if (is_signed_integer(a.dtype())) {
    e.set(0,
          map_pairs<int64_t>(a, e.tensor(1), a.dtype(), [fmod](int64_t x, int64_t y) { return modulo(x, y, fmod); }));
  } else {
    e.set(0, map_pairs<uint64_t>(a, e.tensor(1), a.dtype(), [](uint64_t x, uint64_t y) {
            if (y == 0) fail("integer division by zero");
            return x % y;
          }));
  }
}

// Integer powers by squaring, wrapping; a negative exponent truncates 1/xⁿ.
int64_t power(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  uint64_t result = 1;
  uint64_t square = static_cast<uint64_t>(base);
  for (; exponent > 0; exponent >>= 1, square *= square)
    if (exponent & 1) result *= square;
  return static_cast<int64_t>(result);
}

// Base and exponent may differ in dtype; the result has that of the base.
void eval_pow(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  if (is_float(x.dtype()) || is_float(e.tensor(1).dtype()))
    e.set(0, map_pairs<double>(x, e.tensor(1), x.dtype(), [](double a, double b) { return std::pow(a, b); }));
  else
    e.set(0, map_pairs<int64_t>(x, e.tensor(1), x.dtype(), power));
}

using kir::Value;

void lower_shift(LowerContext& c) {
  auto op = c.attr_string("direction") == "LEFT" ? kir::Op::shift_left : kir::Op::shift_right;
  lower_elementwise(c, [op](const LowerContext&, std::span<const Value> x) { return binary(op, x[0], x[1]); });
}

void lower_mod(LowerContext& c) {
  bool real = is_float(c.dtype(0));
  if (!real && !divides_safely(c, 1)) c.refuse("the divisor may be 0");
  bool like_dividend = real || c.attr_int("fmod") != 0 || is_unsigned_integer(c.dtype(0));
  lower_elementwise(c, [like_dividend](const LowerContext&, std::span<const Value> x) {
    return like_dividend ? binary(kir::Op::mod, x[0], x[1]) : kir::mod(x[0], x[1]);
  });
}

// A small whole exponent that is known before the run is a few products.
void lower_pow(LowerContext& c) {
  if (!is_float(c.dtype(0))) c.refuse("of integers");
  const ir::Contents* exponent = c.rationals(1);
  std::optional<int64_t> whole;
  if (exponent != nullptr && exponent->elements.size() == 1 && exponent->denominator == 1)
    whole = exponent->elements[0].constant();
  constexpr int64_t most_products = 3;
  lower_elementwise(c, [whole](const LowerContext&, std::span<const Value> x) {
    if (!whole || *whole < 1 || *whole > most_products) return binary(kir::Op::pow, x[0], x[1]);
    Value power = x[0];
    for (int64_t i = 1; i < *whole; ++i) power = power * x[0];
    return power;
  });
}

OpDef bit_shift() {
  OpDef op = base();
  TypeVar type{"T", dtypes::unsigned_ints};
  op.name = "bit_shift";
  op.onnx = {"", "BitShift", {11}};
  op.doc = "x shifted by y bits to the left or right";
  op.operands = {{"x", type}, {"y", type}};
  op.results = {{"z", type}};
  op.attrs = {required_attr("direction", AttrKind::text)};
  op.eval = eval_shift;
  op.lower = lower_shift;
  op.grad = absent("the result is an integer");
  op.samples = {{"$(u8[2]{1, 255}, u8[2]{3, 4}) {direction = \"LEFT\"}", "u8[2]{8, 240}"},
                {"$(u64[1]{8}, u64[1]{64}) {direction = \"RIGHT\"}", "u64[1]{0}"},
                {"$(u8[1], u8[1]) {direction = \"UP\"}", "error: must be LEFT or RIGHT"}};
  return op;
}

OpDef mod() {
  OpDef op = base();
  op.name = "mod";
  op.onnx = {"", "Mod", {10, 13}};
  op.doc = "the rest of a division; fmod = 1 gives it the dividend's sign";
  op.operands = {{"a", numeric_tensor}, {"b", numeric_tensor}};
  op.results = {{"c", numeric_tensor}};
  op.attrs = {int_attr("fmod", 0)};
  op.value = [](ValueContext& c) {
    bool fmod = c.attr_int("fmod") != 0;
    value_elementwise(c, [&](std::span<const sym::Expr> x) {
      return is_float(c.dtype(0)) || (fmod && !is_natural(c, x[0])) ? sym::Expr() : remainder(c, x[0], x[1]);
    });
  };
  op.eval = eval_mod;
  op.lower = lower_mod;
  op.samples = {{"$(i32[4]{5, -5, 5, -5}, i32[4]{3, 3, -3, -3})", "i32[4]{2, 1, -1, -2}"},
                {"$(i64[2]{5, -5}, i64[]{3}) {fmod = 1}", "i64[2]{2, -2}"},
                {"$(f32[2], f32[2]) {fmod = 1}", "f32[2]"},
                {"$(f32[2], f32[2])", "error: floats need fmod = 1"},
                {"$(i32[1]{1}, i32[1]{0})", "error: division by zero"}};
  return op;
}

OpDef pow() {
  OpDef op = base();
  TypeVar type{"T", dtypes::floats | dtypes::indices};
  op.name = "pow";
  op.onnx = {"", "Pow", {1, 7, 12, 13, 15}};
  op.doc = "x to the power y";
  op.operands = {{"x", type}, {"y", {"T1", dtypes::numeric}}};
  op.results = {{"z", type}};
  op.value = [](ValueContext& c) {
    value_elementwise(c, [&](std::span<const sym::Expr> x) {
      std::optional<int64_t> n = x[1].constant();
      if (is_float(c.dtype(0)) || !n || *n < 0 || *n > 4) return sym::Expr();
      sym::Expr power = c.constant(1);
      for (int64_t i = 0; i < *n; ++i) power = power * x[0];
      return power;
    });
  };
  op.eval = eval_pow;
  op.lower = lower_pow;
  op.upgrades = {{7, legacy_broadcast}};
  op.samples = {{"$(f32[2]{2, 3}, f32[2]{3, 0.5})", "f32[2]{8, 1.7320508}"},
                {"$(i64[2]{2, -3}, i32[]{3})", "i64[2]{8, -27}"},
                {"$(f32[2, 0], i64[])", "f32[2, 0]"},
                {"$(f32[2], f32[3])", "error: do not broadcast"}};
  return op;
}

}  // namespace

std::vector<OpDef> arithmetic_family() { return {bit_shift(), mod(), pow()}; }

}  // namespace selkie::ops
