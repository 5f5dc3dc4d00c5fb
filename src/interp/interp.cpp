#include "interp/interp.h"

#include <pthread.h>

#include <chrono>

#include "interp/bind.h"
#include "ir/infer.h"

namespace selkie::interp {
namespace {

// The lowest address that evaluation may reach on this thread's stack: regions and calls nest on it, and running out
// must be an error. What is kept back is for the operators themselves and for unwinding.
uintptr_t find_stack_floor() {
  constexpr size_t kept_back = 256 << 10;
  pthread_attr_t attributes;
  void* lowest = nullptr;
  size_t size = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
  pthread_attr_getstack(&attributes, &lowest, &size);
  pthread_attr_destroy(&attributes);
  return reinterpret_cast<uintptr_t>(lowest) + kept_back;
}

// Finding it reads the list of the process's memory, which takes longer than most operators.
uintptr_t stack_floor() {
  thread_local const uintptr_t floor = find_stack_floor();
  return floor;
}

class Evaluator final : public ir::EvalServices {
 public:
  Evaluator(const ir::Module& module, const Options& options, std::vector<Binding> bindings)
      : module_(module), options_(options), bindings_(std::move(bindings)) {}

  std::vector<HostValue> call(std::string_view function, std::vector<HostValue> arguments) override {
    const ir::Function* callee = module_.find_function(function);
    if (callee == nullptr) fail("there is no function @{}", function);
    if (callee->body.parameters.size() != arguments.size())
      fail("function @{} takes {} arguments, but {} are given", function, callee->body.parameters.size(),
           arguments.size());
    if (++depth_ > options_.limits.call_depth)
      fail("calls are nested {} deep, which is the limit", options_.limits.call_depth);
    // A call sees none of its caller's values.
    Values outer = std::move(values_);
    values_.clear();
    std::vector<HostValue> results = run_region(callee->body, std::move(arguments));
    values_ = std::move(outer);
    --depth_;
    return results;
  }

  std::vector<HostValue> run_region(const ir::Region& region, std::vector<HostValue> arguments) override {
    // The frame's own address, since the sanitizers keep local variables elsewhere.
    if (reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) < stack_floor_)
      fail("calls and regions are nested too deeply for the stack, at {} calls", depth_);
    check_time();
    record_path(region);
    CHECK(region.parameters.size() == arguments.size());
    if (options_.on_enter) options_.on_enter(region, arguments);
    for (size_t i = 0; i < arguments.size(); ++i) values_[region.parameters[i].get()] = std::move(arguments[i]);
    const Releases& releases = releases_of(region);
    for (size_t i = 0; i < region.nodes.size(); ++i) {
      run_node(*region.nodes[i]);
      for (const ir::Value* dead : releases[i]) values_.erase(dead);
    }
    std::vector<HostValue> results;
    for (const ir::Value* value : region.yields) results.push_back(read(value));
    if (options_.on_leave) options_.on_leave(region);
    for (const auto& node : region.nodes)
      for (const auto& result : node->results) values_.erase(result.get());
    for (const auto& parameter : region.parameters) values_.erase(parameter.get());
    return results;
  }

  std::vector<ir::EmptyResult> infer_region(const ir::Region& region,
                                            const std::vector<HostValue>& arguments) override {
    sym::Context symbols;
    std::vector<ir::Known> parameters;
    for (const HostValue& argument : arguments) parameters.push_back(known_of(argument, symbols));
    std::vector<ir::EmptyResult> results;
    ir::Surroundings outer{
        .value = [&](const ir::Value& value) { return known_of(read(&value), symbols); },
        .static_operand = [&](const ir::Node& node, size_t i) { return known_of(static_operand(node, i), symbols); },
        .module = module_};
    for (const auto& [type, failure] : ir::infer_region(region, std::move(parameters), outer, symbols)) {
      ir::EmptyResult& result = results.emplace_back();
      result.failure = failure;
      if (!type.is_tensor()) continue;
      result.dtype = type.dtype;
      if (!type.dims) continue;
      result.dims.emplace();
      for (sym::Expr e : *type.dims) result.dims->push_back(e.constant().value_or(0));
    }
    return results;
  }

  std::vector<HostValue> run_alone(const ir::Node& node,
                                   const std::vector<std::pair<const ir::Value*, HostValue>>& outside) {
    for (const auto& [value, held] : outside) values_[value] = held;
    run_node(node);
    std::vector<HostValue> results;
    for (const auto& result : node.results) results.push_back(std::move(values_[result.get()]));
    return results;
  }

  const ir::Module& module() const override { return module_; }
  // Made when it is asked for: that takes longer than most operators.
  std::mt19937_64& random() override {
    if (!random_) random_.emplace(options_.seed);
    return *random_;
  }
  const ir::RunLimits& limits() const override { return options_.limits; }

 private:
  using Values = std::unordered_map<const ir::Value*, HostValue>;
  using Releases =
      std::vector<std::vector<const ir::Value*>>;  // per node: values of this region that nobody reads after it

  static ir::Known known_of(const HostValue& value, sym::Context& symbols) {
    if (value.is_sequence()) return {.type = ir::Type::seq(item_type(value.sequence(), symbols)), .contents = {}};
    if (!value.is_tensor()) return {};
    const Tensor& tensor = value.tensor();
    ir::SymDims dims;
    for (int64_t d : tensor.dims()) dims.push_back(symbols.constant(d));
    return {.type = ir::Type::tensor(tensor.dtype(), std::move(dims)), .contents = ir::contents_of(tensor, symbols)};
  }

  // What all items are.
  static ir::Type item_type(const std::vector<HostValue>& items, sym::Context& symbols) {
    ir::Type type;
    for (const HostValue& item : items) {
      ir::Type next = known_of(item, symbols).type;
      if (type.is_unknown()) type = next;
      if (next.kind != type.kind) return {};
      if (next.is_tensor() && (next.dtype != type.dtype || next.dims != type.dims)) type.dims.reset();
    }
    return type;
  }

  const HostValue& read(const ir::Value* value) {
    auto at = values_.find(value);
    if (at == values_.end()) {
      CHECK(value->constant != nullptr, "value %{} is read before it is made", value->name);
      at = values_.emplace(value, value->constant->tensor()).first;
    }
    return at->second;
  }

  void run_node(const ir::Node& node) {
    std::vector<HostValue> operands;
    for (size_t i = 0; i < node.operands.size(); ++i)
      operands.push_back(node.operands[i] ? read(node.operands[i]) : static_operand(node, i));
    try {
      ir::EvalContext context(*node.op, node.attrs, operands, node.results.size(), *this, &node);
      std::vector<HostValue> results = ir::evaluate(context);
      if (options_.observer) options_.observer(node, results);
      for (size_t i = 0; i < results.size(); ++i) values_[node.results[i].get()] = std::move(results[i]);
    } catch (Error& error) {
      std::string shapes;
      for (const HostValue& operand : operands) shapes += (shapes.empty() ? "" : ", ") + operand.describe();
      error.note(fmt::format("in {} of {}", node.describe(), shapes.empty() ? "no operands" : shapes));
      throw;
    }
  }

  // The elements that a pass wrote in the place of an operand, or nothing.
  HostValue static_operand(const ir::Node& node, size_t i) {
    const ir::SymbolicInts* given = node.static_operand(i);
    if (given == nullptr) return {};
    std::vector<int64_t> elements;
    for (sym::Expr e : given->elements) {
      std::optional<int64_t> value = sym::evaluate(e, [&](std::string_view name) -> std::optional<int64_t> {
        for (const Binding& binding : bindings_)
          if (binding.symbol.symbol_name() == name) return binding.value;
        return std::nullopt;
      });
      if (!value) fail("{} is not known from the inputs, in {}", sym::to_string(e), node.describe());
      elements.push_back(*value);
    }
    return given->scalar ? Tensor::scalar_i64(elements[0]) : Tensor::of_i64(elements);
  }

  void check_time() const {
    if (options_.limits.seconds <= 0) return;
    std::chrono::duration<double> used = std::chrono::steady_clock::now() - begin_;
    if (used.count() > options_.limits.seconds)
      fail("the run has taken {} seconds, which is the limit", options_.limits.seconds);
  }

  void record_path(const ir::Region& region) {
    if (options_.path == nullptr || region.parent == nullptr) return;
    const ir::Node& node = *region.parent;
    size_t index = 0;
    while (node.regions[index].get() != &region) ++index;
    std::string name = node.source.empty() && !node.results.empty() ? node.results[0]->name : node.source;
    std::string_view kind = node.op->regions[std::min(index, node.op->regions.size() - 1)].name;
    std::vector<PathStep>& path = *options_.path;
    for (size_t i = path.size(); i-- > 0;) {
      if (path[i].node == name && path[i].region == kind) {
        ++path[i].times;
        return;
      }
    }
    if (path.size() < max_path_steps) path.push_back({std::move(name), std::string(kind)});
  }

  const Releases& releases_of(const ir::Region& region) {
    auto [at, fresh] = releases_.try_emplace(&region);
    if (fresh) {
      at->second.resize(region.nodes.size());
      std::unordered_map<const ir::Value*, size_t> last_use;
      for (const auto& parameter : region.parameters) last_use[parameter.get()] = 0;
      for (size_t i = 0; i < region.nodes.size(); ++i) {
        for (const auto& result : region.nodes[i]->results) last_use[result.get()] = i;
        note_uses(*region.nodes[i], i, last_use);
      }
      for (const ir::Value* value : region.yields) last_use.erase(value);
      for (const auto& [value, node] : last_use)
        if (!region.nodes.empty()) at->second[node].push_back(value);
    }
    return at->second;
  }

  static void note_uses(const ir::Node& node, size_t index, std::unordered_map<const ir::Value*, size_t>& last_use) {
    auto touch = [&](const ir::Value* value) {
      if (auto at = last_use.find(value); at != last_use.end()) at->second = index;
    };
    for (const ir::Value* operand : node.operands) touch(operand);
    for (const auto& region : node.regions) {
      for (const auto& inner : region->nodes) note_uses(*inner, index, last_use);
      for (const ir::Value* value : region->yields) touch(value);
    }
  }

  const ir::Module& module_;
  const Options& options_;
  std::vector<Binding> bindings_;  // of @main, the only function whose symbols mean something here
  std::optional<std::mt19937_64> random_;
  Values values_;
  std::unordered_map<const ir::Region*, Releases> releases_;
  int64_t depth_ = 0;
  uintptr_t stack_floor_ = stack_floor();
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace

std::vector<HostValue> run_node(const ir::Module& module, const ir::Node& node,
                                const std::vector<std::pair<const ir::Value*, HostValue>>& outside,
                                std::span<const std::pair<std::string_view, int64_t>> symbols, const Options& options) {
  std::vector<Binding> bindings;
  for (const auto& [name, value] : symbols)
    bindings.push_back({.symbol = const_cast<ir::Module&>(module).symbols().symbol(name), .value = value});
  Evaluator evaluator(module, options, std::move(bindings));
  return evaluator.run_alone(node, outside);
}

std::vector<HostValue> run(const ir::Module& module, std::vector<HostValue> inputs, const Options& options) {
  std::optional<MemoryBudget::Scope> scope;
  if (options.memory_limit > 0) scope.emplace(std::make_shared<MemoryBudget>(options.memory_limit));
  const ir::Function& main = module.main();
  std::vector<Binding> bindings = bind_inputs(main, inputs);
  return Evaluator(module, options, std::move(bindings)).call("main", std::move(inputs));
}

}  // namespace selkie::interp
