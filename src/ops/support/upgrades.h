// Upgrade rows that many operators share: how a node of an older opset becomes one of a newer.
#pragma once

#include <functional>
#include <string_view>

#include "ir/upgrade_context.h"

namespace selkie::ops {

using UpgradeFunction = std::function<void(ir::UpgradeContext&)>;

// An integer-list, integer or float attribute becomes operand `index`.
UpgradeFunction attr_to_operand(std::string_view name, size_t index);
// An attribute that no longer says anything is dropped.
UpgradeFunction drop_attrs(std::vector<std::string_view> names);
// Sets an attribute that the node does not have: a default that changed.
UpgradeFunction set_default(std::string_view name, ir::Attribute value);
// Before opset 7: `broadcast` with `axis` aligned the second operand's dims at `axis` instead of at the end.
void legacy_broadcast(ir::UpgradeContext& c);
// All of them in order.
UpgradeFunction all_of(std::vector<UpgradeFunction> rows);

}  // namespace selkie::ops
