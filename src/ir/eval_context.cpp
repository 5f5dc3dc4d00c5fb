#include "ir/eval_context.h"

#include <map>

#include "ir/signature.h"

namespace selkie::ir {

const HostValue& EvalContext::operand(size_t i) const {
  if (!has(i)) {
    const Operand* record = operand_record(op_.operands, i);
    fail("operand '{}' is needed here, but was left out", record ? record->name : "?");
  }
  return operands_[i];
}

const Attribute* EvalContext::find(std::string_view name) const {
  if (const Attribute* found = attrs_.find(name)) return found;
  const AttrDef* def = op_.find_attr(name);
  CHECK(def != nullptr, "{} has no attribute '{}'", op_.name, name);
  return def->fallback ? &*def->fallback : nullptr;
}

DType EvalContext::attr_dtype(std::string_view name) const {
  int64_t code = attr_int(name);
  std::optional<DType> dtype = dtype_from_onnx(code);
  if (!dtype) fail("attribute '{}' is {}, which is not an element type", name, code);
  return *dtype;
}

namespace {

bool container_matches(Container container, const HostValue& value) {
  switch (container) {
    case Container::tensor:
      return value.is_tensor();
    case Container::seq:
      return value.is_sequence();
    case Container::opt:
      return value.is_optional();
    case Container::map:
      return value.is_map();
    case Container::any:
      return true;
  }
  return false;
}

void check_operands(const EvalContext& context) {
  const OpDef& op = context.op();
  if (auto problem = arity_problem(op.operands, context.operand_count(), "operands")) throw Error(*problem);
  std::map<std::string_view, std::pair<DType, std::string_view>> bound;
  for (size_t i = 0; i < context.operand_count(); ++i) {
    const Operand& record = *operand_record(op.operands, i);
    if (!context.has(i)) {
      if (record.arity == Arity::required) fail("operand '{}' is missing", record.name);
      continue;
    }
    const HostValue& value = context.operand(i);
    if (!container_matches(record.container, value))
      fail("operand '{}' must be {}, but is {}", record.name, name(record.container), value.describe());
    if (record.container != Container::tensor) continue;
    DType dtype = value.tensor().dtype();
    if (!record.type.dtypes.contains(dtype))
      fail("operand '{}' is of type {}, but must be one of {}", record.name, name(dtype),
           to_string(record.type.dtypes));
    if (record.type.name.empty()) continue;
    auto [at, fresh] = bound.emplace(record.type.name, std::pair(dtype, record.name));
    if (!fresh && at->second.first != dtype)
      fail("operand '{}' is of type {}, but must be {} like operand '{}'", record.name, name(dtype),
           name(at->second.first), at->second.second);
  }
}

}  // namespace

namespace {

class NoServices final : public EvalServices {
 public:
  std::vector<HostValue> run_region(const Region&, std::vector<HostValue>) override { fail("no regions here"); }
  std::vector<HostValue> call(std::string_view, std::vector<HostValue>) override { fail("no functions here"); }
  std::vector<EmptyResult> infer_region(const Region&, const std::vector<HostValue>&) override {
    fail("no regions here");
  }
  const Module& module() const override { fail("no data types here"); }
  std::mt19937_64& random() override { fail("no random numbers here"); }
  const RunLimits& limits() const override { return limits_; }

 private:
  RunLimits limits_;
};

}  // namespace

EvalServices& no_services() {
  static NoServices services;
  return services;
}

std::vector<HostValue> evaluate(EvalContext& context) {
  const OpDef& op = context.op();
  if (!op.eval) fail("operator '{}' cannot be evaluated: {}", op.name, op.eval.reason());
  check_operands(context);
  op.eval(context);
  return context.take_results();
}

}  // namespace selkie::ir
