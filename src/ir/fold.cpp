#include "ir/fold.h"

#include "ir/eval_context.h"
#include "ir/signature.h"

namespace selkie::ir {

bool are_typed(const Node& node, std::span<const Known> operands) {
  for (size_t i = 0; i < operands.size(); ++i) {
    const Operand* record = operand_record(node.op->operands, i);
    if (node.operands[i] != nullptr && record->container == Container::tensor && !operands[i].type.is_tensor())
      return false;
  }
  return true;
}

std::optional<std::vector<Known>> fold(const Node& node, std::span<const Known> operands, sym::Context& symbols) {
  const OpDef& op = *node.op;
  if (!op.eval || !op.deterministic || !node.regions.empty() || node.operands.empty()) return std::nullopt;
  std::vector<HostValue> numbers;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (node.operands[i] == nullptr && operands[i].type.is_unknown()) {
      numbers.emplace_back();
      continue;
    }
    std::optional<Tensor> tensor = tensor_of(operands[i]);
    if (!tensor) return std::nullopt;
    numbers.emplace_back(std::move(*tensor));
  }
  try {
    EvalContext context(op, node.attrs, numbers, node.results.size(), no_services(), &node);
    std::vector<Known> results;
    for (const HostValue& result : evaluate(context)) {
      Known& known = results.emplace_back();
      if (!result.is_tensor()) continue;
      SymDims dims;
      for (int64_t d : result.tensor().dims()) dims.push_back(symbols.constant(d));
      known = {.type = Type::tensor(result.tensor().dtype(), std::move(dims)),
               .contents = contents_of(result.tensor(), symbols)};
    }
    return results;
  } catch (const Error&) {
    return std::nullopt;  // it fails at run time, if it is reached
  }
}

}  // namespace selkie::ir
