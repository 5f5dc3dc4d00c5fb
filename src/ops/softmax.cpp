// Softmax, LogSoftmax and Hardmax along one axis.
#include "ops/support/softmax.h"
#include "ops/support/lower.h"

#include <cmath>

#include "ops/support/lines.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

struct Row {
  std::string_view name;
  std::string_view onnx;
  std::string_view doc;
  void (*line)(std::span<double>);
  std::string_view expect;  // for {0, 0}
};

void hardmax(std::span<double> x) {
  auto top = std::max_element(x.begin(), x.end()) - x.begin();
  std::fill(x.begin(), x.end(), 0);
  if (!x.empty()) x[static_cast<size_t>(top)] = 1;
}

const Row rows[] = {
    {"hardmax", "Hardmax", "1 for the first of the largest along an axis, 0 for all others", hardmax,
     "f32[1, 2]{1, 0}"},
    {"log_softmax", "LogSoftmax", "x − log Σ exp x along an axis", log_softmax, "f32[1, 2]{-0.6931472, -0.6931472}"},
    {"softmax", "Softmax", "exp x / Σ exp x along an axis", [](std::span<double> x) { softmax(x); },
     "f32[1, 2]{0.5, 0.5}"},
};

// Before opset 13 all axes from `axis` on counted as one: the node becomes reshape(op(reshape(x, [outer, -1])),
// shape(x)).
void coerce_to_matrix(UpgradeContext& c) {
  ir::Node& n = c.node();
  const ir::Attribute* given = n.attrs.find("axis");
  if (given != nullptr && !std::holds_alternative<int64_t>(*given)) return;
  if (n.operands.empty() || n.operands[0] == nullptr) return;
  int64_t axis = given == nullptr ? 1 : std::get<int64_t>(*given);
  ir::Value* x = n.operands[0];
  auto attrs = [](std::string_view name, int64_t value) {
    ir::Attributes out;
    out.set(name, value);
    return out;
  };
  bool last =
      axis == -1 || (x->type.is_tensor() && x->type.dims && axis + 1 == static_cast<int64_t>(x->type.dims->size()));
  n.attrs.set("axis", int64_t{-1});
  if (last) return;
  ir::Value* outer = c.emit("reduce_prod", {c.emit("shape", {x}, attrs("end", axis))});
  ir::Value* dims = c.emit("concat", {outer, c.constant(std::vector<int64_t>{-1})}, attrs("axis", 0));
  ir::Value* result = c.emit(n.op->name, {c.emit("reshape", {x, dims})}, n.attrs);
  n.operands = {result, c.emit("shape", {x})};
  n.attrs = attrs("allowzero", 1);
  c.become("reshape");
}

void lower(std::string_view name, LowerContext& c) {
  if (name == "hardmax") c.refuse("the first of the largest is found one after the other");
  DType dtype = compute_dtype(c.dtype(0));
  auto axis = static_cast<size_t>(normalize_axis(c.attr_int("axis"), static_cast<int64_t>(c.rank(0))));
  c.define(0, [&c, name, dtype, axis](const Index& at) {
    sym::Expr extent = (*c.dims(0))[axis];
    auto element = [&](const Index& k) {
      Index from = at;
      from[axis] = k[0];
      return cast(c.operand(0, from), dtype);
    };
    kir::Builder& b = c.builder();
    kir::Value largest = b.reduce(kir::Op::max, b.number(dtype, -HUGE_VAL), {{extent}}, element);
    auto shifted_exp = [&](const Index& k) { return unary(kir::Op::exp, element(k) - largest); };
    kir::Value sum = b.reduce(kir::Op::add, b.number(dtype, 0), {{extent}}, shifted_exp);
    bool logarithm = name == "log_softmax";
    kir::Value scale = b.hoist(logarithm ? unary(kir::Op::log, sum) : 1.0 / sum);
    kir::Value y = logarithm ? element({at[axis]}) - largest - scale : shifted_exp({at[axis]}) * scale;
    return cast(y, c.result_dtype());
  });
}

OpDef record(const Row& row) {
  return {
      .name = row.name,
      .onnx = {"", row.onnx, {1, 11, 13}},
      .doc = row.doc,
      .operands = {{"input", float_tensor}},
      .results = {{"output", float_tensor}},
      .attrs = {int_attr("axis", -1)},
      .dynamism = isdos(),
      .mapping = Mapping::many_to_many,
      .forward = same_as_first,
      .backward = backward_same,
      .value = absent("softmax does not occur in shape arithmetic"),
      .eval =
          [line = row.line](EvalContext& e) {
            const Tensor& x = e.tensor(0);
            int64_t axis = normalize_axis(e.attr_int("axis"), x.rank());
            std::vector<double> values = widen<double>(x);
            for_each_line(values, x.dims(), axis, line);
            e.set(0, narrow<double>(values, x.dtype(), x.dims()));
          },
      .lower = [name = row.name](LowerContext& c) { lower(name, c); },
      .grad = later::training,
      .upgrades = {{13, coerce_to_matrix}},
      .samples = {{"$(f32[1, 2]{0, 0})", row.expect},
                  {"$(f32[2, 3, 4]) {axis = 1}", "f32[2, 3, 4]"},
                  {"$(f32[2, 1]) {axis = 0}", "f32[2, 1]"},
                  {"$(f32[0, 3])", "f32[0, 3]"},
                  {"$(f32[3, 0])", "f32[3, 0]"},
                  {"$(f32[2, 3]) {axis = 2}", "error: axis 2 is outside"}},
  };
}

}  // namespace

std::vector<OpDef> softmax_family() {
  std::vector<OpDef> family;
  for (const Row& row : rows) family.push_back(record(row));
  return family;
}

}  // namespace selkie::ops
