// The order of a region's steps, where another one than that of its nodes needs less memory at a time.
//
// Steps that only the run tells the sizes of, host calls and control flow stay where they are; so does what comes
// before and after each of them. Sizes are compared where the inputs have representative ones.
#include <algorithm>
#include <array>

#include "compiler/emitter.h"
#include "plan/order.h"

namespace selkie::compiler {
namespace {

// Of each symbol, or the nearest that facts allow; the first decides, and no other may get worse.
constexpr std::array<int64_t, 3> representative_sizes{128, 32, 512};
constexpr size_t most_ordered = 2000;  // steps at a time

}  // namespace

struct Emitter::Ordering {
  const std::vector<plan::Step>& steps;
  std::map<const Value*, const Value*> viewed = {};  // results of views, and what they show
  std::map<const Value*, size_t> made_by = {};       // values, and the steps that make them
  std::map<const Value*, size_t> last_use = {};      // of memory; the number of steps: the region yields it

  const Value* memory(const Value* value) const {
    for (auto at = viewed.find(value); at != viewed.end(); at = viewed.find(value)) value = at->second;
    return value;
  }
};

// fn(value) for each that a step reads and does not compute itself.
template <class Function>
void Emitter::for_each_read(const plan::Step& step, Function fn) const {
  auto read = [&](const Node& node, auto&& self) -> void {
    for (const Value* operand : node.operands)
      if (operand != nullptr && (operand->node == nullptr || !step.inlined.contains(operand->node))) fn(operand);
    for (const auto& region : node.regions) {
      for (const auto& inner : region->nodes) self(*inner, self);
      for (const Value* yield : region->yields) fn(yield);
    }
  };
  if (step.inlined.empty()) return read(*step.node, read);
  for (const Node* node : step.inlined) read(*node, read);
}

Emitter::Ordering Emitter::look_at(const std::vector<plan::Step>& steps, const ir::Region& region) {
  Ordering out{.steps = steps};
  for (size_t i = 0; i < steps.size(); ++i) {
    const plan::Step& step = steps[i];
    if (step.stored == nullptr)
      for (const auto& result : step.node->results) out.made_by[result.get()] = i;
    else
      out.made_by[step.stored] = i;
    if (is_view(step))
      out.viewed[step.stored] = step.node->operands[0];
    else
      for_each_read(step, [&](const Value* value) { out.last_use[out.memory(value)] = i; });
  }
  for (const Value* value : region.yields) out.last_use[out.memory(value)] = steps.size();
  return out;
}

bool Emitter::is_view(const plan::Step& step) const {
  return step.stored != nullptr && step.inlined.size() == 1 && stitcher_.placement().views.contains(step.node);
}

// Whether nothing about sizes is known after a step that is not known now, and its place among others has no effect.
bool Emitter::may_be_moved(const plan::Step& step) {
  if (step.stored == nullptr && !emits_whole(*step.node)) return false;
  auto is_fixed = [](const Node* node) { return !node->op->deterministic; };
  if (is_fixed(step.node) || std::ranges::any_of(step.inlined, is_fixed)) return false;
  for (const auto& result : step.node->results) {
    const ir::Known& known = rdp_.known(*result);
    if (!known.type.is_tensor() || !known.type.dims) return false;
    std::vector<sym::Expr> symbols;
    for (sym::Expr dim : *known.type.dims) sym::collect_symbols(dim, symbols);
    if (known.contents)
      for (sym::Expr e : known.contents->elements)
        if (e) sym::collect_symbols(e, symbols);
    if (!std::ranges::all_of(symbols, [&](sym::Expr s) { return sizes_.knows(s); })) return false;
  }
  return true;
}

// Bytes that a value takes of the arena, at the representative sizes; nothing if it takes none.
std::vector<int64_t> Emitter::representative_bytes(const Value& value) {
  if (value.node == nullptr || homes_.at(value.node) != region_ || outputs_.contains(&value) ||
      destinations_.contains(&value))
    return {};
  std::optional<sym::Expr> bytes = bytes_of(rdp_.known(value).type, module_.symbols());
  if (!bytes) return {};
  std::vector<int64_t> out;
  const sym::Facts& facts = rdp_.region(*region_).facts;
  for (int64_t size : representative_sizes) {
    auto at = sym::evaluate(*bytes, [&](std::string_view name) -> std::optional<int64_t> {
      sym::Range range = facts.range(module_.symbols().symbol(name));
      int64_t low = std::max<int64_t>(range.lo.value_or(0), 0);
      return std::max(low, std::min(size, range.hi.value_or(size)));
    });
    if (!at || *at < 0) return {};
    out.push_back(*at);
  }
  return out;
}

// The steps `begin` … `end` − 1 as they are to run.
std::vector<size_t> Emitter::order_of(const Ordering& all, size_t begin, size_t end) {
  plan::OrderProblem problem;
  std::map<const Value*, std::optional<size_t>> blocks;
  auto block_of = [&](const Value* value) {
    auto [at, is_new] = blocks.try_emplace(value);
    if (!is_new) return at->second;
    std::vector<int64_t> bytes = representative_bytes(*value);
    if (bytes.empty()) return at->second;
    auto last = all.last_use.find(value);
    problem.blocks.push_back({.bytes = std::move(bytes),
                              .from_beginning = all.made_by.at(value) < begin,
                              .to_end = last != all.last_use.end() && last->second >= end});
    return at->second = problem.blocks.size() - 1;
  };
  for (size_t i = begin; i < end; ++i) {
    const plan::Step& step = all.steps[i];
    std::set<size_t> after;
    std::set<size_t> uses;
    auto use = [&](const Value* value) {
      if (is_view(step)) return;
      if (std::optional<size_t> block = block_of(all.memory(value))) uses.insert(*block);
    };
    for_each_read(step, [&](const Value* value) {
      auto made = all.made_by.find(value);
      if (made != all.made_by.end() && made->second >= begin && made->second < i) after.insert(made->second - begin);
      use(value);
    });
    if (step.stored != nullptr)
      use(step.stored);
    else
      for (const auto& result : step.node->results) use(result.get());
    problem.steps.push_back({.after = {after.begin(), after.end()}, .uses = {uses.begin(), uses.end()}});
  }
  plan::Order order = plan::best_order(problem);
  if (order.peaks != order.plain)
    out_.orders.push_back({.node = all.steps[begin].node->source,
                           .steps = end - begin,
                           .plain_bytes = order.plain[0],
                           .bytes = order.peaks[0],
                           .is_exact = order.is_exact});
  for (size_t& step : order.steps) step += begin;
  return order.steps;
}

void Emitter::emit_ordered(const std::vector<plan::Step>& steps, const ir::Region& region) {
  Ordering all = look_at(steps, region);
  auto emit_one = [&](size_t step) {
    emit(steps[step]);
    flush_checks();
  };
  for (size_t begin = 0; begin < steps.size();) {
    size_t end = begin;
    if (!options_.plain_order && !is_dead_)
      while (end < steps.size() && end - begin < most_ordered && may_be_moved(steps[end])) ++end;
    if (end - begin < 3) {
      emit_one(begin++);
      continue;
    }
    for (size_t step : order_of(all, begin, end)) emit_one(step);
    begin = end;
  }
}

}  // namespace selkie::compiler
