// Element-wise operators of two operands with broadcasting: a table row each.
#include <cmath>

#include "ops/support/elementwise.h"
#include "ops/support/lower.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

// One function per wide type; null where the operator does not take such operands.
struct Functions {
  double (*real)(double, double) = nullptr;
  int64_t (*integer)(int64_t, int64_t) = nullptr;
  uint64_t (*natural)(uint64_t, uint64_t) = nullptr;
};

struct Row {
  std::string_view name;
  std::string_view onnx;
  std::vector<int> versions;
  std::string_view doc;
  DTypeSet dtypes;
  Functions f;
  // For shape arithmetic: on integers, and on floats as quotients of them.
  sym::Expr (*symbolic)(const ir::ShapeContext&, sym::Expr, sym::Expr) = nullptr;
  std::optional<FloatOp> quotients = std::nullopt;
};

// Signed arithmetic that wraps, as the unsigned one does.
int64_t wrap(uint64_t x) { return static_cast<int64_t>(x); }
uint64_t bits(int64_t x) { return static_cast<uint64_t>(x); }

int64_t divide(int64_t a, int64_t b) {
  if (b == 0) fail("integer division by zero");
  return b == -1 ? wrap(0 - bits(a)) : a / b;
}
uint64_t divide(uint64_t a, uint64_t b) {
  if (b == 0) fail("integer division by zero");
  return a / b;
}

// clang-format off
std::vector<Row> rows() {
  return {
    {"add", "Add", {1, 6, 7, 13, 14}, "a + b", dtypes::numeric,
     {[](double a, double b) { return a + b; }, [](int64_t a, int64_t b) { return wrap(bits(a) + bits(b)); },
      [](uint64_t a, uint64_t b) { return a + b; }},
     [](const ir::ShapeContext&, sym::Expr a, sym::Expr b) { return a + b; }, FloatOp::add},
    {"and", "And", {1, 7}, "a ∧ b", dtypes::boolean, {.natural = [](uint64_t a, uint64_t b) { return a & b; }},
     [](const ir::ShapeContext&, sym::Expr a, sym::Expr b) { return sym::min(a, b); }},
    {"bitwise_and", "BitwiseAnd", {18}, "a & b", dtypes::ints,
     {nullptr, [](int64_t a, int64_t b) { return a & b; }, [](uint64_t a, uint64_t b) { return a & b; }}},
    {"bitwise_or", "BitwiseOr", {18}, "a | b", dtypes::ints,
     {nullptr, [](int64_t a, int64_t b) { return a | b; }, [](uint64_t a, uint64_t b) { return a | b; }}},
    {"bitwise_xor", "BitwiseXor", {18}, "a ^ b", dtypes::ints,
     {nullptr, [](int64_t a, int64_t b) { return a ^ b; }, [](uint64_t a, uint64_t b) { return a ^ b; }}},
    {"div", "Div", {1, 6, 7, 13, 14}, "a / b; integers towards zero", dtypes::numeric,
     {[](double a, double b) { return a / b; }, divide, divide}, quotient, FloatOp::div},
    {"mul", "Mul", {1, 6, 7, 13, 14}, "a · b", dtypes::numeric,
     {[](double a, double b) { return a * b; }, [](int64_t a, int64_t b) { return wrap(bits(a) * bits(b)); },
      [](uint64_t a, uint64_t b) { return a * b; }},
     [](const ir::ShapeContext&, sym::Expr a, sym::Expr b) { return a * b; }, FloatOp::mul},
    {"or", "Or", {1, 7}, "a ∨ b", dtypes::boolean, {.natural = [](uint64_t a, uint64_t b) { return a | b; }},
     [](const ir::ShapeContext&, sym::Expr a, sym::Expr b) { return sym::max(a, b); }},
    {"prelu", "PRelu", {1, 6, 7, 9, 16}, "a where a ≥ 0, a · slope elsewhere", dtypes::floats | DTypeSet{DType::i32, DType::i64, DType::u32, DType::u64},
     {[](double a, double b) { return a < 0 ? a * b : a; }, [](int64_t a, int64_t b) { return a < 0 ? wrap(bits(a) * bits(b)) : a; },
      [](uint64_t a, uint64_t) { return a; }}},
    {"sub", "Sub", {1, 6, 7, 13, 14}, "a − b", dtypes::numeric,
     {[](double a, double b) { return a - b; }, [](int64_t a, int64_t b) { return wrap(bits(a) - bits(b)); },
      [](uint64_t a, uint64_t b) { return a - b; }},
     [](const ir::ShapeContext&, sym::Expr a, sym::Expr b) { return a - b; }, FloatOp::sub},
    {"xor", "Xor", {1, 7}, "a ⊕ b", dtypes::boolean, {.natural = [](uint64_t a, uint64_t b) { return a ^ b; }},
     [](const ir::ShapeContext&, sym::Expr a, sym::Expr b) { return a + b - 2 * a * b; }},
  };
}
// clang-format on

using kir::Value;

// What two elements become in a kernel.
Value kernel(std::string_view name, Value a, Value b) {
  if (name == "add") return a + b;
  if (name == "sub") return a - b;
  if (name == "mul") return a * b;
  if (name == "div") return a / b;
  if (name == "and" || name == "bitwise_and") return a & b;
  if (name == "or" || name == "bitwise_or") return a | b;
  if (name == "xor" || name == "bitwise_xor") return binary(kir::Op::bit_xor, a, b);
  CHECK(name == "prelu", "no kernel for {}", name);
  return select(a < 0.0, a * b, a);
}

void lower(std::string_view name, LowerContext& c) {
  if (name == "div" && !is_float(c.dtype(0)) && !divides_safely(c, 1)) c.refuse("the divisor may be 0");
  lower_elementwise(c, [name](const LowerContext&, std::span<const Value> x) { return kernel(name, x[0], x[1]); });
}

void eval(const Functions& f, EvalContext& e) {
  const Tensor& a = e.tensor(0);
  const Tensor& b = e.tensor(1);
  dispatch_number(a.dtype(), [&](auto tag) {
    using W = typename decltype(tag)::type;
    if constexpr (std::is_same_v<W, double>)
      e.set(0, map_pairs<W>(a, b, a.dtype(), f.real));
    else if constexpr (std::is_same_v<W, int64_t>)
      e.set(0, map_pairs<W>(a, b, a.dtype(), f.integer));
    else
      e.set(0, map_pairs<W>(a, b, a.dtype(), f.natural));
  });
}

// Before opset 7 the slope of prelu belonged to the channels, which are axis 1.
void slope_of_channels(UpgradeContext& c) {
  c.node().attrs.set("axis", int64_t{1});
  legacy_broadcast(c);
}

ir::Hook<void(ValueContext&)> value_of(const Row& row) {
  if (row.symbolic == nullptr) return absent("does not occur in shape arithmetic");
  return [f = row.symbolic, quotients = row.quotients](ValueContext& c) {
    if (is_float(c.dtype(0))) {
      if (quotients) value_float(c, *quotients);
      return;
    }
    value_elementwise(c, [&](std::span<const sym::Expr> x) { return f(c, x[0], x[1]); });
  };
}

OpDef record(const Row& row) {
  TypeVar type{"T", row.dtypes};
  bool reals = row.dtypes.contains(DType::f32);
  bool booleans = row.dtypes.contains(DType::boolean);
  return {
      .name = row.name,
      .onnx = {"", row.onnx, row.versions},
      .doc = row.doc,
      .operands = {{"a", type}, {"b", type}},
      .results = {{"c", type}},
      .dynamism = isdos(),
      .mapping = Mapping::one_to_one,
      .forward = broadcast_all,
      .backward = backward_broadcast,
      .value = value_of(row),
      .eval = [f = row.f](EvalContext& e) { eval(f, e); },
      .lower = [name = row.name](LowerContext& c) { lower(name, c); },
      .grad = later::training,
      .upgrades = {{7, row.name == "prelu" ? slope_of_channels : legacy_broadcast}},
      .samples = {{reals      ? "$(f32[2, 3], f32[3])"
                   : booleans ? "$(bool[2, 3], bool[3])"
                              : "$(i32[2, 3], i32[3])",
                   reals      ? "f32[2, 3]"
                   : booleans ? "bool[2, 3]"
                              : "i32[2, 3]"},
                  {reals      ? "$(f32[2, 1], f32[1, 0])"
                   : booleans ? "$(bool[2, 1], bool[1, 0])"
                              : "$(i32[2, 1], i32[1, 0])",
                   reals      ? "f32[2, 0]"
                   : booleans ? "bool[2, 0]"
                              : "i32[2, 0]"},
                  {reals      ? "$(f32[2], f32[3])"
                   : booleans ? "$(bool[2], bool[3])"
                              : "$(i32[2], i32[3])",
                   "error: do not broadcast"},
                  {"$(str[2], str[2])", "error: must be one of"}},
  };
}

}  // namespace

std::vector<OpDef> binary_family() {
  std::vector<OpDef> family;
  for (const Row& row : rows()) family.push_back(record(row));
  return family;
}

}  // namespace selkie::ops
