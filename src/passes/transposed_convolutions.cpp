// transposed_convolutions: where windows do not overlap, each input pixel makes a block of the output for itself.
#include <algorithm>

#include "ir/module.h"
#include "ops/registry.h"

namespace selkie::passes {
namespace {

using ir::Node;

const std::vector<int64_t>* ints(const Node& node, std::string_view name) {
  const ir::Attribute* found = node.attrs.find(name);
  return found == nullptr ? nullptr : std::get_if<std::vector<int64_t>>(found);
}

bool all_are(const std::vector<int64_t>* values, int64_t value) {
  return values == nullptr || std::ranges::all_of(*values, [&](int64_t v) { return v == value; });
}

// Weights [in, out, s, s] in f32 with strides of s and nothing else.
bool is_block_wise(const Node& node) {
  if (node.op->name != "conv_transpose" || node.operands[1]->constant == nullptr) return false;
  const ir::Constant& weights = *node.operands[1]->constant;
  if (weights.dtype != DType::f32 || weights.dims.size() != 4 || weights.dims[2] != weights.dims[3]) return false;
  const std::vector<int64_t>* strides = ints(node, "strides");
  const ir::Attribute* auto_pad = node.attrs.find("auto_pad");
  const ir::Attribute* group = node.attrs.find("group");
  bool has_bias = node.operands.size() > 2 && node.operands[2] != nullptr;
  return strides != nullptr && all_are(strides, weights.dims[2]) && all_are(ints(node, "pads"), 0) &&
         all_are(ints(node, "dilations"), 1) && all_are(ints(node, "output_padding"), 0) &&
         ints(node, "output_shape") == nullptr && (group == nullptr || std::get<int64_t>(*group) == 1) &&
         (auto_pad == nullptr || std::get<std::string>(*auto_pad) == "NOTSET") &&
         (!has_bias || (node.operands[2]->constant != nullptr && node.operands[2]->constant->dtype == DType::f32));
}

// [in, out, s, s] => [out · s · s, in, 1, 1]
Tensor pointwise_weights(const Tensor& weights) {
  int64_t in = weights.dim(0);
  int64_t out = weights.dim(1) * weights.dim(2) * weights.dim(3);
  Tensor result(DType::f32, {out, in, 1, 1});
  for (int64_t i = 0; i < in; ++i)
    for (int64_t o = 0; o < out; ++o) result.mutable_data<float>()[o * in + i] = weights.data<float>()[i * out + o];
  return result;
}

Tensor repeated(const Tensor& bias, int64_t times) {
  Tensor result(DType::f32, {bias.count() * times});
  for (int64_t i = 0; i < result.count(); ++i) result.mutable_data<float>()[i] = bias.data<float>()[i / times];
  return result;
}

// Turns the node into the block-wise move, and gives the convolution that comes before it.
std::unique_ptr<Node> split(ir::Module& module, Node& node) {
  Tensor weights = node.operands[1]->constant->tensor();
  auto convolution = std::make_unique<Node>();
  convolution->op = ops::op_set().find("conv");
  convolution->source = node.source;
  convolution->operands = {node.operands[0], module.add_constant(node.operands[1]->name, pointwise_weights(weights))};
  if (node.operands.size() > 2 && node.operands[2] != nullptr)
    convolution->operands.push_back(module.add_constant(
        node.operands[2]->name, repeated(node.operands[2]->constant->tensor(), weights.dim(2) * weights.dim(3))));
  node.op = ops::op_set().find("depth_to_space");
  node.operands = {convolution->add_result(node.results[0]->name)};
  node.attrs = {};
  node.attrs.set("blocksize", weights.dim(2));
  node.attrs.set("mode", std::string("CRD"));
  return convolution;
}

bool rewrite(ir::Module& module, ir::Region& region) {
  bool changed = false;
  for (size_t i = 0; i < region.nodes.size(); ++i) {
    for (auto& inner : region.nodes[i]->regions) changed = rewrite(module, *inner) || changed;
    if (!is_block_wise(*region.nodes[i])) continue;
    std::unique_ptr<Node> convolution = split(module, *region.nodes[i]);
    region.nodes.insert(region.nodes.begin() + static_cast<std::ptrdiff_t>(i++), std::move(convolution));
    changed = true;
  }
  return changed;
}

}  // namespace

// conv_transpose(x, w) with kernel = strides = [s, s] => depth_to_space(conv(x, w'))
bool transposed_convolutions(ir::Module& module) { return rewrite(module, module.main().body); }

}  // namespace selkie::passes
