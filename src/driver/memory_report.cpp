#include "driver/memory_report.h"

#include <algorithm>
#include <map>
#include <set>

#include "driver/samples.h"
#include "interp/bind.h"
#include "program/late_weights.h"
#include "program/regions.h"
#include "program/uses.h"

namespace selkie::driver {
namespace {

using program::CodeRegion;
using program::Program;
using program::RegisterInfo;
using runtime::Lifetime;
using runtime::MemoryPlan;
using Storage = RegisterInfo::Storage;

void add_to(OwnBytes& sum, const OwnBytes& more) {
  sum.bytes += more.bytes;
  sum.open += more.open;
}

const OwnBytes& larger(const OwnBytes& a, const OwnBytes& b) { return a.bytes < b.bytes ? b : a; }

OwnBytes bytes_of_results(const analysis::Rdp& rdp, sym::Context& symbols, const ir::Region& region,
                          const std::set<const ir::Value*>& outputs, const Sizes& sizes) {
  OwnBytes sum;
  for (const auto& node : region.nodes) {
    for (const auto& result : node->results) {
      if (outputs.contains(result.get())) continue;
      std::optional<sym::Expr> bytes = compiler::bytes_of(rdp.known(*result).type, symbols);
      std::optional<int64_t> here = bytes ? value_of(*bytes, sizes) : std::nullopt;
      add_to(sum, here ? OwnBytes{.bytes = *here} : OwnBytes{.open = 1});
    }
    OwnBytes inside;
    for (const auto& inner : node->regions)
      inside = larger(inside, bytes_of_results(rdp, symbols, *inner, outputs, sizes));
    add_to(sum, inside);
  }
  return sum;
}

OwnBytes bytes_of_results(ir::Module& module, const analysis::Rdp& rdp, const Sizes& sizes) {
  const ir::Region& body = module.main().body;
  return bytes_of_results(rdp, module.symbols(), body, {body.yields.begin(), body.yields.end()}, sizes);
}

// Sizes of inputs that are given, beside those that are given by name.
Sizes with_inputs(const analysis::Rdp& rdp, const std::vector<HostValue>& inputs, Sizes sizes) {
  const auto& parameters = rdp.module().main().body.parameters;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const std::optional<ir::SymDims>& dims = rdp.known(*parameters[i]).type.dims;
    if (!inputs[i].is_tensor() || !dims || dims->size() != inputs[i].tensor().dims().size()) continue;
    for (size_t axis = 0; axis < dims->size(); ++axis)
      if ((*dims)[axis].is_symbol() && !value_of((*dims)[axis], sizes))
        sizes.emplace_back((*dims)[axis].symbol_name(), inputs[i].tensor().dims()[axis]);
  }
  return sizes;
}

// Zeros in the place of inputs that are not given.
void fill_inputs(const analysis::Rdp& rdp, const Sizes& sizes, std::vector<HostValue>& inputs) {
  const auto& parameters = rdp.module().main().body.parameters;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!inputs[i].is_absent()) continue;
    const ir::Type& type = rdp.known(*parameters[i]).type;
    if (!type.is_tensor() || !type.dims)
      fail("input '{}' has no known shape: give it with --input", parameters[i]->name);
    Dims dims;
    for (sym::Expr dim : *type.dims) {
      std::optional<int64_t> size = value_of(dim, sizes);
      if (!size)
        fail(
            "input '{}' has a dim {} that no size is allowed for by itself: give sizes with --dims or the input with "
            "--input",
            parameters[i]->name, sym::to_string(dim));
      if (*size < 0) fail("input '{}' would have a dim {} = {}", parameters[i]->name, sym::to_string(dim), *size);
      dims.push_back(*size);
    }
    inputs[i] = Tensor(type.dtype, std::move(dims));
  }
}

// Sizes that follow from elements of inputs are not those of zeros.
void check_elements(const Program& p, const std::vector<bool>& is_given) {
  std::vector<size_t> cause(p.slots, SIZE_MAX);  // the input on whose elements a slot depends
  auto bind = [&](const program::Bind& b) {
    auto at = std::ranges::find(p.parameters, b.value) - p.parameters.begin();
    auto input = static_cast<size_t>(at);
    if (input == p.parameters.size() || is_given[input]) return;
    for (const auto* parts : {&b.elements, &b.negative})
      for (auto [element, slot] : *parts) cause[slot] = input;
  };
  for (const program::Instruction& i : p.code) {
    if (!program::is_entry(i.op)) break;
    if (i.op == program::Opcode::bind) bind(p.binds[i.a]);
    for (uint32_t s = i.a; i.op == program::Opcode::sizes && s < i.b; ++s)
      cause[p.steps[s].to] = std::min(cause[p.steps[s].a], cause[p.steps[s].b]);
  }
  for (const RegisterInfo& info : p.registers) {
    size_t input = info.storage == Storage::arena ? cause[info.bytes] : SIZE_MAX;
    if (input != SIZE_MAX)
      fail("the size of '{}' depends on the elements of input '{}': give it with --input", info.name,
           p.inputs[input].name);
  }
}

class Reporter {
 public:
  Reporter(const compiler::Compiled& compiled, const MemoryPlan& plan, MemoryReport& report)
      : compiled_(compiled),
        p_(compiled.program),
        plan_(plan),
        report_(report),
        is_known_(program::set_at_entry(p_)),
        regions_(program::regions(p_)) {}

  void fill() {
    for (const MemoryPlan::Tensor& tensor : plan_.tensors) report_.rows.push_back(row(tensor));
    report_.arena = plan_.arena_bytes;
    report_.bound = plan_.bound;
    report_.is_best_at_all_sizes = plan_.is_best_at_all_sizes;
    for (const program::Instruction& i : p_.code) report_.instructions.emplace_back(program::node_of(p_, i));
    if (plan_.bound.at < p_.code.size()) report_.bound_node = report_.instructions[plan_.bound.at];
    report_.in_order = first_fit_in_order();
    count_heap();
    report_.stored = stored();
    for (const CodeRegion& region : regions_) report_.regions.push_back(describe(region));
    for (const Tensor& constant : p_.constants) report_.weights += static_cast<int64_t>(constant.byte_size());
    for (uint32_t c : program::weights_of_arms(p_))
      report_.late_weights += static_cast<int64_t>(p_.constants[c].byte_size());
  }

 private:
  MemoryRow row(const MemoryPlan::Tensor& tensor) const {
    const RegisterInfo& info = p_.registers[tensor.tensor];
    MemoryRow out{.name = info.name,
                  .shape = std::string(name(info.dtype)) + "[",
                  .numbers = std::string(name(info.dtype)) + "[",
                  .bytes = tensor.bytes,
                  .offset = tensor.offset,
                  .life = tensor.life,
                  .alternates = info.alternates};
    for (size_t i = 0; i < info.dims.size(); ++i) {
      sym::Expr dim = compiled_.slots[info.dims[i]];
      out.shape += (i > 0 ? ", " : "") + (dim ? sym::to_string(dim) : "?");
      out.numbers += fmt::format("{}{}", i > 0 ? ", " : "", plan_.slots[info.dims[i]]);
    }
    out.shape += "]";
    out.numbers += "]";
    return out;
  }

  // What an allocator does that knows nothing of what comes.
  int64_t first_fit_in_order() const {
    std::vector<const MemoryRow*> rows;
    for (const MemoryRow& r : report_.rows) rows.push_back(&r);
    std::ranges::stable_sort(rows, {}, [](const MemoryRow* r) { return r->life.first; });
    std::multimap<int64_t, const MemoryRow*> held;  // by offset
    int64_t height = 0;
    for (const MemoryRow* r : rows) {
      std::erase_if(held, [&](const auto& other) { return other.second->life.last < r->life.first; });
      int64_t offset = 0;
      int64_t size = runtime::aligned_bytes(r->bytes);
      for (const auto& [at, other] : held) {
        if (offset + size <= at) break;
        offset = std::max(offset, at + runtime::aligned_bytes(other->bytes));
      }
      held.emplace(offset, r);
      height = std::max(height, offset + size);
    }
    return height;
  }

  bool is_result(program::Register r) const { return std::ranges::find(p_.results, r) != p_.results.end(); }

  std::optional<int64_t> heap_bytes(const RegisterInfo& info) const {
    bool is_sized = info.is_tensor && info.dtype != DType::str &&
                    std::ranges::all_of(info.dims, [&](program::Slot s) { return is_known_[s]; });
    if (!is_sized) return std::nullopt;
    auto bytes = static_cast<int64_t>(element_size(info.dtype));
    for (program::Slot s : info.dims) bytes *= std::max<int64_t>(plan_.slots[s], 0);
    return bytes;
  }

  void count_heap() {
    for (program::Register r = 0; r < p_.registers.size(); ++r) {
      const RegisterInfo& info = p_.registers[r];
      if (info.storage != Storage::heap) continue;
      std::optional<int64_t> bytes = heap_bytes(info);
      if (is_result(r)) {
        report_.outputs += bytes.value_or(0);
        continue;
      }
      ++report_.heap_blocks;
      report_.heap_bytes += bytes.value_or(0);
      if (!bytes) ++report_.open_blocks;
    }
  }

  OwnBytes stored() const {
    std::vector<size_t> region_of = program::innermost_regions(regions_, p_.code.size());
    std::vector<OwnBytes> own(regions_.size());
    for (const MemoryPlan::Tensor& t : plan_.tensors) own[region_of[t.life.first]].bytes += t.bytes;
    for (program::Register r = 0; r < p_.registers.size(); ++r) {
      const RegisterInfo& info = p_.registers[r];
      if (info.storage != Storage::heap || is_result(r)) continue;
      std::optional<int64_t> bytes = heap_bytes(info);
      add_to(own[region_of[info.first]], bytes ? OwnBytes{.bytes = *bytes} : OwnBytes{.open = 1});
    }
    // Inner regions come last. The arms of a branch have one place among what is inside the region around them.
    std::map<std::pair<size_t, uint32_t>, OwnBytes> arms;
    for (size_t i = regions_.size(); i-- > 0;) {
      for (auto& [key, bytes] : arms)
        if (key.first == i) add_to(own[i], bytes);
      if (i == 0) break;
      const CodeRegion& region = regions_[i];
      if (region.kind == CodeRegion::Kind::arm) {
        OwnBytes& largest = arms[{region.parent, region.branch}];
        largest = larger(largest, own[i]);
      } else {
        add_to(own[region.parent], own[i]);
      }
    }
    return own[0];
  }

  MemoryRegion describe(const CodeRegion& region) const {
    constexpr std::string_view kinds[] = {"program", "arm", "loop"};
    MemoryRegion out{.kind = std::string(kinds[static_cast<size_t>(region.kind)]),
                     .begin = region.begin,
                     .end = std::min(region.end, static_cast<uint32_t>(p_.code.size()))};
    for (size_t r = region.parent; r != SIZE_MAX; r = regions_[r].parent) ++out.depth;
    for (uint32_t i = out.begin; i < out.end && out.node.empty(); ++i) out.node = report_.instructions[i];
    std::vector<Lifetime> lifetimes;
    std::vector<int64_t> bytes;
    for (const MemoryRow& r : report_.rows) {
      if (r.life.first >= region.end || r.life.last < region.begin) continue;
      lifetimes.push_back({.first = std::max(r.life.first, region.begin), .last = std::min(r.life.last, region.end)});
      bytes.push_back(r.bytes);
    }
    runtime::ArenaPlan alone = runtime::plan_arena(lifetimes, bytes);
    out.tensors = bytes.size();
    out.bound = alone.bound.bytes;
    out.needed = alone.bytes;
    return out;
  }

  const compiler::Compiled& compiled_;
  const Program& p_;
  const MemoryPlan& plan_;
  MemoryReport& report_;
  std::vector<bool> is_known_;
  std::vector<CodeRegion> regions_;
};

}  // namespace

MemoryReport memory_report(ir::Module& module, const compiler::Options& options, const Sizes& given,
                           std::vector<HostValue> inputs) {
  MemoryReport report;
  std::vector<bool> is_given;
  for (const HostValue& input : inputs) is_given.push_back(!input.is_absent());
  {
    analysis::Rdp rdp(module);
    report.sizes = with_samples(rdp, input_symbols(rdp), with_inputs(rdp, inputs, given));
    fill_inputs(rdp, report.sizes, inputs);
    interp::bind_inputs(module.main(), inputs);
    report.model = bytes_of_results(module, rdp, report.sizes);
  }
  compiler::Compiled compiled = compile(module, options);
  report.after_passes = bytes_of_results(module, analysis::Rdp(module), report.sizes);
  check_elements(compiled.program, is_given);
  auto executable = std::make_shared<runtime::Executable>();
  executable->program = std::move(compiled.program);
  MemoryPlan plan = runtime::Context(executable).memory_plan(inputs);
  compiled.program = std::move(executable->program);
  for (const compiler::Reordered& order : compiled.orders)
    report.order += fmt::format("{}{} steps from '{}' need {} bytes instead of {}{}", report.order.empty() ? "" : "; ",
                                order.steps, order.node, order.bytes, order.plain_bytes,
                                order.is_exact ? "" : ", by a search among some orders");
  if (!report.order.empty()) report.order += ", at representative sizes";
  if (report.order.empty()) report.order = "that of the nodes";
  Reporter(compiled, plan, report).fill();
  return report;
}

}  // namespace selkie::driver
