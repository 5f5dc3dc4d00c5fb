// What a run needs of memory, as text for people and as JSON.
#include <algorithm>

#include "base/text.h"
#include "driver/memory_report.h"

namespace selkie::driver {
namespace {

// With thousands apart.
std::string number(int64_t value) {
  std::string digits = std::to_string(value);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), ",");
  return digits;
}

double ratio(int64_t value, int64_t bound) {
  return bound == 0 ? 1 : static_cast<double>(value) / static_cast<double>(bound);
}

std::string text(const OwnBytes& own) {
  return number(own.bytes) + (own.open == 0 ? "" : fmt::format(" and {} that only the run tells", own.open));
}

std::string region_table(const MemoryReport& r) {
  constexpr size_t most = 40;
  if (r.regions.size() < 2) return "";
  std::string out = "\nregion       instructions  tensors         bound  alone ÷ bound  from\n";
  for (size_t i = 0; i < std::min(r.regions.size(), most); ++i) {
    const MemoryRegion& region = r.regions[i];
    out += fmt::format("{:<12} {:>12}  {:7}  {:>12}  {:13.3f}  {}\n",
                       std::string(std::min<size_t>(region.depth, 4), ' ') + region.kind,
                       fmt::format("{}–{}", region.begin, region.end), region.tensors, number(region.bound),
                       ratio(region.needed, region.bound), region.node);
  }
  if (r.regions.size() > most) out += fmt::format("… and {} more\n", r.regions.size() - most);
  return out;
}

std::string tensor_table(const MemoryReport& r) {
  std::string out = "\n     offset        bytes  in use        tensor\n";
  for (const MemoryRow& row : r.rows)
    out += fmt::format("{:>11}  {:>11}  {:<12}  {} {}{}\n", number(row.offset), number(row.bytes),
                       fmt::format("{}–{}", row.life.first, row.life.last), row.name,
                       row.shape == row.numbers ? row.shape : row.shape + " = " + row.numbers,
                       row.alternates ? ", two places" : "");
  return out;
}

}  // namespace

std::string text(const MemoryReport& r, bool with_tensors) {
  std::string sizes;
  for (const auto& [name, size] : r.sizes) sizes += fmt::format("{}{} = {}", sizes.empty() ? "" : ", ", name, size);
  std::string out = sizes.empty() ? "" : fmt::format("sizes: {}\n", sizes);
  out += fmt::format("arena: {} bytes for {} tensors\n", number(r.arena), r.rows.size());
  out += fmt::format("lower bound: {} bytes, in use at instruction {}{} ({:.3f}×)\n", number(r.bound.bytes), r.bound.at,
                     r.bound_node.empty() ? "" : fmt::format(", '{}'", r.bound_node), ratio(r.arena, r.bound.bytes));
  out += r.is_best_at_all_sizes ? "offsets: one arrangement, which reaches the lower bound at all sizes\n"
                                : "offsets: searched for where sizes are new and no arrangement is known that serves\n";
  if (!r.order.empty()) out += fmt::format("order: {}\n", r.order);
  out += fmt::format("without sharing: {} bytes of the model's nodes, {} after the passes, {} of what is stored\n",
                     text(r.model), text(r.after_passes), text(r.stored));
  out += fmt::format("each at the lowest place that is free when it is made: {} bytes\n", number(r.in_order));
  out += fmt::format(
      "heap: {} blocks, {} bytes{}; outputs: {} bytes; weights: {} bytes{}\n", r.heap_blocks, number(r.heap_bytes),
      r.open_blocks == 0 ? "" : fmt::format(" and {} whose size only the run tells", r.open_blocks), number(r.outputs),
      number(r.weights),
      r.late_weights == 0
          ? ""
          : fmt::format(", {} of them in arms, packed by the first run that takes one", number(r.late_weights)));
  out += region_table(r);
  if (with_tensors) out += tensor_table(r);
  return out;
}

std::string json(const MemoryReport& r) {
  auto own = [](const OwnBytes& o) { return fmt::format("{{\"bytes\": {}, \"open\": {}}}", o.bytes, o.open); };
  std::string sizes;
  for (const auto& [name, size] : r.sizes)
    sizes += fmt::format("{}{}: {}", sizes.empty() ? "" : ", ", json_quote(name), size);
  std::string tensors;
  for (const MemoryRow& row : r.rows)
    tensors += fmt::format(
        "{}{{\"name\": {}, \"type\": {}, \"symbolic\": {}, \"bytes\": {}, \"offset\": {}, \"first\": {}, \"last\": "
        "{}}}",
        tensors.empty() ? "" : ", ", json_quote(row.name), json_quote(row.numbers), json_quote(row.shape), row.bytes,
        row.offset, row.life.first, row.life.last);
  std::string regions;
  for (const MemoryRegion& region : r.regions)
    regions += fmt::format(
        "{}{{\"kind\": {}, \"begin\": {}, \"end\": {}, \"depth\": {}, \"node\": {}, \"tensors\": {}, "
        "\"lower_bound_bytes\": {}, \"alone_bytes\": {}}}",
        regions.empty() ? "" : ", ", json_quote(region.kind), region.begin, region.end, region.depth,
        json_quote(region.node), region.tensors, region.bound, region.needed);
  return fmt::format(
      "{{\"sizes\": {{{}}}, \"arena_bytes\": {}, \"lower_bound_bytes\": {}, \"peak\": {{\"instruction\": {}, \"node\": "
      "{}}}, \"best_at_all_sizes\": {}, \"order\": {}, \"own_bytes\": {{\"model\": {}, \"after_passes\": {}, "
      "\"stored\": {}}}, \"in_order_bytes\": {}, \"heap\": {{\"blocks\": {}, \"bytes\": {}, \"open\": {}}}, "
      "\"output_bytes\": {}, \"weight_bytes\": {}, \"late_weight_bytes\": {}, \"regions\": [{}], \"tensors\": [{}]}}\n",
      sizes, r.arena, r.bound.bytes, r.bound.at, json_quote(r.bound_node), r.is_best_at_all_sizes, json_quote(r.order),
      own(r.model), own(r.after_passes), own(r.stored), r.in_order, r.heap_blocks, r.heap_bytes, r.open_blocks,
      r.outputs, r.weights, r.late_weights, regions, tensors);
}

}  // namespace selkie::driver
