// channel_scales: a batch normalisation by constant statistics scales and shifts every channel, as sums and products
// with a constant for each do. Where it follows a convolution whose result nobody else reads, the convolution's weights
// do that; elsewhere a product and a sum.
#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>

#include "analysis/rdp.h"
#include "ops/registry.h"
#include "passes/pass.h"
#include "passes/rewriting.h"

namespace selkie::passes {
namespace {

using ir::Node;
using ir::Value;

// y = x · scale + shift, for each channel.
struct Affine {
  std::vector<double> scale, shift;

  int64_t channels() const { return static_cast<int64_t>(scale.size()); }
};

// The floats of a constant; nothing else has data.
std::optional<Tensor> floats(const Value* value) {
  if (value == nullptr || value->constant == nullptr || value->constant->dtype != DType::f32) return std::nullopt;
  return value->constant->tensor();
}

std::optional<Affine> norm_of(const Node& node) {
  if (node.op->name != "batch_normalization" || node.results.size() > 1) return std::nullopt;
  const ir::Attribute* training = node.attrs.find("training_mode");
  if (training != nullptr && std::get<int64_t>(*training) != 0) return std::nullopt;
  std::array<Tensor, 4> parameters;  // scale, bias, mean, variance
  for (size_t i = 0; i < parameters.size(); ++i) {
    std::optional<Tensor> parameter = floats(node.operands[i + 1]);
    if (!parameter || parameter->rank() != 1 || (i > 0 && parameter->dims() != parameters[0].dims()))
      return std::nullopt;
    parameters[i] = std::move(*parameter);
  }
  const ir::Attribute* given = node.attrs.find("epsilon");
  double epsilon = given == nullptr ? 1e-5F : std::get<float>(*given);
  auto at = [&](size_t parameter, int64_t c) { return double{parameters[parameter].data<float>()[c]}; };
  Affine result;
  for (int64_t c = 0; c < parameters[0].count(); ++c) {
    result.scale.push_back(at(0, c) / std::sqrt(at(3, c) + epsilon));
    result.shift.push_back(at(1, c) - at(2, c) * result.scale.back());
    if (!std::isfinite(result.scale.back()) || !std::isfinite(result.shift.back())) return std::nullopt;
  }
  return result;
}

// A constant for each channel, which lie along the second of so many axes, or one for all.
std::optional<std::vector<double>> of_channels(const Value& value, int64_t channels, int64_t rank) {
  std::optional<Tensor> numbers = floats(&value);
  if (!numbers || numbers->rank() > rank || (numbers->count() != 1 && numbers->count() != channels))
    return std::nullopt;
  int64_t axis = numbers->rank() + 1 - rank;
  bool along_channels = axis >= 0 && numbers->dim(axis) == channels;
  if (numbers->count() != 1 && !along_channels) return std::nullopt;
  std::vector<double> result;
  for (int64_t c = 0; c < channels; ++c) result.push_back(numbers->data<float>()[numbers->count() == 1 ? 0 : c]);
  return result;
}

// A sum or product of a value and constants; nothing else becomes of `input`.
std::optional<Affine> arithmetic_of(const Node& node, const Value& input, int64_t channels, int64_t rank) {
  bool is_sum = node.op->name == "add";
  if (!is_sum && node.op->name != "mul") return std::nullopt;
  const Value& other = *node.operands[node.operands[0] == &input ? 1 : 0];
  std::optional<std::vector<double>> numbers = of_channels(other, channels, rank);
  if (!numbers || !std::ranges::all_of(*numbers, [](double x) { return std::isfinite(x); })) return std::nullopt;
  std::vector<double> same(numbers->size(), is_sum ? 1 : 0);
  return is_sum ? Affine{.scale = same, .shift = *numbers} : Affine{.scale = *numbers, .shift = same};
}

// How the weights of a convolution lie: `before` times, for each of `channels` results, `inner` numbers.
struct Filters {
  int64_t before, channels, inner;
};

std::optional<Filters> filters(const Node& node, const Tensor& weights) {
  if (weights.rank() < 3 || weights.count() == 0) return std::nullopt;
  int64_t taps = weights.count() / weights.dim(0) / weights.dim(1);
  if (node.op->name == "conv") return Filters{.before = 1, .channels = weights.dim(0), .inner = weights.dim(1) * taps};
  const ir::Attribute* groups = node.attrs.find("group");
  if (node.op->name != "conv_transpose" || (groups != nullptr && std::get<int64_t>(*groups) != 1)) return std::nullopt;
  return Filters{.before = weights.dim(0), .channels = weights.dim(1), .inner = taps};
}

class Folder {
 public:
  Folder(ir::Module& module, const analysis::Rdp& rdp) : module_(module), rdp_(rdp) { look_at(module.main().body); }

  bool run(ir::Region& region) {
    if (rdp_.region(region).entry != analysis::Entry::possible) return false;
    bool changed = false;
    for (size_t i = 0; i < region.nodes.size(); ++i) {
      Node& node = *region.nodes[i];
      for (auto& inner : node.regions) changed = run(*inner) || changed;
      std::optional<Affine> norm = norm_of(node);
      if (fold(region, node, norm)) {
        changed = true;
      } else if (norm) {
        std::vector<std::unique_ptr<Node>> before = split(node, *norm);
        changed = changed || !before.empty();
        i = insert_before(region, i, std::move(before));
      }
    }
    return changed;
  }

 private:
  void look_at(const ir::Region& region) {
    for (const Value* value : region.yields) ++uses_[value];
    for (const auto& node : region.nodes) {
      homes_[node.get()] = &region;
      for (const Value* operand : node->operands) ++uses_[operand];
      for (const auto& inner : node->regions) look_at(*inner);
    }
  }

  // Makes the node the convolution, if that is in the same region; the one before it is then not used any more.
  bool fold(const ir::Region& region, Node& node, std::optional<Affine> norm) {
    if (!norm && node.op->name != "add" && node.op->name != "mul") return false;
    bool is_second = !norm && node.operands[0]->constant != nullptr;
    const Value* input = node.operands[is_second ? 1 : 0];
    const Node* convolution = input->node;
    if (convolution == nullptr || uses_[input] != 1 || convolution->operands.size() < 2 ||
        homes_[convolution] != &region)
      return false;
    Value* given = convolution->operands[1];
    std::optional<Tensor> weights = floats(given);
    std::optional<Filters> form = weights ? filters(*convolution, *weights) : std::nullopt;
    if (!form) return false;
    if (!norm) norm = arithmetic_of(node, *input, form->channels, weights->rank());
    if (!norm || form->channels != norm->channels()) return false;
    const Value* bias = convolution->operands.size() > 2 ? convolution->operands[2] : nullptr;
    std::optional<Tensor> shifts = bias == nullptr ? Tensor(DType::f32, {norm->channels()}) : floats(bias);
    if (!shifts || shifts->count() != norm->channels()) return false;
    bool only_shifts = std::ranges::all_of(norm->scale, [](double scale) { return scale == 1; });
    std::vector<float> shifted;
    for (size_t c = 0; c < norm->scale.size(); ++c) {
      double before = bias == nullptr ? 0.0 : double{shifts->data<float>()[c]};
      shifted.push_back(static_cast<float>(before * norm->scale[c] + norm->shift[c]));
    }
    node.operands = {convolution->operands[0],
                     only_shifts ? given : module_.add_constant(given->name, scaled(*weights, *form, norm->scale)),
                     constant(bias == nullptr ? "bias" : bias->name, shifted, {norm->channels()})};
    node.source = convolution->source;
    node.op = convolution->op;
    node.attrs = convolution->attrs;
    return true;
  }

  static Tensor scaled(const Tensor& weights, const Filters& form, const std::vector<double>& scales) {
    Tensor result(DType::f32, weights.dims());
    int64_t at = 0;
    for (int64_t i = 0; i < form.before; ++i)
      for (double scale : scales)
        for (int64_t end = at + form.inner; at < end; ++at)
          result.mutable_data<float>()[at] = static_cast<float>(weights.data<float>()[at] * scale);
    return result;
  }

  // Makes the node the sum, and gives the product. Channels that the run may find not to be as many would broadcast.
  std::vector<std::unique_ptr<Node>> split(Node& node, const Affine& norm) {
    const std::optional<ir::SymDims>& dims = rdp_.known(*node.operands[0]).type.dims;
    if (!dims || dims->size() < 2 || dims->at(1).constant() != norm.channels() ||
        rdp_.known(*node.operands[0]).type.dtype != DType::f32)
      return {};
    Dims of_channels(dims->size() - 1, 1);
    of_channels[0] = norm.channels();
    auto number = [](double value) { return static_cast<float>(value); };
    std::vector<float> scale, shift;
    std::ranges::transform(norm.scale, std::back_inserter(scale), number);
    std::ranges::transform(norm.shift, std::back_inserter(shift), number);
    auto product = std::make_unique<Node>();
    product->op = ops::op_set().find("mul");
    product->operands = {node.operands[0], constant("scale", scale, of_channels)};
    product->source = node.source;
    node.op = ops::op_set().find("add");
    node.operands = {product->add_result(node.results[0]->name), constant("shift", shift, of_channels)};
    node.attrs = {};
    std::vector<std::unique_ptr<Node>> before;
    before.push_back(std::move(product));
    return before;
  }

  Value* constant(std::string_view name, const std::vector<float>& values, const Dims& dims) {
    return module_.add_constant(name, Tensor::from<float>(DType::f32, dims, values));
  }

  ir::Module& module_;
  const analysis::Rdp& rdp_;
  std::map<const Value*, size_t> uses_;
  std::map<const Node*, const ir::Region*> homes_;
};

}  // namespace

// batch_normalization(conv(x, w, b), s, t, m, v) => conv(x, w · f, b · f + t - m · f), f = s / sqrt(v + epsilon);
// conv(x, w, b) · s + t => conv(x, w · s, b · s + t); batch_normalization(x, s, t, m, v) => x · f + (t - m · f)
bool channel_scales(ir::Module& module) {
  bool found = false;
  ir::for_each_node(module.main().body, [&](const Node& node) {
    found = found || norm_of(node) || node.op->name == "conv" || node.op->name == "conv_transpose";
  });
  if (!found) return false;
  analysis::Rdp rdp(module);
  if (!Folder(module, rdp).run(module.main().body)) return false;
  run_pass(*find_pass("dead_code"), module);
  return true;
}

}  // namespace selkie::passes
