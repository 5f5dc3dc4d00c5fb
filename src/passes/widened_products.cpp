// widened_products: products and convolutions of f16 and bf16 are computed in f32, for which there are library kernels.
// What is stored around them stays small: results are narrowed while they are in cache.
#include <algorithm>

#include "analysis/rdp.h"
#include "base/float_formats.h"
#include "ops/registry.h"
#include "passes/rewriting.h"

namespace selkie::passes {
namespace {

using ir::Node;
using ir::Value;

constexpr DTypeSet small_floats{DType::f16, DType::bf16};

class Widening {
 public:
  Widening(ir::Module& module, const analysis::Rdp& rdp) : module_(module), rdp_(rdp) {}

  bool run(ir::Region& region) {
    if (rdp_.region(region).entry != analysis::Entry::possible) return false;
    bool changed = false;
    for (size_t i = 0; i < region.nodes.size(); ++i) {
      for (auto& inner : region.nodes[i]->regions) changed = run(*inner) || changed;
      if (!is_small_product(*region.nodes[i])) continue;
      i += widen(region, i);
      changed = true;
    }
    return changed;
  }

 private:
  bool is_small_product(const Node& node) const {
    constexpr std::array<std::string_view, 4> products{"matmul", "gemm", "conv", "conv_transpose"};
    return std::ranges::find(products, node.op->name) != products.end() &&
           small_floats.contains(rdp_.known(*node.results[0]).type.dtype);
  }

  static std::unique_ptr<Node> cast(Value* value, DType to, const Node& like) {
    auto node = std::make_unique<Node>();
    node->op = ops::op_set().find("cast");
    node->operands = {value};
    node->attrs.set("to", onnx_number(to));
    node->source = like.source;
    return node;
  }

  // The constant in f32: it is converted here, since constants are folded only if they are small.
  Value* widened(const ir::Constant& constant) {
    Value*& made = constants_[&constant];
    if (made != nullptr) return made;
    const std::vector<float>& numbers = numbers_of(constant.dtype);
    Tensor from = constant.tensor();
    Tensor to(DType::f32, constant.dims);
    std::ranges::transform(from.values<uint16_t>(), to.mutable_data<float>(), [&](uint16_t c) { return numbers[c]; });
    return made = module_.add_constant(constant.value.name, std::move(to));
  }

  // What each code of a small float stands for: weights are many, codes are few.
  const std::vector<float>& numbers_of(DType dtype) {
    std::vector<float>& numbers = numbers_[dtype];
    if (numbers.empty())
      for (uint32_t code = 0; code < 1 << 16; ++code)
        numbers.push_back(static_cast<float>(decode_float(dtype, static_cast<uint16_t>(code))));
    return numbers;
  }

  // Puts casts around node i, which keeps its place as the last of them; gives how many nodes are new.
  size_t widen(ir::Region& region, size_t i) {
    std::unique_ptr<Node> last = std::move(region.nodes[i]);
    auto product = std::make_unique<Node>();
    product->op = last->op;
    product->attrs = std::move(last->attrs);
    product->source = last->source;
    std::vector<std::unique_ptr<Node>> fresh;
    for (Value* operand : last->operands) {
      if (operand != nullptr && operand->constant != nullptr) {
        operand = widened(*operand->constant);
      } else if (operand != nullptr) {
        fresh.push_back(cast(operand, DType::f32, *last));
        operand = fresh.back()->add_result(operand->name);
      }
      product->operands.push_back(operand);
    }
    last->op = ops::op_set().find("cast");
    last->attrs = {};
    last->attrs.set("to", onnx_number(rdp_.known(*last->results[0]).type.dtype));
    last->operands = {product->add_result(last->results[0]->name)};
    fresh.push_back(std::move(product));
    size_t count = fresh.size();
    region.nodes[i] = std::move(last);
    region.nodes.insert(region.nodes.begin() + static_cast<std::ptrdiff_t>(i), std::make_move_iterator(fresh.begin()),
                        std::make_move_iterator(fresh.end()));
    return count;
  }

  ir::Module& module_;
  const analysis::Rdp& rdp_;
  std::map<const ir::Constant*, Value*> constants_;
  std::map<DType, std::vector<float>> numbers_;
};

}  // namespace

// matmul(a, b) => cast(matmul(cast(a), cast(b))), and so gemm, conv and conv_transpose
bool widened_products(ir::Module& module) {
  analysis::Rdp rdp(module);
  return Widening(module, rdp).run(module.main().body);
}

}  // namespace selkie::passes
