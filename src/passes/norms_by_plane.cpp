// norms_by_plane: normalisations of planes, or of groups of them, as means of planes. One kernel would have to read
// each group again for every pixel where channels lie next to each other, as convolutions leave them; means of planes
// are vectors of channels there.
#include <map>
#include <numeric>

#include "analysis/rdp.h"
#include "ops/registry.h"
#include "passes/pass.h"
#include "passes/rewriting.h"

namespace selkie::passes {
namespace {

using ir::Node;
using ir::Value;

struct Parameter {
  Value* value;
  DType dtype;
  bool is_of_groups;  // and not of channels
};

struct Norm {
  Value* x;  // [samples, channels, axes of the plane…]
  DType dtype;
  size_t rank;
  int64_t channels, groups;
  float epsilon;
  Parameter scale, bias;
};

bool is_norm(const Node& node) {
  return node.op->name == "instance_normalization" || node.op->name == "group_normalization";
}

class Matcher {
 public:
  explicit Matcher(const analysis::Rdp& rdp) : rdp_(rdp) {}

  std::optional<Norm> plain(const Node& node) const {
    if (!is_norm(node)) return std::nullopt;
    std::optional<Norm> norm = of_input(*node.operands[0]);
    if (!norm) return std::nullopt;
    bool has_groups = node.op->name == "group_normalization";
    norm->groups = has_groups ? std::get<int64_t>(*node.attrs.find("num_groups")) : norm->channels;
    return complete(std::move(*norm), node);
  }

  // reshape(instance_normalization(reshape(x, [samples, groups, -1])), shape of x), as groups are written without their
  // operator.
  std::optional<Norm> reshaped(const Node& last) const {
    if (last.op->name != "reshape") return std::nullopt;
    const Node* norm_node = made_by(last, "instance_normalization");
    const Node* first = norm_node == nullptr ? nullptr : made_by(*norm_node, "reshape");
    std::optional<Norm> norm = first == nullptr ? std::nullopt : of_input(*first->operands[0]);
    if (!norm) return std::nullopt;
    const std::optional<ir::SymDims>& rows = type(*norm_node->operands[0]).dims;
    const std::optional<ir::SymDims>& result = type(*last.results[0]).dims;
    const ir::SymDims& x = *type(*norm->x).dims;
    if (!rows || rows->size() != 3 || !rows->at(1).constant() || rows->at(0) != x[0] || !result || *result != x)
      return std::nullopt;
    norm->groups = *rows->at(1).constant();
    return complete(std::move(*norm), *norm_node);
  }

 private:
  static const Node* made_by(const Node& node, std::string_view op) {
    const Node* before = node.operands[0]->node;
    return before != nullptr && before->op->name == op ? before : nullptr;
  }

  std::optional<Norm> of_input(Value& x) const {
    constexpr DTypeSet floats{DType::f32, DType::f16, DType::bf16};
    const ir::Type& known = type(x);
    if (!known.is_tensor() || !floats.contains(known.dtype) || !known.dims || known.dims->size() < 3 ||
        !known.dims->at(1).constant())
      return std::nullopt;
    return Norm{.x = &x,
                .dtype = known.dtype,
                .rank = known.dims->size(),
                .channels = *known.dims->at(1).constant(),
                .groups = 1,
                .epsilon = 0,
                .scale = {},
                .bias = {}};
  }

  std::optional<Norm> complete(Norm norm, const Node& node) const {
    if (norm.channels < 1 || norm.groups < 1 || norm.channels % norm.groups != 0) return std::nullopt;
    const ir::Attribute* epsilon = node.attrs.find("epsilon");
    norm.epsilon = epsilon == nullptr ? 1e-5F : std::get<float>(*epsilon);
    std::optional<Parameter> scale = parameter(norm, *node.operands[1]);
    std::optional<Parameter> bias = parameter(norm, *node.operands[2]);
    if (!scale || !bias) return std::nullopt;
    norm.scale = *scale;
    norm.bias = *bias;
    return norm;
  }

  // One number for each channel or each group.
  std::optional<Parameter> parameter(const Norm& norm, Value& value) const {
    const ir::Type& known = type(value);
    if (!known.dims || known.dims->size() != 1) return std::nullopt;
    std::optional<int64_t> count = known.dims->at(0).constant();
    if (count != norm.channels && count != norm.groups) return std::nullopt;
    return Parameter{.value = &value, .dtype = known.dtype, .is_of_groups = count != norm.channels};
  }

  const ir::Type& type(const Value& value) const { return rdp_.known(value).type; }

  const analysis::Rdp& rdp_;
};

// Sizes and axes as constants, each once.
class Sizes {
 public:
  explicit Sizes(ir::Module& module) : module_(module) {}

  Value* operator()(const std::vector<int64_t>& sizes) {
    Value*& made = made_[sizes];
    if (made == nullptr)
      made =
          module_.add_constant("sizes", Tensor::from<int64_t>(DType::i64, {static_cast<int64_t>(sizes.size())}, sizes));
    return made;
  }

 private:
  ir::Module& module_;
  std::map<std::vector<int64_t>, Value*> made_;
};

// Makes the steps that come before the last.
class Steps {
 public:
  Steps(ir::Module& module, Sizes& sizes, const Norm& norm, Node& last)
      : module_(module), sizes_(sizes), norm_(norm), last_(last) {}

  // Turns the node into the last step, and gives those before it.
  std::vector<std::unique_ptr<Node>> replace() {
    Value* x = widened(norm_.x, norm_.dtype);
    Value* mean = mean_of_groups(x);
    Value* mean_of_channels = to_channels(mean);
    Value* distance = step("sub", {x, mean_of_channels});
    Value* variance = mean_of_groups(step("mul", {distance, distance}));
    Value* deviation = step("sqrt", {step("add", {variance, number(norm_.epsilon)})});
    Value* factor = step("mul", {to_channels(step("div", {number(1), deviation})), of_channels(norm_.scale)});
    // Not the distance from above: to compute it again costs less than to store it.
    Value* scaled = step("mul", {step("sub", {x, mean_of_channels}), factor});
    Value* y = step("add", {scaled, of_channels(norm_.bias)});
    if (norm_.dtype != DType::f32) cast(y, norm_.dtype);
    std::unique_ptr<Node> made = std::move(steps_.back());
    steps_.pop_back();
    last_.op = made->op;
    last_.operands = std::move(made->operands);
    last_.attrs = std::move(made->attrs);
    return std::move(steps_);
  }

 private:
  Value* step(std::string_view op, std::vector<Value*> operands, ir::Attributes attrs = {}) {
    auto node = std::make_unique<Node>();
    node->op = ops::op_set().find(op);
    node->operands = std::move(operands);
    node->attrs = std::move(attrs);
    node->source = last_.source;
    Value* result = node->add_result(last_.results[0]->name);
    steps_.push_back(std::move(node));
    return result;
  }
  Value* number(float value) {
    return module_.add_constant("number", Tensor::from<float>(DType::f32, {}, {&value, 1}));
  }
  Value* cast(Value* value, DType dtype) {
    ir::Attributes attrs;
    attrs.set("to", onnx_number(dtype));
    return step("cast", {value}, std::move(attrs));
  }
  Value* widened(Value* value, DType dtype) { return dtype == DType::f32 ? value : cast(value, DType::f32); }
  Value* mean(Value* value, const std::vector<int64_t>& axes) { return step("reduce_mean", {value, sizes_(axes)}); }

  // One number for each, in the place of the channels: [samples, channels, 1…], or [samples, groups, 1]. Along the last
  // axis first: sums of fewer numbers are more exact, and threads can share the others.
  Value* mean_of_groups(Value* x) {
    Value* out = mean(x, {static_cast<int64_t>(norm_.rank) - 1});
    if (norm_.rank > 3) {
      std::vector<int64_t> others(norm_.rank - 3);
      std::iota(others.begin(), others.end(), 2);
      out = mean(out, others);
    }
    if (norm_.groups == norm_.channels) return out;
    Value* grouped = step("reshape", {out, sizes_({0, norm_.groups, norm_.channels / norm_.groups})});
    return mean(grouped, {2});
  }

  std::vector<int64_t> plane_of_ones(std::vector<int64_t> first) const {
    first.resize(first.size() + norm_.rank - 2, 1);
    return first;
  }
  Value* to_channels(Value* value) {
    if (norm_.groups == norm_.channels) return value;
    Value* repeated = step("expand", {value, sizes_({1, norm_.groups, norm_.channels / norm_.groups})});
    return step("reshape", {repeated, sizes_(plane_of_ones({0, norm_.channels}))});
  }

  // [channels, 1…]
  Value* of_channels(const Parameter& parameter) {
    Value* value = widened(parameter.value, parameter.dtype);
    if (parameter.is_of_groups) {
      value = step("reshape", {value, sizes_({norm_.groups, 1})});
      value = step("expand", {value, sizes_({norm_.groups, norm_.channels / norm_.groups})});
    }
    return step("reshape", {value, sizes_(plane_of_ones({norm_.channels}))});
  }

  ir::Module& module_;
  Sizes& sizes_;
  const Norm& norm_;
  Node& last_;
  std::vector<std::unique_ptr<Node>> steps_;
};

using Match = std::optional<Norm> (Matcher::*)(const Node&) const;

bool rewrite(ir::Module& module, Sizes& sizes, const analysis::Rdp& rdp, Match match, ir::Region& region) {
  if (rdp.region(region).entry != analysis::Entry::possible) return false;
  Matcher matcher(rdp);
  bool changed = false;
  for (size_t i = 0; i < region.nodes.size(); ++i) {
    for (auto& inner : region.nodes[i]->regions) changed = rewrite(module, sizes, rdp, match, *inner) || changed;
    std::optional<Norm> norm = (matcher.*match)(*region.nodes[i]);
    if (!norm) continue;
    std::vector<std::unique_ptr<Node>> before = Steps(module, sizes, *norm, *region.nodes[i]).replace();
    i = insert_before(region, i, std::move(before));
    changed = true;
  }
  return changed;
}

bool has_norms(const ir::Module& module) {
  bool found = false;
  ir::for_each_node(module.main().body, [&](const Node& node) { found |= is_norm(node); });
  return found;
}

}  // namespace

// instance_normalization(x, s, b) => (x - m) · s / sqrt(mean((x - m)²) + epsilon) + b, m = mean(x) of planes; likewise
// of groups of channels.
bool norms_by_plane(ir::Module& module) {
  bool changed = false;
  // Norms between reshapes first, which then are not used any more.
  for (Match match : {&Matcher::reshaped, &Matcher::plain}) {
    if (!has_norms(module)) break;
    analysis::Rdp rdp(module);
    Sizes sizes(module);
    if (!rewrite(module, sizes, rdp, match, module.main().body)) continue;
    run_pass(*find_pass("dead_code"), module);
    changed = true;
  }
  return changed;
}

}  // namespace selkie::passes
