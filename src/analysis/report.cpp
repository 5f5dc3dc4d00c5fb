#include "analysis/report.h"

#include <algorithm>
#include <array>

#include "analysis/checks.h"
#include "base/text.h"

namespace selkie::analysis {
namespace {

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : std::string(separator)) + part;
  return out;
}

std::string contents_text(const ir::Known& known) {
  if (!known.contents || known.contents->elements.size() > 16) return {};
  std::vector<std::string> elements;
  for (sym::Expr e : known.contents->elements) {
    std::string text = e ? sym::to_string(e) : "?";
    if (e && known.contents->denominator != 1) text = fmt::format("({})/{}", text, known.contents->denominator);
    elements.push_back(std::move(text));
  }
  return "[" + join(elements, ", ") + "]";
}

class Reporter {
 public:
  explicit Reporter(const Rdp& rdp) : rdp_(rdp) {
    report_.classes.resize(4);
    report_.dims.resize(4);
  }

  Report run() {
    const ir::Function& main = rdp_.module().main();
    for (const auto& function : rdp_.module().functions())
      region(function->body, function.get() == &main ? "" : "@" + function->name, Entry::possible);
    for (const Check& check : rdp_.entry_checks()) report_.checks.push_back(to_string(check, rdp_));
    report_.facts = rdp_.region(main.body).facts.to_strings();
    return std::move(report_);
  }

 private:
  void region(const ir::Region& r, const std::string& path, Entry outer) {
    const RegionFacts& found = rdp_.region(r);
    Entry entry = outer == Entry::possible ? found.entry : outer;
    bool is_main = &r == &rdp_.module().main().body;
    for (const Check& check : is_main ? rdp_.later_checks() : found.checks)
      report_.region_checks.push_back((path.empty() ? "" : path + ": ") + to_string(check, rdp_));
    for (const auto& node : r.nodes) {
      add(*node, path, entry);
      for (size_t i = 0; i < node->regions.size(); ++i) {
        const auto& defs = node->op->regions;
        std::string_view kind = defs.empty() ? "region" : defs[std::min(i, defs.size() - 1)].name;
        region(*node->regions[i], fmt::format("{}{}{}.{}", path, path.empty() ? "" : "/", name_of(*node), kind), entry);
      }
    }
  }

  static std::string name_of(const ir::Node& node) {
    if (!node.source.empty()) return node.source;
    return node.results.empty() ? std::string(node.op->name) : node.results[0]->name;
  }

  void add(const ir::Node& node, const std::string& path, Entry entry) {
    const NodeClass& cls = rdp_.node_class(node);
    NodeReport out{.node = &node,
                   .name = name_of(node),
                   .region = path,
                   .cls = cls.cls,
                   .causes = cls.causes,
                   .entry = entry,
                   .results = {}};
    for (const auto& result : node.results) out.results.push_back(value(*result, entry == Entry::possible));
    if (entry == Entry::possible) ++report_.classes[static_cast<size_t>(cls.cls)];
    report_.nodes.push_back(std::move(out));
  }

  ValueReport value(const ir::Value& v, bool counted) {
    const ir::Known& known = rdp_.known(v);
    ValueReport out{.value = &v, .type = to_string(known.type), .dims = {}, .contents = contents_text(known)};
    if (!known.type.is_tensor() && !known.type.is_unknown()) return out;
    out.ranked = known.type.dims.has_value();
    if (!out.ranked) {
      std::optional<sym::Expr> most = rdp_.most_elements(v);
      if (most) out.most_elements = sym::to_string(*most);
      if (counted) ++report_.dims[static_cast<size_t>(most ? DimKind::bounded : DimKind::unknown)];
    }
    for (sym::Expr e : known.type.dims.value_or(ir::SymDims{})) {
      out.dims.push_back({sym::to_string(e), rdp_.dim_kind(e)});
      if (counted) ++report_.dims[static_cast<size_t>(out.dims.back().kind)];
      symbols(e);
    }
    return out;
  }

  // Symbols that the run binds, once each.
  void symbols(sym::Expr e) {
    std::vector<sym::Expr> found;
    sym::collect_symbols(e, found);
    for (sym::Expr s : found) {
      const SymbolInfo* info = rdp_.symbol(s);
      if (info == nullptr || info->kind == SymbolInfo::Kind::input_dim) continue;
      if (std::ranges::find(seen_, s) != seen_.end()) continue;
      seen_.push_back(s);
      report_.symbols.push_back(meaning(s, *info));
    }
  }

  std::string meaning(sym::Expr s, const SymbolInfo& info) {
    std::string what;
    switch (info.kind) {
      case SymbolInfo::Kind::trips:
        what = "trips of " + name_of(*info.node);
        break;
      case SymbolInfo::Kind::index:
        what = "index of the trip in " + name_of(*info.node);
        break;
      case SymbolInfo::Kind::element:
      case SymbolInfo::Kind::input_element:
        what = fmt::format("{}element {} of '{}'", info.negative_part ? "minus the negative part of " : "", info.axis,
                           info.value->name);
        break;
      default:
        what = info.value != nullptr ? fmt::format("dim {} of '{}'", info.axis, info.value->name) : "a dim";
        if (info.node != nullptr) what += " (" + name_of(*info.node) + ")";
    }
    std::string bounds;
    if (info.bounds.most) bounds = ", at most " + sym::to_string(info.bounds.most);
    return sym::to_string(s) + ": " + what + bounds;
  }

  const Rdp& rdp_;
  Report report_;
  std::vector<sym::Expr> seen_;
};

std::string string_list(const std::vector<std::string>& items) {
  std::vector<std::string> quoted;
  for (const std::string& item : items) quoted.push_back(json_quote(item));
  return "[" + join(quoted, ", ") + "]";
}

std::string value_json(const ValueReport& value) {
  std::vector<std::string> dims;
  for (const DimReport& d : value.dims)
    dims.push_back(fmt::format("{{\"expr\": {}, \"kind\": \"{}\"}}", json_quote(d.text), name(d.kind)));
  return fmt::format("{{\"name\": {}, \"type\": {}, \"dims\": {}, \"most_elements\": {}, \"contents\": {}}}",
                     json_quote(value.value->name), json_quote(value.type),
                     value.ranked ? "[" + join(dims, ", ") + "]" : "null",
                     value.most_elements.empty() ? "null" : json_quote(value.most_elements),
                     value.contents.empty() ? "null" : json_quote(value.contents));
}

std::string_view name(Entry entry) {
  static constexpr std::array<std::string_view, 3> names{"possible", "never", "failing"};
  return names[static_cast<size_t>(entry)];
}

}  // namespace

std::string_view name(DimKind kind) {
  static constexpr std::array<std::string_view, 4> names{"constant", "symbolic", "bounded", "unknown"};
  return names[static_cast<size_t>(kind)];
}

Report report(const Rdp& rdp) { return Reporter(rdp).run(); }

std::string summary_text(const Report& r, const Rdp& rdp) {
  const ir::Function& main = rdp.module().main();
  std::string out;
  int64_t nodes = 0;
  for (int64_t count : r.classes) nodes += count;
  out += fmt::format("nodes: {}", nodes);
  for (size_t i = 0; i < 4; ++i)
    out += fmt::format("{} {} {}", i ? "," : " (", r.classes[i], ir::name(static_cast<ir::DynamismClass>(i)));
  int64_t dims = 0;
  for (int64_t count : r.dims) dims += count;
  out += fmt::format(")\ndims: {} ({} constant, {} expressions of the inputs, {} bounded, {} unknown)\n", dims,
                     r.dims[0], r.dims[1], r.dims[2], r.dims[3]);
  out += fmt::format("entry checks: {}, checks inside: {}, compilations: 1\n", r.checks.size(), r.region_checks.size());
  for (const auto& p : main.body.parameters)
    out += fmt::format("  input  {}: {}\n", p->name, to_string(rdp.known(*p).type));
  for (size_t i = 0; i < main.body.yields.size(); ++i)
    out += fmt::format("  output {}: {}\n",
                       i < main.result_names.size() ? main.result_names[i] : main.body.yields[i]->name,
                       to_string(rdp.known(*main.body.yields[i]).type));
  auto list = [&](std::string_view title, const std::vector<std::string>& items) {
    constexpr size_t shown = 40;
    if (items.empty()) return;
    out += fmt::format("{}:\n", title);
    for (size_t i = 0; i < std::min(items.size(), shown); ++i) out += "  " + items[i] + "\n";
    if (items.size() > shown) out += fmt::format("  … and {} more\n", items.size() - shown);
  };
  list("checks at entry", r.checks);
  list("checks inside", r.region_checks);
  list("facts", r.facts);
  list("known when run", r.symbols);
  return out;
}

std::string table_text(const Report& r) {
  std::string out;
  size_t width = 4;
  for (const NodeReport& n : r.nodes) width = std::max(width, std::min<size_t>(n.name.size(), 40));
  std::string region;
  for (const NodeReport& n : r.nodes) {
    if (n.region != region) {
      region = n.region;
      out += fmt::format("-- {}{}\n", region.empty() ? "@main" : region,
                         n.entry == Entry::possible ? ""
                         : n.entry == Entry::never  ? " (never entered)"
                                                    : " (fails)");
    }
    std::vector<std::string> types;
    for (const ValueReport& v : n.results)
      types.push_back(v.type + (v.most_elements.empty() ? "" : " of at most " + v.most_elements + " elements") +
                      (v.contents.empty() ? "" : " = " + v.contents));
    std::string causes;
    for (std::string_view cause : n.causes) causes += (causes.empty() ? "  by " : ", ") + std::string(cause);
    out += fmt::format("{:7}{:<{}}  {:<18} {}{}\n", ir::name(n.cls), n.name, width, n.node->op->name, join(types, "; "),
                       causes);
  }
  return out;
}

std::string json(const Report& r, const Rdp& rdp, std::string_view members) {
  std::string out = "{\"summary\": {\"classes\": {";
  for (size_t i = 0; i < 4; ++i)
    out += fmt::format("{}\"{}\": {}", i ? ", " : "", ir::name(static_cast<ir::DynamismClass>(i)), r.classes[i]);
  out += "}, \"dims\": {";
  for (size_t i = 0; i < 4; ++i)
    out += fmt::format("{}\"{}\": {}", i ? ", " : "", name(static_cast<DimKind>(i)), r.dims[i]);
  out += fmt::format("}}, \"checks\": {}, \"compilations\": 1}}", r.checks.size());
  const ir::Function& main = rdp.module().main();
  std::vector<std::string> inputs;
  for (const auto& p : main.body.parameters)
    inputs.push_back(
        fmt::format("{{\"name\": {}, \"type\": {}}}", json_quote(p->name), json_quote(to_string(rdp.known(*p).type))));
  std::vector<std::string> outputs;
  for (size_t i = 0; i < main.body.yields.size(); ++i)
    outputs.push_back(fmt::format("{{\"name\": {}, \"type\": {}}}",
                                  json_quote(i < main.result_names.size() ? main.result_names[i] : ""),
                                  json_quote(to_string(rdp.known(*main.body.yields[i]).type))));
  out += fmt::format(", \"inputs\": [{}], \"outputs\": [{}]", join(inputs, ", "), join(outputs, ", "));
  out += fmt::format(", \"checks\": {}, \"region_checks\": {}, \"facts\": {}, \"symbols\": {}, \"nodes\": [",
                     string_list(r.checks), string_list(r.region_checks), string_list(r.facts), string_list(r.symbols));
  for (size_t i = 0; i < r.nodes.size(); ++i) {
    const NodeReport& n = r.nodes[i];
    std::vector<std::string> causes(n.causes.begin(), n.causes.end());
    std::vector<std::string> results;
    for (const ValueReport& v : n.results) results.push_back(value_json(v));
    out += fmt::format(
        "{}{{\"name\": {}, \"op\": \"{}\", \"region\": {}, \"entry\": \"{}\", \"class\": \"{}\", \"causes\": {}, "
        "\"results\": [{}]}}",
        i ? ",\n" : "\n", json_quote(n.name), n.node->op->name, json_quote(n.region), name(n.entry), ir::name(n.cls),
        string_list(causes), join(results, ", "));
  }
  return out + fmt::format("]{}{}}}\n", members.empty() ? "" : ",\n", members);
}

}  // namespace selkie::analysis
