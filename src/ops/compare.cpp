// Comparisons with broadcasting: a table row each. The result is bool.
#include "ops/support/elementwise.h"
#include "ops/support/lower.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

enum class Relation : uint8_t { equal, greater, greater_or_equal, less, less_or_equal };

struct Row {
  std::string_view name;
  std::string_view onnx;
  std::vector<int> versions;
  std::string_view doc;
  DTypeSet dtypes;
  Relation relation;
};

std::vector<Row> rows() {
  using enum Relation;
  DTypeSet any = dtypes::numeric | dtypes::boolean | dtypes::string;
  return {
      {"equal", "Equal", {1, 7, 11, 13, 19}, "a = b", any, equal},
      {"greater", "Greater", {1, 7, 9, 13}, "a > b", dtypes::numeric, greater},
      {"greater_or_equal", "GreaterOrEqual", {12, 16}, "a ≥ b", dtypes::numeric, greater_or_equal},
      {"less", "Less", {1, 7, 9, 13}, "a < b", dtypes::numeric, less},
      {"less_or_equal", "LessOrEqual", {12, 16}, "a ≤ b", dtypes::numeric, less_or_equal},
  };
}

template <class W>
bool holds(Relation relation, const W& a, const W& b) {
  switch (relation) {
    case Relation::equal:
      return a == b;
    case Relation::greater:
      return a > b;
    case Relation::greater_or_equal:
      return a >= b;
    case Relation::less:
      return a < b;
    case Relation::less_or_equal:
      return a <= b;
  }
  return false;
}

void eval(Relation relation, EvalContext& e) {
  const Tensor& a = e.tensor(0);
  const Tensor& b = e.tensor(1);
  auto compare = [&](auto tag) {
    using W = typename decltype(tag)::type;
    e.set(0, map_pairs<W>(a, b, DType::boolean, [=](const W& x, const W& y) { return holds(relation, x, y); }));
  };
  if (a.dtype() == DType::str)
    compare(TypeTag<std::string>{});
  else
    dispatch_number(a.dtype(), compare);
}

kir::Value compare(Relation relation, kir::Value a, kir::Value b) {
  switch (relation) {
    case Relation::equal:
      return a == b;
    case Relation::greater:
      return b < a;
    case Relation::greater_or_equal:
      return b <= a;
    case Relation::less:
      return a < b;
    case Relation::less_or_equal:
      return a <= b;
  }
  return {};
}

void lower(Relation relation, LowerContext& c) {
  lower_elementwise(
      c, [relation](const LowerContext&, std::span<const kir::Value> x) { return compare(relation, x[0], x[1]); });
}

std::vector<Type> forward(const ForwardContext& c) {
  return {Type::tensor(DType::boolean, broadcast(c, c.dims(0), c.dims(1)))};
}

sym::Expr symbolic(const ir::ShapeContext& c, Relation relation, sym::Expr a, sym::Expr b) {
  switch (relation) {
    case Relation::equal:
      return ops::equal(c, a, b);
    case Relation::greater:
      return negation(ops::less_equal(c, a, b));
    case Relation::greater_or_equal:
      return ops::less_equal(c, b, a);
    case Relation::less:
      return negation(ops::less_equal(c, b, a));
    case Relation::less_or_equal:
      return ops::less_equal(c, a, b);
  }
  return {};
}

void value(Relation relation, ValueContext& c) {
  value_elementwise(c, [&](std::span<const sym::Expr> x) { return symbolic(c, relation, x[0], x[1]); });
}

OpDef record(const Row& row) {
  TypeVar type{"T", row.dtypes};
  return {
      .name = row.name,
      .onnx = {"", row.onnx, row.versions},
      .doc = row.doc,
      .operands = {{"a", type}, {"b", type}},
      .results = {{"c", bool_tensor}},
      .dynamism = isdos(),
      .mapping = Mapping::one_to_one,
      .forward = forward,
      .backward = backward_broadcast,
      .value = [relation = row.relation](ValueContext& c) { value(relation, c); },
      .eval = [relation = row.relation](EvalContext& e) { eval(relation, e); },
      .lower = [relation = row.relation](LowerContext& c) { lower(relation, c); },
      .grad = absent("a comparison is piecewise constant"),
      .upgrades = {{7, legacy_broadcast}},
      .samples = {{"$(f32[2, 3], f32[3])", "bool[2, 3]"},
                  {"$(i64[2, 1], i64[1, 0])", "bool[2, 0]"},
                  {"$(f32[2], f32[3])", "error: do not broadcast"},
                  {"$(f32[2], i64[2])", "error: must be f32 like operand 'a'"}},
  };
}

}  // namespace

std::vector<OpDef> compare_family() {
  std::vector<OpDef> family;
  for (const Row& row : rows()) family.push_back(record(row));
  return family;
}

}  // namespace selkie::ops
