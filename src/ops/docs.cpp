#include "ops/docs.h"

#include <fmt/ranges.h>

#include "ir/signature.h"
#include "ops/registry.h"

namespace selkie::ops {
namespace {

std::string shown_domain(const ir::OpDef& op) {
  return op.onnx.domain.empty() ? "ai.onnx" : std::string(op.onnx.domain);
}

std::string operand_list(const std::vector<ir::Operand>& operands) {
  std::string out;
  for (const ir::Operand& o : operands) {
    std::string_view mark = o.arity == ir::Arity::optional ? "?" : o.arity == ir::Arity::variadic ? "…" : "";
    out += fmt::format("{}{}{}", out.empty() ? "" : ", ", o.name, mark);
  }
  return out;
}

// Calls f(name, hook present, reason) for each hook of the record.
template <class F>
void for_each_hook(const ir::OpDef& op, F&& f) {
  auto one = [&](std::string_view name, const auto& hook) { f(name, static_cast<bool>(hook), hook.reason()); };
  one("forward", op.forward);
  one("backward", op.backward);
  one("value", op.value);
  one("eval", op.eval);
  one("lower", op.lower);
  one("grad", op.grad);
}

std::string present_hooks(const ir::OpDef& op) {
  std::string out;
  for_each_hook(op, [&](std::string_view name, bool present, std::string_view) {
    if (present) out += fmt::format("{}{}", out.empty() ? "" : ", ", name);
  });
  return out;
}

// The dtypes of each type variable, in order of appearance.
std::string type_list(const ir::OpDef& op) {
  std::vector<std::string_view> seen;
  std::string out;
  auto add = [&](const std::vector<ir::Operand>& operands) {
    for (const ir::Operand& o : operands) {
      if (std::find(seen.begin(), seen.end(), o.type.name) != seen.end()) continue;
      seen.push_back(o.type.name);
      std::string dtypes = o.type.dtypes == dtypes::all ? "any" : ir::to_string(o.type.dtypes);
      if (!o.type.name.empty() && dtypes != o.type.name) dtypes = fmt::format("{}: {}", o.type.name, dtypes);
      out += (out.empty() ? "" : "; ") + dtypes;
    }
  };
  add(op.operands);
  add(op.results);
  return out;
}

}  // namespace

std::string describe(const ir::OpDef& op) {
  std::string out =
      fmt::format("{}({}) -> ({})\n  {}\n", op.name, operand_list(op.operands), operand_list(op.results), op.doc);
  if (!op.onnx.name.empty())
    out +=
        fmt::format("  ONNX: {} {}, versions {}\n", shown_domain(op), op.onnx.name, fmt::join(op.onnx.versions, ", "));
  out += fmt::format("  types: {}\n", type_list(op));
  for (const ir::AttrDef& a : op.attrs)
    out += fmt::format("  attribute {}: {}{}\n", a.name, ir::name(a.kind), a.required ? ", required" : "");
  out +=
      fmt::format("  class: {}{}{}, mapping {}\n", ir::name(op.dynamism.cls), op.dynamism.causes.empty() ? "" : " by ",
                  fmt::join(op.dynamism.causes, ", "), ir::name(op.mapping));
  for_each_hook(op, [&](std::string_view name, bool present, std::string_view reason) {
    out += fmt::format("  {}: {}\n", name, present ? "present" : fmt::format("absent, {}", reason));
  });
  return out;
}

std::string markdown() {
  std::string out =
      "# Operators\n\nGenerated from the records in `src/ops` by `./dev docs`; do not edit.\n"
      "`?` marks an optional operand, `…` one that repeats. Hooks that a record lacks carry their reason: "
      "`selkie ops NAME` prints it.\n\n"
      "| operator | ONNX | versions | operands | results | types | class | causes | mapping | hooks |\n"
      "|---|---|---|---|---|---|---|---|---|---|\n";
  for (const ir::OpDef* op : op_set().all()) {
    std::string onnx = op->onnx.name.empty()     ? "–"
                       : op->onnx.domain.empty() ? std::string(op->onnx.name)
                                                 : fmt::format("{}.{}", op->onnx.domain, op->onnx.name);
    out += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", op->name, onnx,
                       fmt::join(op->onnx.versions, ", "), operand_list(op->operands), operand_list(op->results),
                       type_list(*op), ir::name(op->dynamism.cls), fmt::join(op->dynamism.causes, ", "),
                       ir::name(op->mapping), present_hooks(*op));
  }
  return out;
}

namespace {

// Names in records are identifiers, so that quotes are all they need.
std::string json_list(const auto& items, auto&& spell) {
  std::string out;
  for (const auto& item : items) out += (out.empty() ? "" : ", ") + spell(item);
  return "[" + out + "]";
}

std::string json_operands(const std::vector<ir::Operand>& operands) {
  static constexpr std::string_view arities[] = {"required", "optional", "variadic"};
  static constexpr std::string_view containers[] = {"tensor", "seq", "opt", "map", "any"};
  return json_list(operands, [](const ir::Operand& o) {
    std::vector<std::string_view> dtypes;
    for (const DTypeInfo& row : all_dtypes())
      if (o.type.dtypes.contains(row.dtype)) dtypes.push_back(row.name);
    return fmt::format(R"({{"name": "{}", "type": "{}", "arity": "{}", "container": "{}", "dtypes": {}}})", o.name,
                       o.type.name, arities[static_cast<size_t>(o.arity)], containers[static_cast<size_t>(o.container)],
                       json_list(dtypes, [](std::string_view d) { return fmt::format("\"{}\"", d); }));
  });
}

}  // namespace

std::string json() {
  static constexpr std::string_view kinds[] = {"int",     "float",  "string", "ints",    "floats",
                                               "strings", "tensor", "type",   "function"};
  return json_list(op_set().all(), [](const ir::OpDef* op) {
    std::string attrs = json_list(op->attrs, [](const ir::AttrDef& a) {
      return fmt::format(R"({{"name": "{}", "kind": "{}", "required": {}}})", a.name,
                         kinds[static_cast<size_t>(a.kind)], a.required);
    });
    std::string hooks;
    for_each_hook(*op, [&](std::string_view name, bool present, std::string_view) {
      hooks += fmt::format("{}\"{}\": {}", hooks.empty() ? "" : ", ", name, present);
    });
    auto quoted = [](std::string_view text) { return fmt::format("\"{}\"", text); };
    return fmt::format(
        R"({{"name": "{}", "domain": "{}", "onnx": "{}", "versions": {}, "operands": {}, "results": {}, "attrs": {}, )"
        R"("regions": {}, "class": "{}", "causes": {}, "mapping": "{}", "hooks": {{{}}}}})",
        op->name, op->onnx.domain, op->onnx.name,
        json_list(op->onnx.versions, [](int v) { return fmt::format("{}", v); }), json_operands(op->operands),
        json_operands(op->results), attrs,
        json_list(op->regions, [&](const ir::RegionDef& r) { return quoted(r.onnx); }), ir::name(op->dynamism.cls),
        json_list(op->dynamism.causes, quoted), ir::name(op->mapping), hooks);
  });
}

}  // namespace selkie::ops
