#include "ir/op_def.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "base/error.h"

namespace selkie::ir {

std::string_view name(DynamismClass cls) {
  static constexpr std::array<std::string_view, 4> names{"ISDO", "ISDOS", "ISVDOS", "EDO"};
  return names[static_cast<size_t>(cls)];
}

std::string_view name(Mapping mapping) {
  static constexpr std::array<std::string_view, 6> names{"one_to_one", "one_to_many", "many_to_many",
                                                         "reorganize", "shuffle",     "opaque"};
  return names[static_cast<size_t>(mapping)];
}

const AttrDef* OpDef::find_attr(std::string_view attr) const {
  for (const AttrDef& def : attrs)
    if (def.name == attr) return &def;
  return nullptr;
}

namespace {
auto onnx_key(const OpDef* op) { return std::tie(op->onnx.domain, op->onnx.name); }
}  // namespace

OpSet::OpSet(std::vector<const OpDef*> ops) : ops_(std::move(ops)) {
  std::sort(ops_.begin(), ops_.end(), [](auto* a, auto* b) { return a->name < b->name; });
  for (size_t i = 1; i < ops_.size(); ++i)
    CHECK(ops_[i - 1]->name != ops_[i]->name, "operator '{}' is listed twice", ops_[i]->name);
  for (const OpDef* op : ops_)
    if (!op->onnx.name.empty()) by_onnx_name_.push_back(op);
  std::sort(by_onnx_name_.begin(), by_onnx_name_.end(), [](auto* a, auto* b) { return onnx_key(a) < onnx_key(b); });
}

const OpDef* OpSet::find(std::string_view name) const {
  auto at = std::lower_bound(ops_.begin(), ops_.end(), name, [](auto* op, auto n) { return op->name < n; });
  return at != ops_.end() && (*at)->name == name ? *at : nullptr;
}

const OpDef* OpSet::find_onnx(std::string_view domain, std::string_view name) const {
  auto key = std::tie(domain, name);
  auto at = std::lower_bound(by_onnx_name_.begin(), by_onnx_name_.end(), key,
                             [](auto* op, const auto& k) { return onnx_key(op) < k; });
  return at != by_onnx_name_.end() && onnx_key(*at) == key ? *at : nullptr;
}

}  // namespace selkie::ir
