// convolutions_of_phases: every second pixel of every second line is a phase of an image. A convolution of all phases,
// side by side as channels, is one of the image itself, by a larger window with a larger stride: the same products, and
// the phases need not be stored.
#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "analysis/rdp.h"
#include "ops/registry.h"
#include "passes/pass.h"

namespace selkie::passes {
namespace {

using ir::Node;
using ir::Value;
using Ints = std::vector<int64_t>;

// Channels of an image. Phases of more of them have enough channels for faster kernels, of small windows.
constexpr int64_t most_channels = 4;
constexpr size_t axes = 2;

// Elements start, start + step, … along each axis of a plane.
struct Phase {
  std::array<int64_t, axes> start{0, 0};
  std::array<int64_t, axes> step{1, 1};
};

struct Phases {
  Value* image;
  int64_t channels;  // of the image
  std::array<int64_t, axes> steps;
  std::vector<Phase> all;  // in the order of their channels
};

Ints given(const Node& node, std::string_view name, size_t count, int64_t otherwise) {
  const ir::Attribute* found = node.attrs.find(name);
  return found == nullptr ? Ints(count, otherwise) : std::get<Ints>(*found);
}

class Matcher {
 public:
  Matcher(const ir::Module& module, const analysis::Rdp& rdp) : rdp_(rdp) { count_uses(module.main().body); }

  std::optional<Phases> phases(const Node& convolution, const ir::Region& region) const {
    if (!is_plain(convolution)) return std::nullopt;
    const Node* joined = convolution.operands[0]->node;
    if (joined == nullptr || uses_.at(joined->results[0].get()) > 1 || checks_sizes(*joined, region))
      return std::nullopt;
    std::optional<Phases> found = joined->op->name == "concat"           ? of_slices(*joined, region)
                                  : joined->op->name == "space_to_depth" ? of_blocks(*joined)
                                                                         : std::nullopt;
    int64_t inputs = convolution.operands[1]->constant->dims[1];
    bool fits = found && are_all(*found) && found->channels * static_cast<int64_t>(found->all.size()) == inputs;
    return fits ? found : std::nullopt;
  }

 private:
  void count_uses(const ir::Region& region) {
    for (const Value* value : region.yields) ++uses_[value];
    for (const auto& node : region.nodes) {
      for (const Value* operand : node->operands) ++uses_[operand];
      for (const auto& inner : node->regions) count_uses(*inner);
    }
  }

  // A convolution of planes by constant weights, without gaps between taps.
  static bool is_plain(const Node& node) {
    if (node.op->name != "conv" || node.operands[1]->constant == nullptr) return false;
    const ir::Constant& weights = *node.operands[1]->constant;
    const ir::Attribute* group = node.attrs.find("group");
    const ir::Attribute* auto_pad = node.attrs.find("auto_pad");
    return weights.dtype == DType::f32 && weights.dims.size() == axes + 2 && element_count(weights.dims) > 0 &&
           (group == nullptr || std::get<int64_t>(*group) == 1) &&
           (auto_pad == nullptr || std::get<std::string>(*auto_pad) == "NOTSET") &&
           given(node, "dilations", axes, 1) == Ints(axes, 1) && given(node, "strides", axes, 1).size() == axes &&
           given(node, "pads", 2 * axes, 0).size() == 2 * axes;
  }

  // Whether only the run tells that phases are of one size: then the node that joins them says so.
  bool checks_sizes(const Node& node, const ir::Region& region) const {
    const auto& checks = region.parent == nullptr ? rdp_.later_checks() : rdp_.region(region).checks;
    std::string source = node.source.empty() ? node.describe() : node.source;
    return std::ranges::any_of(checks, [&](const analysis::Check& check) { return check.source == source; });
  }

  std::optional<Phases> of_image(Value& image) const {
    const ir::Type& type = rdp_.known(image).type;
    if (!type.is_tensor() || !type.dims || type.dims->size() != axes + 2) return std::nullopt;
    std::optional<int64_t> channels = (*type.dims)[1].constant();
    if (!channels || *channels > most_channels) return std::nullopt;
    return Phases{.image = &image, .channels = *channels, .steps = {}, .all = {}};
  }

  std::optional<Phases> of_slices(const Node& concat, const ir::Region& region) const {
    const ir::Attribute* axis = concat.attrs.find("axis");
    int64_t joined = axis == nullptr ? 0 : std::get<int64_t>(*axis);
    if (joined != 1 && joined != 1 - static_cast<int64_t>(axes + 2)) return std::nullopt;
    std::optional<Phases> found;
    for (Value* operand : concat.operands) {
      Phase phase;
      Value* image = operand;
      while (image->node != nullptr && image->node->op->name == "slice") {
        if (!cut(*image->node, region, phase)) return std::nullopt;
        image = image->node->operands[0];
      }
      if (!found) found = of_image(*image);
      if (!found || found->image != image) return std::nullopt;
      found->all.push_back(phase);
    }
    if (found) found->steps = found->all[0].step;
    return found;
  }

  // What a slice does to a plane, if it goes through to its end in steps.
  bool cut(const Node& slice, const ir::Region& region, Phase& phase) const {
    auto numbers = [&](size_t operand, int64_t otherwise, size_t count) -> std::optional<Ints> {
      const ir::SymbolicInts* found = slice.static_operand(operand);
      bool is_left_out = operand >= slice.operands.size() || slice.operands[operand] == nullptr;
      if (found == nullptr) return is_left_out && operand == 4 ? std::optional(Ints(count, otherwise)) : std::nullopt;
      Ints out;
      for (sym::Expr e : found->elements) {
        std::optional<int64_t> number = e.constant();
        if (!number) return std::nullopt;
        out.push_back(*number);
      }
      return out;
    };
    std::optional<Ints> starts = numbers(1, 0, 0);
    std::optional<Ints> ends = numbers(2, 0, 0);
    std::optional<Ints> cut_axes = numbers(3, 0, 0);
    if (!starts || !ends || !cut_axes) return false;
    std::optional<Ints> steps = numbers(4, 1, starts->size());
    size_t count = starts->size();
    if (!steps || ends->size() != count || cut_axes->size() != count || steps->size() != count) return false;
    const std::optional<ir::SymDims>& dims = rdp_.known(*slice.operands[0]).type.dims;
    if (!dims || dims->size() != axes + 2) return false;
    const sym::Facts& facts = rdp_.region(region).facts;
    for (size_t i = 0; i < count; ++i) {
      int64_t axis = (*cut_axes)[i] < 0 ? (*cut_axes)[i] + static_cast<int64_t>(dims->size()) : (*cut_axes)[i];
      if (axis < 2 || axis >= static_cast<int64_t>(dims->size())) return false;
      sym::Expr size = (*dims)[static_cast<size_t>(axis)];
      bool to_the_end = (*ends)[i] == std::numeric_limits<int64_t>::max() ||
                        facts.prove_less_equal(size, size.context().constant((*ends)[i])) == sym::Truth::yes;
      auto plane_axis = static_cast<size_t>(axis - 2);
      if (!to_the_end || (*steps)[i] < 1 || (*starts)[i] < 0 || phase.step[plane_axis] != 1) return false;
      phase.start[plane_axis] = (*starts)[i];
      phase.step[plane_axis] = (*steps)[i];
    }
    return true;
  }

  std::optional<Phases> of_blocks(const Node& node) const {
    std::optional<Phases> found = of_image(*node.operands[0]);
    if (!found) return std::nullopt;
    int64_t side = std::get<int64_t>(*node.attrs.find("blocksize"));
    if (side < 1 || side > most_side) return std::nullopt;
    found->steps.fill(side);
    for (int64_t down = 0; down < side; ++down)
      for (int64_t across = 0; across < side; ++across)
        found->all.push_back({.start = {down, across}, .step = found->steps});
    return found;
  }

  // Each phase once: then there are as many products as before.
  static bool are_all(const Phases& phases) {
    if (std::ranges::any_of(phases.steps, [](int64_t step) { return step > most_side; })) return false;
    int64_t count = phases.steps[0] * phases.steps[1];
    if (count < 2 || count != static_cast<int64_t>(phases.all.size())) return false;
    std::vector<bool> seen(phases.all.size());
    for (const Phase& phase : phases.all) {
      if (phase.step != phases.steps || phase.start[0] >= phase.step[0] || phase.start[1] >= phase.step[1])
        return false;
      auto place = static_cast<size_t>(phase.start[0] * phase.step[1] + phase.start[1]);
      if (seen[place]) return false;
      seen[place] = true;
    }
    return true;
  }

  static constexpr int64_t most_side = 16;

  const analysis::Rdp& rdp_;
  std::map<const Value*, size_t> uses_;
};

// Each tap of each phase where the image has it.
Tensor spread(const ir::Constant& weights, const Phases& phases) {
  Tensor from = weights.tensor();
  int64_t filters = from.dims()[0];
  int64_t down = from.dims()[2];
  int64_t across = from.dims()[3];
  auto [step_down, step_across] = phases.steps;
  Tensor out(DType::f32, {filters, phases.channels, down * step_down, across * step_across});
  const float* next = from.data<float>();
  float* to = out.mutable_data<float>();
  for (int64_t filter = 0; filter < filters; ++filter)
    for (const Phase& phase : phases.all)
      for (int64_t channel = 0; channel < phases.channels; ++channel)
        for (int64_t i = 0; i < down; ++i)
          for (int64_t j = 0; j < across; ++j) {
            int64_t line = (filter * phases.channels + channel) * down * step_down + i * step_down + phase.start[0];
            to[line * across * step_across + j * step_across + phase.start[1]] = *next++;
          }
  return out;
}

void rewrite(ir::Module& module, Node& node, const Phases& phases) {
  Tensor weights = spread(*node.operands[1]->constant, phases);
  Ints strides = given(node, "strides", axes, 1);
  Ints pads = given(node, "pads", 2 * axes, 0);
  for (size_t i = 0; i < axes; ++i) strides[i] *= phases.steps[i];
  for (size_t i = 0; i < 2 * axes; ++i) pads[i] *= phases.steps[i % axes];
  node.attrs.set("kernel_shape", Ints{weights.dims()[2], weights.dims()[3]});
  node.attrs.set("strides", strides);
  node.attrs.set("pads", pads);
  node.operands[0] = phases.image;
  node.operands[1] = module.add_constant(node.operands[1]->name, std::move(weights));
}

bool rewrite_all(ir::Module& module, ir::Region& region, const Matcher& matcher) {
  bool changed = false;
  for (auto& node : region.nodes) {
    for (auto& inner : node->regions) changed = rewrite_all(module, *inner, matcher) || changed;
    if (std::optional<Phases> phases = matcher.phases(*node, region)) {
      rewrite(module, *node, *phases);
      changed = true;
    }
  }
  return changed;
}

bool joins_phases(const ir::Region& region) {
  bool found = false;
  ir::for_each_node(region, [&](const Node& node) {
    const Node* joined = node.op->name == "conv" ? node.operands[0]->node : nullptr;
    found = found || (joined != nullptr && (joined->op->name == "concat" || joined->op->name == "space_to_depth"));
  });
  return found;
}

}  // namespace

// conv(concat(x[::2, ::2], x[1::2, ::2], x[::2, 1::2], x[1::2, 1::2]), w) => conv(x, w') {strides = [2, 2]}
bool convolutions_of_phases(ir::Module& module) {
  if (!joins_phases(module.main().body)) return false;
  analysis::Rdp rdp(module);
  return rewrite_all(module, module.main().body, Matcher(module, rdp));
}

}  // namespace selkie::passes
