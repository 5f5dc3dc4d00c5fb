// The report as text for people and as JSON.
#include <algorithm>
#include <map>

#include "base/text.h"
#include "driver/report.h"

namespace selkie::driver {
namespace {

constexpr size_t most_lines = 40;
constexpr size_t most_names = 3;
constexpr size_t most_characters = 160;

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : std::string(separator)) + part;
  return out;
}

std::string plural(size_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

// What many nodes have in common once, with the names of the first.
std::string grouped(const std::vector<std::pair<std::string, std::string>>& texts_and_names) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<std::string>> names;
  for (const auto& [text, name] : texts_and_names) {
    if (!names.contains(text)) order.push_back(text);
    names[text].push_back(name);
  }
  std::string out;
  for (size_t i = 0; i < std::min(order.size(), most_lines); ++i) {
    std::vector<std::string> shown = names[order[i]];
    size_t count = shown.size();
    if (count > most_names) shown.resize(most_names);
    std::string more = count > most_names ? fmt::format(", and {} more", count - most_names) : "";
    out += fmt::format("  {:3} × {}  # {}{}\n", count, order[i], join(shown, ", "), more);
  }
  if (order.size() > most_lines) out += fmt::format("  … and {} more\n", order.size() - most_lines);
  return out;
}

std::string text(const ByteSum& sum, std::string_view what) {
  std::string expression = sum.expression;
  if (expression.empty()) expression = "an expression that is too long";
  if (expression.size() > most_characters) expression = expression.substr(0, most_characters) + " …";
  std::string open = sum.open == 0 ? "" : fmt::format(", and {} that only the run tells", sum.open);
  return fmt::format("  {:<13}{}: {}{}\n", what, plural(sum.values, "value", "values"), expression, open);
}

std::string sizes_text(const Sizes& sizes) {
  std::vector<std::string> parts;
  for (const auto& [name, size] : sizes) parts.push_back(fmt::format("{} = {}", name, size));
  return join(parts, ", ");
}

// Where there is a figure for all three.
std::string figures(const CpuReport& r) {
  if (!r.model.bytes || !r.after_passes.bytes || !r.stored.bytes) return {};
  std::string at = r.sizes.empty() ? "" : " at " + sizes_text(r.sizes);
  return fmt::format("  {} → {} → {}{}\n", *r.model.bytes, *r.after_passes.bytes, *r.stored.bytes, at);
}

std::string instructions_text(const CpuReport& r) {
  std::vector<std::string> parts;
  auto add = [&](size_t count, std::string_view one, std::string_view many) {
    if (count > 0) parts.push_back(plural(count, one, many));
  };
  add(r.kernels, "kernel", "kernels");
  add(r.products, "product", "products");
  add(r.convolutions, "convolution", "convolutions");
  add(r.integer_products, "product of integers", "products of integers");
  add(r.attentions, "attention", "attentions");
  add(r.recurrents, "recurrent layer", "recurrent layers");
  add(r.copies, "copy into another layout", "copies into another layout");
  add(r.function_calls, "function call", "function calls");
  add(r.host_calls.size(), "host call", "host calls");
  add(r.views, "view", "views");
  std::string out = parts.empty() ? "nothing" : join(parts, ", ");
  if (r.epilogues > 0) out += fmt::format("; {} end in an epilogue", r.epilogues);
  if (r.functions > 0) out += fmt::format("; {} compiled beside it", plural(r.functions, "function", "functions"));
  if (r.chained > 0) out += fmt::format("; {} may be made line by line together with the one before", r.chained);
  return out;
}

std::string range_text(const CallVersions& call, const VersionRange& range) {
  if (call.varied.empty()) return range.version;
  std::string at = range.last == range.first ? fmt::format("{}", range.first)
                   : range.last              ? fmt::format("{}…{}", range.first, *range.last)
                                             : fmt::format("{} and more", range.first);
  return fmt::format("{}: {}", at, range.version);
}

std::string text(const CallVersions& call) {
  std::vector<std::string> ranges;
  constexpr size_t most_ranges = 6;
  for (size_t i = 0; i < std::min(call.ranges.size(), most_ranges); ++i)
    ranges.push_back(range_text(call, call.ranges[i]));
  if (call.ranges.size() > most_ranges) ranges.push_back(fmt::format("… {} in all", call.ranges.size()));
  std::string out = fmt::format("{} {}; ", call.kind, call.form);
  if (!call.varied.empty()) out += call.varied + " ";
  out += join(ranges, ", ");
  if (!call.fixed.empty() && !call.varied.empty()) out += fmt::format(" (at {})", call.fixed);
  if (!call.chosen.empty() && !call.varied.empty()) out += fmt::format("; here, {}: {}", call.here, call.chosen);
  return out;
}

std::string json(const ByteSum& sum) {
  return fmt::format(R"({{"values": {}, "open": {}, "expression": {}, "bytes": {}}})", sum.values, sum.open,
                     sum.expression.empty() ? "null" : json_quote(sum.expression),
                     sum.bytes ? fmt::format("{}", *sum.bytes) : "null");
}

std::string json(const CallVersions& call) {
  std::vector<std::string> ranges;
  for (const VersionRange& range : call.ranges)
    ranges.push_back(fmt::format(R"({{"first": {}, "last": {}, "version": {}}})", range.first,
                                 range.last ? fmt::format("{}", *range.last) : "null", json_quote(range.version)));
  auto or_null = [](const std::string& text) { return text.empty() ? "null" : json_quote(text); };
  return fmt::format(
      R"({{"kind": {}, "node": {}, "form": {}, "varied": {}, "fixed": {}, "ranges": [{}], "here": {}, "chosen": {}}})",
      json_quote(call.kind), json_quote(call.node), json_quote(call.form), or_null(call.varied), or_null(call.fixed),
      join(ranges, ", "), or_null(call.here), or_null(call.chosen));
}

}  // namespace

std::string summary_text(const CpuReport& r) {
  std::string out = fmt::format("target cpu: {} in the model, {} after the passes, run as {}\n",
                                plural(r.model_nodes, "node", "nodes"), r.nodes, instructions_text(r));
  out += "intermediate results, in bytes:\n" + text(r.model, "in the model") + text(r.after_passes, "after passes") +
         text(r.stored, "stored");
  out += figures(r);
  if (r.host_calls.empty()) return out;
  std::vector<std::pair<std::string, std::string>> hosts;
  for (const HostReport& host : r.host_calls)
    hosts.emplace_back(fmt::format("{}: {}", host.op, host.why), host.node.empty() ? host.op : host.node);
  return out + "on the host:\n" + grouped(hosts);
}

std::string machine_text(const CpuReport& r) {
  std::string out = fmt::format("code: {} bytes for {}, of {}\n", r.image.code.size(), r.image.isa,
                                plural(r.distinct_kernels, "different kernel", "different kernels"));
  if (r.calls.empty()) return out;
  std::vector<std::pair<std::string, std::string>> calls;
  for (const CallVersions& call : r.calls) calls.emplace_back(text(call), call.node.empty() ? call.kind : call.node);
  return out + "versions by size:\n" + grouped(calls);
}

std::string json(const CpuReport& r) {
  std::vector<std::string> sizes, hosts, calls;
  for (const auto& [name, size] : r.sizes) sizes.push_back(fmt::format("{}: {}", json_quote(name), size));
  for (const HostReport& host : r.host_calls)
    hosts.push_back(fmt::format(R"({{"node": {}, "op": {}, "why": {}}})", json_quote(host.node), json_quote(host.op),
                                json_quote(host.why)));
  for (const CallVersions& call : r.calls) calls.push_back(json(call));
  return fmt::format(
      R"({{"nodes": {{"model": {}, "after_passes": {}}}, "instructions": {{"kernels": {}, "products": {}, )"
      R"("convolutions": {}, "integer_products": {}, "attentions": {}, "recurrent_layers": {}, "copies": {}, "function_calls": {}, "host_calls": {}}}, )"
      R"("epilogues": {}, "chained": {}, "views": {}, "sizes": {{{}}}, "intermediate_bytes": {{"model": {}, "after_passes": {}, )"
      R"("stored": {}}}, "code": {{"bytes": {}, "isa": {}, "distinct_kernels": {}}}, "host_calls": [{}], )"
      R"("versions": [{}]}})",
      r.model_nodes, r.nodes, r.kernels, r.products, r.convolutions, r.integer_products, r.attentions, r.recurrents,
      r.copies, r.function_calls, r.host_calls.size(), r.epilogues, r.chained, r.views, join(sizes, ", "),
      json(r.model), json(r.after_passes), json(r.stored), r.image.code.size(), json_quote(r.image.isa),
      r.distinct_kernels, join(hosts, ", "), join(calls, ", "));
}

}  // namespace selkie::driver
