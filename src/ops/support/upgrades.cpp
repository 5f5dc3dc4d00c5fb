#include "ops/support/upgrades.h"

namespace selkie::ops {

UpgradeFunction attr_to_operand(std::string_view name, size_t index) {
  return [=](ir::UpgradeContext& c) {
    const ir::Attribute* found = c.node().attrs.find(name);
    if (found == nullptr) return;
    ir::Value* operand = nullptr;
    if (const auto* list = std::get_if<std::vector<int64_t>>(found))
      operand = c.constant(*list);
    else if (const auto* integer = std::get_if<int64_t>(found))
      operand = c.constant(Tensor::scalar_i64(*integer));
    else if (const auto* real = std::get_if<float>(found))
      operand = c.constant(Tensor::from<float>(DType::f32, {}, {real, 1}));
    else
      fail("attribute '{}' is {}, which the operator does not take", name, ir::name(ir::kind_of(*found)));
    c.set_operand(index, operand);
    c.node().attrs.erase(name);
  };
}

UpgradeFunction drop_attrs(std::vector<std::string_view> names) {
  return [=](ir::UpgradeContext& c) {
    for (std::string_view name : names) c.node().attrs.erase(name);
  };
}

UpgradeFunction set_default(std::string_view name, ir::Attribute value) {
  return [=](ir::UpgradeContext& c) {
    if (c.node().attrs.find(name) == nullptr) c.node().attrs.set(name, value);
  };
}

void legacy_broadcast(ir::UpgradeContext& c) {
  ir::Attributes& attrs = c.node().attrs;
  const ir::Attribute* axis = attrs.find("axis");
  if (axis != nullptr && c.node().operands.size() == 2) {
    ir::Attributes align;
    align.set("axis", *axis);
    c.set_operand(1, c.emit("align_dims", {c.node().operands[0], c.node().operands[1]}, std::move(align)));
  }
  drop_attrs({"axis", "broadcast", "consumed_inputs"})(c);
}

UpgradeFunction all_of(std::vector<UpgradeFunction> rows) {
  return [=](ir::UpgradeContext& c) {
    for (const UpgradeFunction& row : rows) row(c);
  };
}

}  // namespace selkie::ops
