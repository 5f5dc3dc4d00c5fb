// transposed_convolutions: a transposed convolution becomes a convolution that makes blocks of the result, as large as
// the strides, each element of a block a channel of its own, and the move of these channels to their places.
#include <algorithm>
#include <optional>

#include "analysis/rdp.h"
#include "ops/registry.h"
#include "passes/rewriting.h"

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
  int64_t more_blocks = 0;  // than there are elements of the input
  int64_t cut = 0;          // elements of the last block that the result does not have

  Axis(const Node& node, size_t i, size_t axes, int64_t size)
      : stride(entry(node, "strides", i, 1)),
        dilation(entry(node, "dilations", i, 1)),
        pad(entry(node, "pads", i, 0)),
        kernel(size) {
    int64_t reach = entry(node, "output_padding", i, 0) + (kernel - 1) * dilation + 1;
    // The result has s times the elements of the input, and so many more.
    int64_t more = reach - stride - pad - entry(node, "pads", axes + i, 0);
    if (auto_pad(node).starts_with("SAME")) {
      int64_t total = std::max<int64_t>(reach - stride, 0);
      pad = auto_pad(node) == "SAME_UPPER" ? total / 2 : total - total / 2;
      more = 0;
    }
    more_blocks = -floor_divide(-more, stride);
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
  size_t rank = weights.dims.size();
  if (weights.dtype != DType::f32 || rank < 3 || rank > 5 || element_count(weights.dims) == 0) return false;
  for (std::string_view name : {"strides", "dilations", "output_padding", "kernel_shape"})
    if (ints(node, name) != nullptr && ints(node, name)->size() != rank - 2) return false;
  if (ints(node, "pads") != nullptr && ints(node, "pads")->size() != 2 * (rank - 2)) return false;
  // Larger blocks have too many channels.
  int64_t block = 1;
  for (size_t i = 0; i + 2 < rank; ++i) block *= std::min<int64_t>(entry(node, "strides", i, 1), 1 << 10);
  bool has_bias = node.operands.size() > 2 && node.operands[2] != nullptr;
  return block <= 256 && ints(node, "output_shape") == nullptr && weights.dims[0] % groups(node) == 0 &&
         (!has_bias || (node.operands[2]->constant != nullptr && node.operands[2]->constant->dtype == DType::f32));
}

int64_t count(std::span<const Axis> axes, int64_t Axis::* member) {
  int64_t product = 1;
  for (const Axis& axis : axes) product *= axis.*member;
  return product;
}

// The tap by which element r of a block and element k of the kernel meet, if they do; all counted in row-major order.
std::optional<int64_t> tap_of(std::span<const Axis> axes, int64_t r, int64_t k) {
  int64_t tap = 0;
  int64_t weight = 1;
  for (size_t i = axes.size(); i-- > 0;) {
    const Axis& axis = axes[i];
    std::optional<int64_t> offset = axis.offset(r % axis.stride, k % axis.kernel);
    if (!offset) return std::nullopt;
    tap += (*offset + axis.pad_begin) * weight;
    weight *= axis.taps;
    r /= axis.stride;
    k /= axis.kernel;
  }
  return tap;
}

// Elements of a block lie one after the other, the channels of each together, so that the move takes runs of channels.
// With groups the channels of each group do.
int64_t block_channel(int64_t channel, int64_t channels, int64_t r, int64_t block, int64_t groups) {
  return groups == 1 ? r * channels + channel : channel * block + r;
}

// [in, out / groups, kernel…] => [out · strides…, in / groups, taps…]
Tensor block_weights(const Tensor& weights, int64_t groups, std::span<const Axis> axes) {
  int64_t in = weights.dim(0) / groups;
  int64_t out = weights.dim(1);
  int64_t kernel = count(axes, &Axis::kernel);
  int64_t block = count(axes, &Axis::stride);
  int64_t taps = count(axes, &Axis::taps);
  Dims dims{groups * out * block, in};
  for (const Axis& axis : axes) dims.push_back(axis.taps);
  Tensor result(DType::f32, dims);
  for (int64_t r = 0; r < block; ++r)
    for (int64_t k = 0; k < kernel; ++k)
      if (std::optional<int64_t> tap = tap_of(axes, r, k))
        for (int64_t i = 0; i < groups * in; ++i)
          for (int64_t o = 0; o < out; ++o) {
            int64_t channel = block_channel(i / in * out + o, groups * out, r, block, groups);
            result.mutable_data<float>()[(channel * in + i % in) * taps + *tap] =
                weights.data<float>()[(i * out + o) * kernel + k];
          }
  return result;
}

Tensor block_bias(const Tensor& bias, int64_t groups, int64_t block) {
  Tensor result(DType::f32, {bias.count() * block});
  for (int64_t r = 0; r < block; ++r)
    for (int64_t channel = 0; channel < bias.count(); ++channel)
      result.mutable_data<float>()[block_channel(channel, bias.count(), r, block, groups)] =
          bias.data<float>()[channel];
  return result;
}

// The nodes that take the place of one.
class Splitter {
 public:
  Splitter(ir::Module& module, const analysis::Rdp& rdp, Node& node) : module_(module), rdp_(rdp), node_(node) {
    const Dims& weights = node.operands[1]->constant->dims;
    for (size_t i = 0; i + 2 < weights.size(); ++i) axes_.emplace_back(node, i, weights.size() - 2, weights[i + 2]);
  }

  // All but the last, which the node becomes.
  std::vector<std::unique_ptr<Node>> run() {
    input_ = *rdp_.known(*node_.operands[0]).type.dims;
    channels_ = node_.operands[1]->constant->dims[1] * groups(node_);
    add_convolution();
    if (count(axes_, &Axis::stride) > 1) add_move();
    if (std::ranges::any_of(axes_, [](const Axis& axis) { return axis.cut != 0; })) add_slice();
    node_.op = nodes_.back()->op;
    node_.operands = nodes_.back()->operands;
    node_.attrs = std::move(nodes_.back()->attrs);
    nodes_.pop_back();
    return std::move(nodes_);
  }

 private:
  Node& add(std::string_view op, std::vector<Value*> operands) {
    auto node = std::make_unique<Node>();
    node->op = ops::op_set().find(op);
    node->operands = std::move(operands);
    node->source = node_.source;
    last_ = node->add_result(node_.results[0]->name);
    nodes_.push_back(std::move(node));
    return *nodes_.back();
  }

  void add_convolution() {
    const Value& weights = *node_.operands[1];
    Tensor blocks = block_weights(weights.constant->tensor(), groups(node_), axes_);
    Node& convolution = add("conv", {node_.operands[0], module_.add_constant(weights.name, std::move(blocks))});
    if (const Value* bias = node_.operands.size() > 2 ? node_.operands[2] : nullptr)
      convolution.operands.push_back(module_.add_constant(
          bias->name, block_bias(bias->constant->tensor(), groups(node_), count(axes_, &Axis::stride))));
    if (groups(node_) != 1) convolution.attrs.set("group", groups(node_));
    std::vector<int64_t> pads;
    for (const Axis& axis : axes_) pads.push_back(axis.pad_begin);
    for (const Axis& axis : axes_) pads.push_back(axis.pad_end);
    if (std::ranges::any_of(pads, [](int64_t pad) { return pad != 0; })) convolution.attrs.set("pads", pads);
  }

  // [batch, strides… · channels, blocks…] => [batch, channels, blocks · strides…]
  void add_move() {
    if (axes_.size() == 2 && axes_[0].stride == axes_[1].stride) {
      Node& move = add("depth_to_space", {last_});
      move.attrs.set("blocksize", axes_[0].stride);
      move.attrs.set("mode", std::string(groups(node_) == 1 ? "DCR" : "CRD"));
      return;
    }
    auto blocks = [&](size_t i) { return input_[i + 2] + axes_[i].more_blocks; };
    auto constant = [&](int64_t number) { return module_.symbols().constant(number); };
    std::vector<sym::Expr> apart{input_[0]};
    std::vector<sym::Expr> together{input_[0], constant(channels_)};
    bool channels_first = groups(node_) != 1;
    if (channels_first) apart.push_back(together[1]);
    for (const Axis& axis : axes_) apart.push_back(constant(axis.stride));
    if (!channels_first) apart.push_back(together[1]);
    auto axes = static_cast<int64_t>(axes_.size());
    std::vector<int64_t> order{0, channels_first ? 1 : axes + 1};
    for (int64_t i = 0; i < axes; ++i) {
      apart.push_back(blocks(static_cast<size_t>(i)));
      together.push_back(blocks(static_cast<size_t>(i)) * axes_[static_cast<size_t>(i)].stride);
      order.push_back(axes + 2 + i);
      order.push_back(i + (channels_first ? 2 : 1));
    }
    add_reshape(std::move(apart));
    add("transpose", {last_}).attrs.set("perm", order);
    add_reshape(std::move(together));
  }

  void add_reshape(std::vector<sym::Expr> dims) {
    Node& reshape = add("reshape", {last_, nullptr});
    reshape.attrs.set("allowzero", int64_t{1});
    reshape.attrs.set("shape", ir::SymbolicInts{.elements = std::move(dims), .scalar = false});
  }

  void add_slice() {
    std::vector<int64_t> starts, ends, axes;
    for (size_t i = 0; i < axes_.size(); ++i) {
      if (axes_[i].cut == 0) continue;
      starts.push_back(0);
      ends.push_back(-axes_[i].cut);
      axes.push_back(static_cast<int64_t>(i + 2));
    }
    auto constant = [&](std::string_view name, const std::vector<int64_t>& numbers) {
      return module_.add_constant(name, Tensor::of_i64(numbers));
    };
    add("slice", {last_, constant("starts", starts), constant("ends", ends), constant("axes", axes)});
  }

  ir::Module& module_;
  const analysis::Rdp& rdp_;
  Node& node_;
  std::vector<Axis> axes_;
  ir::SymDims input_;
  int64_t channels_ = 0;
  std::vector<std::unique_ptr<Node>> nodes_;
  Value* last_ = nullptr;
};

bool rewrite(ir::Module& module, const analysis::Rdp& rdp, ir::Region& region) {
  if (rdp.region(region).entry != analysis::Entry::possible) return false;
  bool changed = false;
  for (size_t i = 0; i < region.nodes.size(); ++i) {
    for (auto& inner : region.nodes[i]->regions) changed = rewrite(module, rdp, *inner) || changed;
    Node& node = *region.nodes[i];
    if (!is_rewritten(node) || !rdp.known(*node.operands[0]).type.dims) continue;
    std::vector<std::unique_ptr<Node>> before = Splitter(module, rdp, node).run();
    i = insert_before(region, i, std::move(before));
    changed = true;
  }
  return changed;
}

}  // namespace

// conv_transpose(x, w) => slice(depth_to_space(conv(x, w'))), or a reshape, a transpose and a reshape in place of
// depth_to_space
bool transposed_convolutions(ir::Module& module) {
  analysis::Rdp rdp(module);
  return rewrite(module, rdp, module.main().body);
}

}  // namespace selkie::passes
