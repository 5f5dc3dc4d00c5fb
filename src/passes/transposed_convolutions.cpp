// transposed_convolutions: a transposed convolution with strides of s becomes a convolution that makes blocks of s × s
// elements of the result, each element a channel of its own, and the move of these channels to their places.
#include <algorithm>
#include <limits>
#include <optional>

#include "ir/module.h"
#include "ops/registry.h"

namespace selkie::passes {
namespace {

using ir::Node;
using ir::Value;

const std::vector<int64_t>* ints(const Node& node, std::string_view name) {
  const ir::Attribute* found = node.attrs.find(name);
  return found == nullptr ? nullptr : std::get_if<std::vector<int64_t>>(found);
}

int64_t entry(const Node& node, std::string_view name, size_t i, int64_t otherwise) {
  const std::vector<int64_t>* values = ints(node, name);
  return values == nullptr || values->empty() ? otherwise : values->at(i);
}

std::string auto_pad(const Node& node) {
  const ir::Attribute* found = node.attrs.find("auto_pad");
  return found == nullptr ? "NOTSET" : std::get<std::string>(*found);
}

int64_t groups(const Node& node) {
  const ir::Attribute* found = node.attrs.find("group");
  return found == nullptr ? 1 : std::get<int64_t>(*found);
}

int64_t floor_divide(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// One spatial axis. Element o = s·i + r of the result is Σ x[j]·w[k] over all s·j + k·dilation − pad = o, which is over
// j = i + t with t = (r + pad − k·dilation) / s where that is a whole number. So the element r of block i is an
// element of a convolution, whose taps are the values of t.
struct Axis {
  int64_t stride;
  int64_t dilation;
  int64_t pad;
  int64_t kernel;
  int64_t taps = 0;
  int64_t pad_begin = 0;
  int64_t pad_end = 0;
  int64_t cut = 0;  // elements of the last block that the result does not have

  Axis(const Node& node, size_t i, int64_t size)
      : stride(entry(node, "strides", i, 1)),
        dilation(entry(node, "dilations", i, 1)),
        pad(entry(node, "pads", i, 0)),
        kernel(size) {
    int64_t reach = entry(node, "output_padding", i, 0) + (kernel - 1) * dilation + 1;
    // The result has s times the elements of the input, and so many more.
    int64_t more = reach - stride - pad - entry(node, "pads", i + 2, 0);
    if (auto_pad(node).starts_with("SAME")) {
      int64_t total = std::max<int64_t>(reach - stride, 0);
      pad = auto_pad(node) == "SAME_UPPER" ? total / 2 : total - total / 2;
      more = 0;
    }
    int64_t more_blocks = -floor_divide(-more, stride);
    cut = more_blocks * stride - more;
    int64_t last = 0;
    for (int64_t r = 0; r < stride; ++r)
      for (int64_t k = 0; k < kernel; ++k)
        if (std::optional<int64_t> t = offset(r, k)) {
          pad_begin = std::max(pad_begin, -*t);
          last = std::max(last, *t);
        }
    taps = std::max(last + pad_begin + 1, pad_begin + 1 - more_blocks);
    pad_end = more_blocks - pad_begin + taps - 1;
  }

  std::optional<int64_t> offset(int64_t r, int64_t k) const {
    int64_t distance = r + pad - k * dilation;
    return distance % stride == 0 ? std::optional(distance / stride) : std::nullopt;
  }
};

bool is_rewritten(const Node& node) {
  if (node.op->name != "conv_transpose" || node.operands[1]->constant == nullptr) return false;
  const ir::Constant& weights = *node.operands[1]->constant;
  if (weights.dtype != DType::f32 || weights.dims.size() != 4 || element_count(weights.dims) == 0) return false;
  for (std::string_view name : {"strides", "dilations", "output_padding", "kernel_shape"})
    if (ints(node, name) != nullptr && ints(node, name)->size() != 2) return false;
  if (ints(node, "pads") != nullptr && ints(node, "pads")->size() != 4) return false;
  int64_t stride = entry(node, "strides", 0, 1);
  bool has_bias = node.operands.size() > 2 && node.operands[2] != nullptr;
  // Blocks are square, and small enough that the weights of their elements are few.
  return stride == entry(node, "strides", 1, 1) && stride <= 16 && ints(node, "output_shape") == nullptr &&
         weights.dims[0] % groups(node) == 0 &&
         (!has_bias || (node.operands[2]->constant != nullptr && node.operands[2]->constant->dtype == DType::f32));
}

// [in, out / groups, kernel…] => [out · s · s, in / groups, taps…]
Tensor block_weights(const Tensor& weights, int64_t groups, const Axis& rows, const Axis& columns) {
  int64_t in = weights.dim(0) / groups;
  int64_t out = weights.dim(1);
  int64_t s = rows.stride;
  Tensor result(DType::f32, {groups * out * s * s, in, rows.taps, columns.taps});
  const float* from = weights.data<float>();
  for (int64_t i = 0; i < groups * in; ++i)
    for (int64_t o = 0; o < out; ++o)
      for (int64_t k = 0; k < rows.kernel; ++k)
        for (int64_t l = 0; l < columns.kernel; ++l, ++from)
          for (int64_t r = 0; r < s; ++r)
            for (int64_t q = 0; q < s; ++q) {
              std::optional<int64_t> t = rows.offset(r, k);
              std::optional<int64_t> u = columns.offset(q, l);
              if (!t || !u) continue;
              int64_t channel = ((i / in * out + o) * s + r) * s + q;
              int64_t tap = (*t + rows.pad_begin) * columns.taps + *u + columns.pad_begin;
              result.mutable_data<float>()[(channel * in + i % in) * rows.taps * columns.taps + tap] = *from;
            }
  return result;
}

Tensor repeated(const Tensor& bias, int64_t times) {
  Tensor result(DType::f32, {bias.count() * times});
  for (int64_t i = 0; i < result.count(); ++i) result.mutable_data<float>()[i] = bias.data<float>()[i / times];
  return result;
}

std::unique_ptr<Node> new_node(std::string_view op, std::vector<Value*> operands, const Node& like) {
  auto node = std::make_unique<Node>();
  node->op = ops::op_set().find(op);
  node->operands = std::move(operands);
  node->source = like.source;
  return node;
}

// Turns the node into the last of the new ones, and gives those that come before it.
std::vector<std::unique_ptr<Node>> split(ir::Module& module, Node& node) {
  Tensor weights = node.operands[1]->constant->tensor();
  Axis rows(node, 0, weights.dim(2));
  Axis columns(node, 1, weights.dim(3));
  int64_t s = rows.stride;
  std::vector<std::unique_ptr<Node>> before;
  Tensor blocks = block_weights(weights, groups(node), rows, columns);
  auto convolution = new_node("conv", {node.operands[0], module.add_constant(node.operands[1]->name, blocks)}, node);
  if (node.operands.size() > 2 && node.operands[2] != nullptr)
    convolution->operands.push_back(
        module.add_constant(node.operands[2]->name, repeated(node.operands[2]->constant->tensor(), s * s)));
  if (groups(node) != 1) convolution->attrs.set("group", groups(node));
  std::vector<int64_t> pads{rows.pad_begin, columns.pad_begin, rows.pad_end, columns.pad_end};
  if (std::ranges::any_of(pads, [](int64_t pad) { return pad != 0; })) convolution->attrs.set("pads", pads);
  Value* value = convolution->add_result(node.results[0]->name);
  before.push_back(std::move(convolution));

  auto move = new_node("depth_to_space", {value}, node);
  move->attrs.set("blocksize", s);
  move->attrs.set("mode", std::string("CRD"));
  if (rows.cut == 0 && columns.cut == 0) {
    node.op = move->op;
    node.operands = move->operands;
    node.attrs = std::move(move->attrs);
    return before;
  }
  value = move->add_result(node.results[0]->name);
  before.push_back(std::move(move));
  auto constant = [&](std::string_view name, std::vector<int64_t> numbers) {
    return module.add_constant(name, Tensor::of_i64(numbers));
  };
  constexpr int64_t whole = std::numeric_limits<int64_t>::max();
  node.op = ops::op_set().find("slice");
  node.operands = {value, constant("starts", {0, 0}),
                   constant("ends", {rows.cut ? -rows.cut : whole, columns.cut ? -columns.cut : whole}),
                   constant("axes", {2, 3})};
  node.attrs = {};
  return before;
}

bool rewrite(ir::Module& module, ir::Region& region) {
  bool changed = false;
  for (size_t i = 0; i < region.nodes.size(); ++i) {
    for (auto& inner : region.nodes[i]->regions) changed = rewrite(module, *inner) || changed;
    if (!is_rewritten(*region.nodes[i])) continue;
    std::vector<std::unique_ptr<Node>> before = split(module, *region.nodes[i]);
    size_t count = before.size();
    region.nodes.insert(region.nodes.begin() + static_cast<std::ptrdiff_t>(i), std::make_move_iterator(before.begin()),
                        std::make_move_iterator(before.end()));
    i += count;
    changed = true;
  }
  return changed;
}

}  // namespace

// conv_transpose(x, w) with strides = [s, s] => slice(depth_to_space(conv(x, w')))
bool transposed_convolutions(ir::Module& module) { return rewrite(module, module.main().body); }

}  // namespace selkie::passes
