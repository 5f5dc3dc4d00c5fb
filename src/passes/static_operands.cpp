#include "passes/static_operands.h"

#include <algorithm>

#include "ir/signature.h"

namespace selkie::passes {
namespace {

class Writer {
 public:
  Writer(const analysis::Rdp& rdp, Wanted wanted) : rdp_(rdp), wanted_(wanted) {}

  bool region(ir::Region& region) {
    if (rdp_.region(region).entry != analysis::Entry::possible) return false;
    bool changed = false;
    for (auto& node : region.nodes) {
      for (size_t i = 0; i < std::min(node->operands.size(), node->op->operands.size()); ++i)
        changed = operand(*node, i) || changed;
      for (auto& inner : node->regions) changed = this->region(*inner) || changed;
    }
    return changed;
  }

 private:
  // Whether the elements of an operand are known and can stand on the node.
  bool known(const ir::Node& node, size_t i) {
    const ir::Operand& record = node.op->operands[i];
    const ir::Value* value = node.operands[i];
    bool cause = std::ranges::find(node.op->dynamism.causes, record.name) != node.op->dynamism.causes.end();
    if (!cause || value == nullptr || node.op->find_attr(record.name) != nullptr || !node.regions.empty()) return false;
    const ir::Known& found = rdp_.known(*value);
    return rdp_.shape_determined(*value) && found.contents && found.contents->complete() && found.type.dims &&
           found.type.dims->size() <= 1 && !is_float(found.type.dtype) && found.type.dtype != DType::boolean &&
           record.type.dtypes.contains(DType::i64) &&
           std::ranges::all_of(found.contents->elements, [&](sym::Expr e) { return names_declared_dims(e); });
  }

  // Symbols that only this analysis made, as for inputs of unknown rank, mean nothing on the node.
  bool names_declared_dims(sym::Expr e) const {
    std::vector<sym::Expr> symbols;
    sym::collect_symbols(e, symbols);
    return std::ranges::all_of(symbols, [&](sym::Expr s) {
      const analysis::SymbolInfo* info = rdp_.symbol(s);
      if (info == nullptr || info->kind != analysis::SymbolInfo::Kind::input_dim) return false;
      const std::optional<ir::SymDims>& dims = info->value->type.dims;
      return dims && info->axis < dims->size() && (*dims)[info->axis] == s;
    });
  }

  bool operand(ir::Node& node, size_t i) {
    if (!known(node, i) || !wanted_(rdp_.known(*node.operands[i]).contents->elements)) return false;
    // What stands on the node is i64, and operands of one type variable have one dtype: others of i32 go with it.
    std::vector<size_t> together{i};
    const std::string_view variable = node.op->operands[i].type.name;
    if (!variable.empty() && rdp_.known(*node.operands[i]).type.dtype != DType::i64) {
      for (size_t k = 0; k < node.operands.size(); ++k) {
        if (k == i || node.operands[k] == nullptr) continue;
        if (ir::operand_record(node.op->operands, k)->type.name != variable) continue;
        if (k >= node.op->operands.size() || !known(node, k)) return false;
        together.push_back(k);
      }
      if (std::ranges::any_of(node.op->results, [&](const ir::Result& r) { return r.type.name == variable; }))
        return false;
    }
    for (size_t k : together) write(node, k);
    return true;
  }

  void write(ir::Node& node, size_t i) {
    const ir::Known& found = rdp_.known(*node.operands[i]);
    node.attrs.set(node.op->operands[i].name,
                   ir::SymbolicInts{.elements = found.contents->elements, .scalar = found.type.dims->empty()});
    node.operands[i] = nullptr;
  }

  const analysis::Rdp& rdp_;
  Wanted wanted_;
};

}  // namespace

bool write_static_operands(ir::Module& module, Wanted wanted) {
  analysis::Rdp rdp(module);
  return Writer(rdp, wanted).region(module.main().body);
}

}  // namespace selkie::passes
