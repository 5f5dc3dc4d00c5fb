// quantized_products: products and convolutions of quantised tensors become sums of integers, for which there are
// library kernels, and one step that makes them bytes again, which is done on sums that are in cache.
#include <algorithm>
#include <cmath>

#include "base/convert.h"
#include "ir/module.h"
#include "ops/registry.h"

namespace selkie::passes {
namespace {

using ir::Node;
using ir::Value;

constexpr DTypeSet bytes{DType::u8, DType::i8};

bool is_constant(const Value* value, DTypeSet dtypes) {
  return value != nullptr && value->constant != nullptr && dtypes.contains(value->constant->dtype);
}

// Scales that are usual numbers, and how many there are.
std::optional<std::vector<double>> scales(const Value* value) {
  if (!is_constant(value, DTypeSet{DType::f32, DType::f16, DType::bf16})) return std::nullopt;
  std::vector<double> numbers = widen<double>(value->constant->tensor());
  bool usual = std::ranges::all_of(numbers, [](double s) { return std::isfinite(s) && s > 0; });
  return usual && !numbers.empty() && value->constant->dims.size() <= 1 ? std::optional(numbers) : std::nullopt;
}

bool has_one(const std::optional<std::vector<double>>& numbers) { return numbers && numbers->size() == 1; }

// What the step after the sums is given.
struct Requantization {
  std::vector<double> factors;  // one, or one for each channel or column
  Value* zero_point;
  Value* bias = nullptr;
};

bool is_one_byte(const Value* value) { return is_constant(value, bytes) && element_count(value->constant->dims) == 1; }

// qlinear_matmul(a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero): in 32 bits if the sums fit.
std::optional<Requantization> match_product(const Node& node) {
  if (node.op->name != "qlinear_matmul" || !is_constant(node.operands[3], bytes) || !is_one_byte(node.operands[7]))
    return std::nullopt;
  const Dims& b = node.operands[3]->constant->dims;
  auto of_a = scales(node.operands[1]);
  auto of_b = scales(node.operands[4]);
  auto of_y = scales(node.operands[6]);
  if (b.size() != 2 || b[0] > 1 << 15 || !has_one(of_a) || !of_b || !has_one(of_y)) return std::nullopt;
  if (of_b->size() != 1 && static_cast<int64_t>(of_b->size()) != b[1]) return std::nullopt;
  Requantization out{.factors = *of_b, .zero_point = node.operands[7]};
  for (double& factor : out.factors) factor = of_a->front() * factor / of_y->front();
  return out;
}

// qlinear_conv(x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias)
std::optional<Requantization> match_convolution(const Node& node) {
  if (node.op->name != "qlinear_conv" || !is_constant(node.operands[3], bytes) || !is_one_byte(node.operands[7]))
    return std::nullopt;
  const Dims& w = node.operands[3]->constant->dims;
  auto of_x = scales(node.operands[1]);
  auto of_w = scales(node.operands[4]);
  auto of_y = scales(node.operands[6]);
  if (w.size() < 3 || !has_one(of_x) || !of_w || !has_one(of_y)) return std::nullopt;
  if (of_w->size() != 1 && static_cast<int64_t>(of_w->size()) != w[0]) return std::nullopt;
  if (w[0] > 0 && element_count(w) / w[0] > 1 << 15) return std::nullopt;
  Value* bias = node.operands.size() > 8 ? node.operands[8] : nullptr;
  if (bias != nullptr && (bias->constant == nullptr || bias->constant->dims != Dims{w[0]})) return std::nullopt;
  Requantization out{.factors = *of_w, .zero_point = node.operands[7], .bias = bias};
  double common = of_x->front() / of_y->front();
  for (double& factor : out.factors) factor = common * factor;
  return out;
}

// Turns the node into the last step, and gives the sums that come before it.
std::unique_ptr<Node> split(ir::Module& module, Node& node, const Requantization& step) {
  bool is_product = node.op->name == "qlinear_matmul";
  auto sums = std::make_unique<Node>();
  sums->op = ops::op_set().find(is_product ? "matmul_integer" : "conv_integer");
  sums->source = node.source;
  sums->operands = {node.operands[0], node.operands[3], node.operands[2], node.operands[5]};
  sums->attrs = std::move(node.attrs);
  // A number for each channel stands before the spatial axes.
  size_t spatial = is_product ? 0 : node.operands[3]->constant->dims.size() - 2;
  auto along_channels = [&](int64_t count) {
    Dims dims{count};
    dims.resize(1 + spatial, 1);
    return dims;
  };
  auto count = static_cast<int64_t>(step.factors.size());
  Tensor factors = narrow<double>(step.factors, DType::f64, count == 1 ? Dims{} : along_channels(count));
  Value* factor = module.add_constant(node.operands[4]->name, std::move(factors));
  node.op = ops::op_set().find("requantize");
  node.attrs = {};
  node.operands = {sums->add_result(node.results[0]->name), factor, step.zero_point};
  if (step.bias != nullptr) {
    Tensor bias = step.bias->constant->tensor();
    node.operands.push_back(module.add_constant(step.bias->name, bias.reshaped(along_channels(bias.count()))));
  }
  return sums;
}

bool rewrite(ir::Module& module, ir::Region& region) {
  bool changed = false;
  for (size_t i = 0; i < region.nodes.size(); ++i) {
    for (auto& inner : region.nodes[i]->regions) changed = rewrite(module, *inner) || changed;
    std::optional<Requantization> step = match_product(*region.nodes[i]);
    if (!step) step = match_convolution(*region.nodes[i]);
    if (!step) continue;
    std::unique_ptr<Node> sums = split(module, *region.nodes[i], *step);
    region.nodes.insert(region.nodes.begin() + static_cast<std::ptrdiff_t>(i++), std::move(sums));
    changed = true;
  }
  return changed;
}

}  // namespace

// qlinear_matmul(a, …, b, …) => requantize(matmul_integer(a, b, a_zero, b_zero), a_scale · b_scale / y_scale, y_zero)
// qlinear_conv(x, …, w, …, bias) => requantize(conv_integer(x, w, x_zero, w_zero), …, y_zero, bias)
bool quantized_products(ir::Module& module) { return rewrite(module, module.main().body); }

}  // namespace selkie::passes
