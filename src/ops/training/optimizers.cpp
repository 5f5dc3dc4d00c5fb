// Optimiser steps of ai.onnx.preview.training: Adagrad, Adam, Momentum.
#include <cmath>

#include "ops/support/blank.h"
#include "ops/support/dims.h"

namespace selkie::ops {
namespace {

// One element of all tensors of a group: the value and its states, which `step` updates, and its gradient.
struct Element {
  double x;
  double g;
  double v;
  double h;
};
using Step = std::function<void(Element&)>;

// Operands after the rate and the count: n values, n gradients and n of each of `states` states. Results: the updated
// values and states, in the same order. A single state is `v`.
void update_groups(EvalContext& e, size_t states, const Step& step) {
  size_t kinds = 2 + states;
  size_t n = (e.operand_count() - 2) / kinds;
  if (n == 0 || (e.operand_count() - 2) % kinds != 0)
    fail("{} tensors are not groups of {}", e.operand_count() - 2, kinds);
  for (size_t i = 0; i < n; ++i) {
    const Tensor& x = e.tensor(2 + i);
    std::vector<std::vector<double>> parts;
    for (size_t k = 0; k < kinds; ++k) {
      const Tensor& part = e.tensor(2 + k * n + i);
      if (part.dims() != x.dims())
        fail("tensors of shapes {} and {} are in one group", to_string(x.dims()), to_string(part.dims()));
      parts.push_back(widen<double>(part));
    }
    for (size_t j = 0; j < parts[0].size(); ++j) {
      Element element{parts[0][j], parts[1][j], parts[2][j], states > 1 ? parts[3][j] : 0};
      step(element);
      parts[0][j] = element.x;
      parts[2][j] = element.v;
      if (states > 1) parts[3][j] = element.h;
    }
    e.set(i, narrow<double>(parts[0], x.dtype(), x.dims()));
    for (size_t k = 0; k < states; ++k) e.set((1 + k) * n + i, narrow<double>(parts[2 + k], x.dtype(), x.dims()));
  }
}

size_t group_count(const ir::ShapeContext& c, size_t states) {
  size_t tensors = c.operand_count() - 2;
  if (tensors == 0 || tensors % (2 + states) != 0) fail("{} tensors are not groups of {}", tensors, 2 + states);
  return tensors / (2 + states);
}

// All tensors of a group have the same dims, results included.
std::vector<Type> forward(const ForwardContext& c, size_t states) {
  size_t n = group_count(c, states);
  std::vector<Type> types;
  for (size_t k = 0; k < 1 + states; ++k)
    for (size_t i = 0; i < n; ++i) types.push_back(c.type(2 + i));
  return types;
}

void backward(BackwardContext& c, size_t states) {
  size_t n = group_count(c, states);
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < 1 + states; ++k)
      if (c.result_dims(k * n + i)) c.set_dims(2 + i, *c.result_dims(k * n + i));
    std::vector<size_t> group;
    for (size_t k = 0; k < 2 + states; ++k) group.push_back(2 + k * n + i);
    require_same_dims(c, group);
  }
}

void adagrad(EvalContext& e) {
  double rate = double_of(e.tensor(0)) / (1 + static_cast<double>(int_of(e.tensor(1))) * e.attr_float("decay_factor"));
  double norm = e.attr_float("norm_coefficient");
  double epsilon = e.attr_float("epsilon");
  update_groups(e, 1, [=](Element& el) {
    double g = norm * el.x + el.g;
    el.v += g * g;
    el.x -= rate * g / (std::sqrt(el.v) + epsilon);
  });
}

void adam(EvalContext& e) {
  double rate = double_of(e.tensor(0));
  int64_t count = int_of(e.tensor(1));
  double alpha = e.attr_float("alpha");
  double beta = e.attr_float("beta");
  if (count > 0) rate *= std::sqrt(1 - std::pow(beta, count)) / (1 - std::pow(alpha, count));
  double norm = e.attr_float("norm_coefficient");
  double post = e.attr_float("norm_coefficient_post");
  double epsilon = e.attr_float("epsilon");
  update_groups(e, 2, [=](Element& el) {
    double g = norm * el.x + el.g;
    el.v = alpha * el.v + (1 - alpha) * g;
    el.h = beta * el.h + (1 - beta) * g * g;
    el.x = (1 - post) * (el.x - rate * el.v / (std::sqrt(el.h) + epsilon));
  });
}

void momentum(EvalContext& e) {
  double rate = double_of(e.tensor(0));
  double beta = int_of(e.tensor(1)) > 0 ? e.attr_float("beta") : 1;
  double alpha = e.attr_float("alpha");
  double norm = e.attr_float("norm_coefficient");
  const std::string& mode = e.attr_string("mode");
  if (mode != "standard" && mode != "nesterov")
    fail("attribute 'mode' is \"{}\", but must be standard or nesterov", mode);
  bool nesterov = mode == "nesterov";
  update_groups(e, 1, [=](Element& el) {
    double g = norm * el.x + el.g;
    el.v = alpha * el.v + beta * g;
    el.x -= rate * (nesterov ? g + alpha * el.v : el.v);
  });
}

OpDef record(std::string_view name, std::string_view onnx, size_t states, std::string_view doc) {
  const DTypeSet reals{DType::f32, DType::f64};
  OpDef op = blank_record();
  op.name = name;
  op.onnx = {"ai.onnx.preview.training", onnx, {1}};
  op.doc = doc;
  op.operands = {{"r", {"T1", reals}}, {"t", i64_tensor}, {"inputs", {"T3", reals}, variadic}};
  op.results = {{"outputs", {"T3", reals}, variadic}};
  op.forward = [states](const ForwardContext& c) { return forward(c, states); };
  op.backward = [states](BackwardContext& c) { backward(c, states); };
  op.grad = absent("a step of training is not itself differentiated");
  return op;
}

}  // namespace

std::vector<OpDef> optimizers_family() {
  OpDef a = record("adagrad", "Adagrad", 1, "one step of Adagrad on any number of tensors");
  a.attrs = {float_attr("decay_factor", 0), float_attr("epsilon", 1e-6f), float_attr("norm_coefficient", 0)};
  a.eval = adagrad;
  a.samples = {
      {"$(f32[]{0.5}, i64[]{0}, f32[1]{1}, f32[1]{2}, f32[1]{0}) {epsilon = 0.0}", "f32[1]{0.5}, f32[1]{4}"},
      {"$(f32[], i64[], f32[0], f32[0], f32[0])", "f32[0], f32[0]"},
      {"$(f32[], i64[], f32[1, 2], f32[], f32[1, 2], f32[], f32[1, 2], f32[])", "f32[1, 2], f32[], f32[1, 2], f32[]"},
      {"$(f32[], i64[], f32[1], f32[1])", "error: not groups of 3"},
      {"$(f32[], i64[], f32[1], f32[2], f32[1])", "error: are in one group"}};
  OpDef b = record("adam", "Adam", 2, "one step of Adam on any number of tensors");
  b.attrs = {float_attr("alpha", 0.9f), float_attr("beta", 0.999f), float_attr("epsilon", 1e-6f),
             float_attr("norm_coefficient", 0), float_attr("norm_coefficient_post", 0)};
  b.eval = adam;
  b.samples = {
      {"$(f32[]{0.5}, i64[]{0}, f32[1]{1}, f32[1]{2}, f32[1]{0}, f32[1]{0}) {alpha = 0.5, beta = 0.75, epsilon = 0.0}",
       "f32[1]{0.5}, f32[1]{1}, f32[1]{1}"},
      {"$(f32[], i64[], f32[0], f32[0], f32[0], f32[0])", "f32[0], f32[0], f32[0]"},
      {"$(f32[], i64[], f32[1])", "error: not groups of 4"}};
  OpDef c = record("momentum", "Momentum", 1, "one step of gradient descent with momentum on any number of tensors");
  c.attrs = {required_attr("alpha", AttrKind::real), required_attr("beta", AttrKind::real),
             required_attr("mode", AttrKind::text), required_attr("norm_coefficient", AttrKind::real)};
  c.eval = momentum;
  c.samples = {
      {"$(f32[]{0.5}, i64[]{1}, f32[1]{1}, f32[1]{2}, f32[1]{4}) {alpha = 0.5, beta = 0.25, mode = \"standard\", "
       "norm_coefficient = 0.0}",
       "f32[1]{-0.25}, f32[1]{2.5}"},
      {"$(f32[]{0.5}, i64[]{1}, f32[1]{1}, f32[1]{2}, f32[1]{4}) {alpha = 0.5, beta = 0.25, mode = \"nesterov\", "
       "norm_coefficient = 0.0}",
       "f32[1]{-0.625}, f32[1]{2.5}"},
      {"$(f32[], i64[], f32[0], f32[0], f32[0]) {alpha = 0.5, beta = 0.25, mode = \"standard\", norm_coefficient = "
       "0.0}",
       "f32[0], f32[0]"},
      {"$(f32[], i64[], f32[1], f32[1], f32[1]) {alpha = 0.5, beta = 0.25, mode = \"heavy\", norm_coefficient = 0.0}",
       "error: must be standard or nesterov"}};
  return {a, b, c};
}

}  // namespace selkie::ops
