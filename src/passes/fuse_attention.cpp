// fuse_attention: a softmax between two matrix products becomes one node, which stores no scores.
#include <algorithm>
#include <limits>
#include <map>

#include "analysis/rdp.h"
#include "ops/registry.h"

namespace selkie::passes {
namespace {

using ir::Node;
using ir::Value;

// What was found on the way from the weighted sum up to the scores.
struct Match {
  Value* query = nullptr;
  Value* key_transposed = nullptr;
  Value* value = nullptr;
  Value* mask = nullptr;
  double mask_scale = 1;              // of a mask that is added
  std::optional<float> masked_score;  // of one of booleans
  double scale = 1;
};

class Matcher {
 public:
  Matcher(const analysis::Rdp& rdp, const ir::Region& region) : rdp_(rdp), region_(region) {
    ir::for_each_node(region, [&](const Node& node) {
      for (const Value* operand : node.operands) ++uses_[operand];
      for (const auto& inner : node.regions)
        for (const Value* value : inner->yields) ++uses_[value];
    });
    for (const Value* value : region.yields) ++uses_[value];
  }

  std::optional<Match> match(const Node& node) const {
    if (node.op->name != "matmul" || !is_heads(*node.results[0]) || !is_heads(*node.operands[1])) return std::nullopt;
    const Node* softmax = only_use(node.operands[0], "softmax");
    if (softmax == nullptr || !is_over_last(*softmax)) return std::nullopt;
    Match match{.value = node.operands[1]};
    const Value* scores = softmax->operands[0];
    const ir::SymDims dims = *type(*scores).dims;
    while (const Node* step = only_use(scores, "")) {
      if (step->op->name == "matmul") {
        match.query = step->operands[0];
        match.key_transposed = step->operands[1];
        bool heads = is_heads(*match.query) && is_heads(*match.key_transposed) && is_mask(*scores, DType::f32, dims);
        return heads && same_heads(match) ? std::optional(match) : std::nullopt;
      }
      scores = before(*step, dims, match);
      if (scores == nullptr) return std::nullopt;
    }
    return std::nullopt;
  }

 private:
  const ir::Type& type(const Value& value) const { return rdp_.known(value).type; }
  bool is_heads(const Value& value) const {
    const ir::Type& t = type(value);
    return t.is_tensor() && t.dtype == DType::f32 && t.dims && t.dims->size() == 4;
  }
  bool equal(sym::Expr a, sym::Expr b) const { return rdp_.region(region_).facts.prove_equal(a, b) == sym::Truth::yes; }
  // Batch and heads are not broadcast.
  bool same_heads(const Match& m) const {
    for (size_t axis : {0, 1})
      for (const Value* other : {m.key_transposed, m.value})
        if (!equal((*type(*m.query).dims)[axis], (*type(*other).dims)[axis])) return false;
    return true;
  }

  // The node that makes a value which is used once, if it is of this operator; any, without a name.
  const Node* only_use(const Value* value, std::string_view op) const {
    if (value == nullptr || value->node == nullptr || uses_.at(value) != 1) return nullptr;
    if (!std::ranges::any_of(region_.nodes, [&](const auto& n) { return n.get() == value->node; })) return nullptr;
    return op.empty() || value->node->op->name == op ? value->node : nullptr;
  }

  static bool is_over_last(const Node& softmax) {
    const ir::Attribute* axis = softmax.attrs.find("axis");
    if (axis == nullptr) return true;  // the last one by default
    return std::get<int64_t>(*axis) == -1 || std::get<int64_t>(*axis) == 3;
  }

  static std::optional<double> number(const Value* value) {
    if (value == nullptr || value->constant == nullptr || value->constant->dtype != DType::f32) return std::nullopt;
    if (element_count(value->constant->dims) != 1 || value->constant->dims.size() > 4) return std::nullopt;
    return value->constant->tensor().data<float>()[0];
  }

  // f32 to be added, or booleans of what counts; not one that makes the scores larger.
  bool is_mask(const Value& mask, DType dtype, const ir::SymDims& dims) const {
    const ir::Type& t = type(mask);
    if (!t.is_tensor() || t.dtype != dtype || !t.dims || t.dims->empty() || t.dims->size() > 4) return false;
    size_t shift = 4 - t.dims->size();
    for (size_t i = 0; i < t.dims->size(); ++i) {
      bool one = i + 1 < t.dims->size() && (*t.dims)[i].constant() == 1;
      if (!one && !equal((*t.dims)[i], dims[shift + i])) return false;
    }
    return true;
  }

  // The scores before a scaling or a mask, which it takes into the match; null if the step is neither.
  const Value* before(const Node& step, const ir::SymDims& dims, Match& match) const {
    std::string_view op = step.op->name;
    if (op == "where") {
      std::optional<double> otherwise = number(step.operands[2]);
      if (match.mask != nullptr || !otherwise || !is_mask(*step.operands[0], DType::boolean, dims)) return nullptr;
      match.mask = step.operands[0];
      match.masked_score = static_cast<float>(*otherwise * match.scale);  // as what is scaled after it
      return step.operands[1];
    }
    for (size_t i : {0, 1}) {
      if (op != "add" && op != "mul" && (op != "div" || i == 1)) return nullptr;
      Value* other = step.operands[1 - i];
      if (op == "add") {
        if (match.mask != nullptr || !is_mask(*other, DType::f32, dims)) continue;
        match.mask = other;
        match.mask_scale = match.scale;
        return step.operands[i];
      }
      std::optional<double> factor = number(other);
      if (!factor || *factor == 0) continue;
      match.scale *= op == "mul" ? *factor : 1 / *factor;
      return step.operands[i];
    }
    return nullptr;
  }

  const analysis::Rdp& rdp_;
  const ir::Region& region_;
  std::map<const Value*, size_t> uses_;
};

// The keys as attention wants them: a transposition, which is undone by the one that made them.
std::unique_ptr<Node> transposition(Value* keys, const ir::Type& type) {
  auto node = std::make_unique<Node>();
  node->op = ops::op_set().find("transpose");
  node->operands = {keys};
  node->attrs.set("perm", std::vector<int64_t>{0, 1, 3, 2});
  ir::SymDims dims = *type.dims;
  std::swap(dims[2], dims[3]);
  node->add_result(keys->name, ir::Type::tensor(type.dtype, dims));
  return node;
}

// A mask that is scaled with the scores it was added to.
std::unique_ptr<Node> scaled(ir::Module& module, Value* mask, double scale) {
  auto node = std::make_unique<Node>();
  std::vector<float> number{static_cast<float>(scale)};
  node->op = ops::op_set().find("mul");
  node->operands = {mask, module.add_constant("scale", Tensor::from<float>(DType::f32, {}, number))};
  node->add_result(mask->name);
  return node;
}

bool fuse(ir::Module& module, const analysis::Rdp& rdp, ir::Region& region) {
  if (rdp.region(region).entry != analysis::Entry::possible) return false;
  bool changed = false;
  Matcher matcher(rdp, region);
  for (size_t i = 0; i < region.nodes.size(); ++i) {
    Node& node = *region.nodes[i];
    for (auto& inner : node.regions) changed = fuse(module, rdp, *inner) || changed;
    std::optional<Match> match = matcher.match(node);
    if (!match) continue;
    auto insert = [&](std::unique_ptr<Node> before) {
      before->source = node.source;
      Value* result = before->results[0].get();
      region.nodes.insert(region.nodes.begin() + static_cast<std::ptrdiff_t>(i++), std::move(before));
      return result;
    };
    Value* keys = insert(transposition(match->key_transposed, rdp.known(*match->key_transposed).type));
    if (match->mask != nullptr && match->mask_scale != 1)
      match->mask = insert(scaled(module, match->mask, match->mask_scale));
    node.op = ops::op_set().find("attention");
    node.operands = {match->query, keys, match->value};
    if (match->mask != nullptr) node.operands.push_back(match->mask);
    node.attrs.set("scale", static_cast<float>(match->scale));
    bool is_infinite = match->masked_score == -std::numeric_limits<float>::infinity();
    if (match->masked_score && !is_infinite) node.attrs.set("masked_score", *match->masked_score);
    changed = true;
  }
  return changed;
}

}  // namespace

// matmul(softmax(add(mul(matmul(q, transpose(k)), c), mask)), v) => attention(q, k, v, mask) {scale = c}
bool fuse_attention(ir::Module& module) {
  analysis::Rdp rdp(module);
  return fuse(module, rdp, module.main().body);
}

}  // namespace selkie::passes
