// products_before_gathers: rows of tensors that are gathered, joined and multiplied by weights are multiplied first,
// each tensor by its part of the weights, where that is less work: where more rows are gathered than there are.
//
// Which it is shows in the sizes, so that there is a branch; facts may decide it (dead_arms). Both arms multiply by the
// same parts of the weights, so that these are kept once.
#include <algorithm>
#include <optional>

#include "analysis/rdp.h"
#include "ops/registry.h"
#include "passes/rewriting.h"

namespace selkie::passes {
namespace {

using ir::Node;
using ir::Region;
using ir::Value;
using Nodes = std::vector<std::unique_ptr<Node>>;

template <class T>
T attribute(const Node& node, std::string_view name, T otherwise) {
  const ir::Attribute* found = node.attrs.find(name);
  return found == nullptr ? otherwise : std::get<T>(*found);
}

// Rows of one tensor, and the part of the weights that multiplies them.
struct Part {
  Value* rows;
  Value* indices;
  int64_t columns;
};

struct Match {
  std::vector<Part> parts;
  const ir::Constant* weights;
  bool transposed;
  Value* added;  // or null
};

class Mover {
 public:
  Mover(ir::Module& module, const analysis::Rdp& rdp) : module_(module), rdp_(rdp) {}

  bool run(Region& region) {
    if (rdp_.region(region).entry != analysis::Entry::possible) return false;
    bool changed = false;
    for (size_t i = 0; i < region.nodes.size(); ++i) {
      for (auto& inner : region.nodes[i]->regions) changed = run(*inner) || changed;
      std::optional<Match> match = find(*region.nodes[i]);
      if (!match) continue;
      Nodes before = move(*region.nodes[i], *match);
      i = insert_before(region, i, std::move(before));
      changed = true;
    }
    return changed;
  }

 private:
  const ir::SymDims* dims_of(const Value& value, size_t rank) const {
    const ir::Type& type = rdp_.known(value).type;
    return type.is_tensor() && type.dims && type.dims->size() == rank ? &*type.dims : nullptr;
  }

  std::optional<Match> find(const Node& node) const {
    bool is_gemm = node.op->name == "gemm";
    if (!is_gemm && node.op->name != "matmul") return std::nullopt;
    if (attribute(node, "alpha", 1.0F) != 1 || attribute(node, "beta", 1.0F) != 1 ||
        attribute(node, "transA", int64_t{0}) != 0)
      return std::nullopt;
    const Value& weights = *node.operands[1];
    const Node* joined = node.operands[0]->node;
    if (weights.constant == nullptr || weights.constant->dtype != DType::f32 || weights.constant->dims.size() != 2 ||
        joined == nullptr || joined->op->name != "concat" || joined->operands.size() < 2)
      return std::nullopt;
    int64_t axis = attribute(*joined, "axis", int64_t{0});
    if ((axis != 1 && axis != -1) || dims_of(*node.operands[0], 2) == nullptr) return std::nullopt;
    Match match{.weights = weights.constant,
                .transposed = attribute(node, "transB", int64_t{0}) != 0,
                .added = is_gemm && node.operands.size() > 2 ? node.operands[2] : nullptr};
    for (Value* operand : joined->operands) {
      std::optional<Part> part = gathered(*operand);
      if (!part) return std::nullopt;
      match.parts.push_back(*part);
    }
    return match;
  }

  std::optional<Part> gathered(const Value& value) const {
    const Node* gather = value.node;
    if (gather == nullptr || gather->op->name != "gather" || attribute(*gather, "axis", int64_t{0}) != 0)
      return std::nullopt;
    Value* rows = gather->operands[0];
    const ir::SymDims* dims = dims_of(*rows, 2);
    if (rows->constant != nullptr || dims == nullptr || dims_of(*gather->operands[1], 1) == nullptr)
      return std::nullopt;
    std::optional<int64_t> columns = (*dims)[1].constant();
    if (!columns) return std::nullopt;
    return Part{.rows = rows, .indices = gather->operands[1], .columns = *columns};
  }

  static Value* add(Nodes& nodes, std::string_view op, std::vector<Value*> operands, const Node& like) {
    auto node = std::make_unique<Node>();
    node->op = ops::op_set().find(op);
    node->operands = std::move(operands);
    node->source = like.source;
    nodes.push_back(std::move(node));
    return nodes.back()->add_result(like.results[0]->name);
  }

  Value* number(int64_t value) {
    return module_.add_constant("count", Tensor::from<int64_t>(DType::i64, {}, {&value, 1}));
  }

  // Turns the node into the branch, and gives what computes its condition.
  Nodes move(Node& node, Match& match) {
    std::vector<Value*> weights = parts_of(match);
    Nodes before;
    require_equal_counts(before, node, match);
    Value* condition = is_less(before, node, match);
    Nodes first = products_first(node, match, weights);
    Nodes last = gathers_first(node, match, weights);
    node.op = ops::op_set().find("if");
    node.operands = {condition};
    node.attrs = {};
    for (Nodes* nodes : {&first, &last}) {
      Region& arm = node.add_region();
      arm.yields = {nodes->back()->results[0].get()};
      arm.nodes = std::move(*nodes);
    }
    return before;
  }

  // What is joined has as many rows in each part; a sum would repeat a single one.
  static void require_equal_counts(Nodes& nodes, const Node& node, Match& match) {
    Value* count = nullptr;
    for (Part& part : match.parts) {
      if (part.indices == match.parts[0].indices) continue;
      if (count == nullptr) count = add(nodes, "shape", {match.parts[0].indices}, node);
      part.indices = add(nodes, "reshape", {part.indices, count}, node);
      nodes.back()->attrs.set("allowzero", int64_t{1});
    }
  }

  // Whether all rows take less work than those that are gathered, and by so much that it pays.
  Value* is_less(Nodes& nodes, const Node& node, const Match& match) {
    Value* zero = number(0);
    auto products = [&](Value* of, int64_t each) {
      Value* rows = add(nodes, "gather", {add(nodes, "shape", {of}, node), zero}, node);
      return add(nodes, "mul", {rows, number(each)}, node);
    };
    int64_t depth = 0;
    Value* sum = nullptr;
    for (const Part& part : match.parts) {
      depth += part.columns;
      Value* all = products(part.rows, 5 * part.columns);
      sum = sum == nullptr ? all : add(nodes, "add", {sum, all}, node);
    }
    return add(nodes, "less", {sum, products(match.parts[0].indices, 4 * depth)}, node);
  }

  static Value* product(Nodes& nodes, const Node& node, const Match& match, std::vector<Value*> operands) {
    Value* result = add(nodes, "gemm", std::move(operands), node);
    if (match.transposed) nodes.back()->attrs.set("transB", int64_t{1});
    return result;
  }

  static Nodes products_first(const Node& node, const Match& match, const std::vector<Value*>& weights) {
    Nodes nodes;
    Value* sum = match.added;
    for (size_t i = 0; i < match.parts.size(); ++i) {
      const Part& part = match.parts[i];
      Value* all = product(nodes, node, match, {part.rows, weights[i]});
      Value* some = add(nodes, "gather", {all, part.indices}, node);
      sum = sum == nullptr ? some : add(nodes, "add", {some, sum}, node);
    }
    return nodes;
  }

  static Nodes gathers_first(const Node& node, const Match& match, const std::vector<Value*>& weights) {
    Nodes nodes;
    Value* sum = nullptr;
    for (size_t i = 0; i < match.parts.size(); ++i) {
      const Part& part = match.parts[i];
      std::vector<Value*> factors{add(nodes, "gather", {part.rows, part.indices}, node), weights[i]};
      if (i == 0 && match.added != nullptr) factors.push_back(match.added);
      Value* one = product(nodes, node, match, std::move(factors));
      sum = sum == nullptr ? one : add(nodes, "add", {one, sum}, node);
    }
    return nodes;
  }

  std::vector<Value*> parts_of(const Match& match) {
    Tensor whole = match.weights->tensor();
    size_t down = match.transposed ? 1 : 0;
    int64_t columns = whole.dims()[1 - down];
    std::vector<Value*> parts;
    int64_t first = 0;
    for (const Part& part : match.parts) {
      Tensor made(DType::f32, match.transposed ? Dims{columns, part.columns} : Dims{part.columns, columns});
      const float* from = whole.data<float>();
      auto* to = made.mutable_data<float>();
      if (match.transposed)
        for (int64_t row = 0; row < columns; ++row, to += part.columns)
          std::copy_n(from + row * whole.dims()[1] + first, part.columns, to);
      else
        std::copy_n(from + first * columns, part.columns * columns, to);
      first += part.columns;
      parts.push_back(module_.add_constant(match.weights->value.name, std::move(made)));
    }
    return parts;
  }

  ir::Module& module_;
  const analysis::Rdp& rdp_;
};

}  // namespace

// matmul(concat(gather(x, i), gather(y, j)) {axis = 1}, w)
//   => if(rows of x and y < those of i) then gather(x·w₀, i) + gather(y·w₁, j) else gather(x, i)·w₀ + gather(y, j)·w₁
bool products_before_gathers(ir::Module& module) {
  analysis::Rdp rdp(module);
  return Mover(module, rdp).run(module.main().body);
}

}  // namespace selkie::passes
