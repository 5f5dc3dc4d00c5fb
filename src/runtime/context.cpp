#include "runtime/context.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <list>
#include <map>

#include "program/uses.h"
#include "runtime/arena.h"
#include "runtime/arena_memory.h"
#include "runtime/buffers.h"
#include "runtime/calls.h"
#include "runtime/chains.h"
#include "runtime/detach.h"
#include "runtime/growing.h"
#include "runtime/library.h"
#include "runtime/plans.h"
#include "runtime/reach.h"
#include "runtime/replace.h"
#include "runtime/sequences.h"
#include "runtime/size_steps.h"
#include "runtime/versions.h"

namespace selkie::runtime {

using program::Instruction;
using program::no_register;
using program::Opcode;
using program::Program;
using program::Register;
using program::RegisterInfo;
using program::SizeStep;
using Storage = program::RegisterInfo::Storage;

// What all frames of a run use.
struct Context::Shared {
  explicit Shared(int threads) : workers(threads) {}

  Workers workers;
  Library library{workers};
  Buffers buffers;
  Statistics statistics;
  Profile* profile = nullptr;
  std::chrono::steady_clock::time_point begin;
  std::vector<Machine*> frames;  // of the program, and of the calls in it, the innermost last
};

// A frame: of the program, or of a function that is called.
class Context::Machine {
 public:
  Machine(std::shared_ptr<const Executable> executable, const Program& program, Shared& shared)
      : executable_(std::move(executable)),
        program_(program),
        slots_(program_.slots),
        values_(program_.registers.size()),
        growing_(program_.growths.size()),
        host_calls_(program_.host_calls.size()),
        chains_(program_),
        versions_(program_),
        shared_(shared) {
    for (size_t i = 0; i < values_.size(); ++i) {
      Storage storage = program_.registers[i].storage;
      if (storage == Storage::arena) planned_.push_back(static_cast<Register>(i));
      if (storage == Storage::input || storage == Storage::heap || storage == Storage::state)
        owning_.push_back(static_cast<Register>(i));
    }
    is_set_at_entry_ = program::set_at_entry(program_);
    bind_constants();
  }

  // The frame of a whole run. Calls do not nest on the thread's own stack.
  std::vector<HostValue> run(std::span<const HostValue> inputs) {
    Cleaner cleaner{shared_};
    std::optional<MemoryBudget::Scope> scope;
    if (int64_t limit = executable_->limits.memory_bytes; limit > 0)
      scope.emplace(std::make_shared<MemoryBudget>(limit));
    statistics_.launches = statistics_.host_calls = statistics_.arena_bytes = 0;
    buffers_.begin_run();
    shared_.begin = std::chrono::steady_clock::now();
    begin(inputs);
    while (true) {
      Machine& frame = *shared_.frames.back();
      if (const program::FunctionCall* call = frame.run_to_call()) {
        frame.enter_call(*call);
        continue;
      }
      std::vector<HostValue> results = frame.end();
      if (&frame == this) return results;
      shared_.frames.back()->leave_call(std::move(results));
    }
  }

  MemoryPlan memory_plan(std::span<const HostValue> inputs) {
    Cleaner cleaner{shared_};
    shared_.frames.push_back(this);
    enter(inputs);
    std::vector<program::Chain> chains = chosen_chains();
    std::vector<int64_t> bytes = planned_bytes(chains);
    ArenaPlanner& planner = planner_with(chains);
    ArenaPlan plan = planner.plan(bytes);
    MemoryPlan out{.tensors = {},
                   .arena_bytes = plan.bytes,
                   .bound = plan.bound,
                   .is_best_at_all_sizes = planner.is_best_at_all_sizes(),
                   .slots = slots_};
    std::vector<Lifetime> lifetimes = chains_.lifetimes(planned_, chains);
    for (size_t i = 0; i < planned_.size(); ++i)
      out.tensors.push_back(
          {.tensor = planned_[i], .bytes = bytes[i], .offset = plan.offsets[i], .life = lifetimes[i]});
    return out;
  }

 private:
  // Whatever happens, nothing of a run is kept but some frames, without their values.
  struct Cleaner {
    Shared& shared;
    ~Cleaner() {
      for (; !shared.frames.empty(); shared.frames.pop_back()) {
        shared.frames.back()->forget_values();
        if (shared.frames.size() >= most_kept_frames) shared.frames.back()->callees_.clear();
      }
    }
  };

  void begin(std::span<const HostValue> inputs) {
    shared_.frames.push_back(this);
    std::ranges::fill(host_calls_, 0);
    at_ = enter(inputs);
    bind_arena();
  }

  // Null when all is done.
  const program::FunctionCall* run_to_call() {
    while (at_ < program_.code.size()) {
      if (program_.code[at_].op == Opcode::call) return &program_.calls[program_.code[at_].a];
      advance(at_);
    }
    return nullptr;
  }

  std::vector<HostValue> end() {
    std::vector<HostValue> results;
    for (Register r : program_.results) results.push_back(detached(share(r)));
    forget_values();
    if (executable_->limits.memory_bytes > 0) MemoryBudget::current()->refund(plans_.latest().arena.bytes);
    shared_.frames.pop_back();
    return results;
  }

  void enter_call(const program::FunctionCall& call) {
    check_time();
    if (auto depth = static_cast<int64_t>(shared_.frames.size()); depth >= executable_->limits.call_depth)
      fail_limit("calls are nested {} deep, which is the limit, in {}", depth, call.node);
    std::vector<HostValue> operands;
    for (Register r : call.operands) operands.push_back(share(r));
    std::unique_ptr<Machine>& callee = callees_[call.function];
    if (!callee) callee = std::make_unique<Machine>(executable_, executable_->functions[call.function], shared_);
    callee->begin(operands);
  }

  void leave_call(std::vector<HostValue> results) {
    const program::FunctionCall& call = program_.calls[program_.code[at_++].a];
    for (size_t i = 0; i < call.results.size(); ++i)
      if (call.results[i] != no_register) set_host(call.results[i], detached(std::move(results[i])));
    if (shared_.frames.size() >= most_kept_frames) callees_.clear();
  }

  // Binds the inputs and computes the sizes that follow from them, on which the arena depends. Returns the instruction
  // after that.
  size_t enter(std::span<const HostValue> inputs) {
    bind_inputs(inputs);
    size_t at = 0;
    while (at < program_.code.size() && program::is_entry(program_.code[at].op)) advance(at);
    return at;
  }

  struct Value {
    std::byte* data = nullptr;
    HostValue host;          // owns the data of heap registers
    bool is_second = false;  // of the two places of one that alternates
    bool is_own = false;     // a sequence that no one else refers to
  };

  // Runs the instruction at `at`, which becomes that of the next.
  void advance(size_t& at) {
    const Instruction& i = program_.code[at++];
    if (i.op == Opcode::jump || (i.op == Opcode::branch && slots_[i.b] == 0)) {
      at = i.a;
      return;
    }
    if (i.op == Opcode::convolution && !plans_.latest().chains.empty() && advance_chain(at)) return;
    if (executable_->interpreter) check_reaches(program_, i, slots_, [&](Register r) { return bytes_behind(r); });
    if (shared_.profile == nullptr)
      execute(i);
    else
      record([&] { execute(i); }, {&i, 1});
  }

  void bind_constants() {
    for (size_t i = 0; i < values_.size(); ++i)
      if (program_.registers[i].storage == Storage::constant) {
        const Tensor& constant = executable_->program.constants[program_.registers[i].constant];
        values_[i] = {.data = const_cast<std::byte*>(constant.bytes()), .host = constant};
      }
  }

  void forget_values() {
    for (Register r : owning_) values_[r] = {};
    for (Growing& growing : growing_) growing.begin();
  }

  void bind_inputs(std::span<const HostValue> inputs) {
    if (inputs.size() != program_.inputs.size())
      fail("the model has {} inputs, but {} are given", program_.inputs.size(), inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      const program::Input& declared = program_.inputs[i];
      if (declared.is_tensor) {
        const Tensor& given = inputs[i].tensor();
        if (given.dtype() != declared.dtype)
          fail("input '{}' is {}, but must be {}", declared.name, name(given.dtype()), name(declared.dtype));
        if (declared.rank && given.dims().size() != *declared.rank)
          fail("input '{}' has shape {}, but must have rank {}", declared.name, to_string(given.dims()),
               *declared.rank);
      }
      set_host(program_.parameters[i], inputs[i]);
    }
  }

  // Sets a register whose value comes from outside the kernels, and its dims.
  void set_host(Register r, HostValue value) {
    const RegisterInfo& info = program_.registers[r];
    if (info.is_tensor) {
      // What a node that comes later requires is not yet checked.
      check_type(info, value);
      const Tensor& tensor = value.tensor();
      for (size_t i = 0; i < info.dims.size(); ++i) slots_[info.dims[i]] = tensor.dims()[i];
      values_[r].data = const_cast<std::byte*>(tensor.bytes());
    }
    values_[r].host = std::move(value);
    values_[r].is_own = false;
  }

  // The arena depends on sizes that are known at entry, so that plans of earlier calls serve again.
  void bind_arena() {
    std::span<const int64_t> key(slots_.data(), program_.entry_slots);
    if (!plans_.find(key)) {
      std::vector<program::Chain> chains = chosen_chains();
      ArenaPlan plan = planner_with(chains).plan(planned_bytes(chains));
      plans_.add({.key = {key.begin(), key.end()}, .arena = std::move(plan), .chains = std::move(chains)});
      ++statistics_.plans;
      statistics_.kept_plans = plans_.count();
    }
    const ArenaPlan& plan = plans_.latest().arena;
    check_memory(plan);
    std::byte* memory = arena_.provide(plan.bytes);
    statistics_.arena_bytes = std::max(statistics_.arena_bytes, plan.bytes);
    for (size_t i = 0; i < planned_.size(); ++i) {
      values_[planned_[i]].data = memory + plan.offsets[i];
      values_[planned_[i]].is_second = false;
    }
  }

  // An interpreter makes epilogues when a whole convolution is done.
  std::vector<program::Chain> chosen_chains() {
    return executable_->interpreter ? std::vector<program::Chain>{}
                                    : chains_.choose(slots_, workers_.threads(), versions_);
  }

  // Which chains are made decides when tensors are in use, and few sets of them occur.
  ArenaPlanner& planner_with(const std::vector<program::Chain>& chains) {
    auto at = std::ranges::find(planners_, chains, &Planner::chains);
    if (at == planners_.end()) {
      if (planners_.size() == most_kept_planners) planners_.pop_back();
      planners_.push_front({.chains = chains, .arena = ArenaPlanner(chains_.lifetimes(planned_, chains))});
    } else if (at != planners_.begin()) {
      planners_.splice(planners_.begin(), planners_, at);
    }
    return planners_.front().arena;
  }

  std::vector<int64_t> planned_bytes(std::span<const program::Chain> chains) const {
    std::vector<int64_t> out;
    out.reserve(planned_.size());
    std::vector<Register> never_stored = chains_.never_stored(chains);
    for (Register r : planned_) {
      const RegisterInfo& info = program_.registers[r];
      constexpr int64_t most_bytes = int64_t{1} << 48;
      bool is_fine = slots_[info.bytes] <= most_bytes && (slots_[info.bytes] >= 0 || info.is_conditional);
      if (!is_fine) fail("'{}' would need {} bytes", info.name, slots_[info.bytes]);
      out.push_back(info.alternates ? 2 * place_bytes(info) : std::max<int64_t>(slots_[info.bytes], 0));
      if (std::ranges::find(never_stored, r) != never_stored.end()) out.back() = 0;
    }
    return out;
  }

  // Before anything is allocated.
  void check_memory(const ArenaPlan& plan) const {
    int64_t limit = executable_->limits.memory_bytes;
    if (limit <= 0) return;
    int64_t outputs = bytes_of_outputs();
    if (plan.bytes + outputs > limit)
      fail_limit(
          "the run needs {} bytes, but its limit is {}: {} for intermediate results, most of them at {}, and {} for "
          "outputs",
          plan.bytes + outputs, limit, plan.bytes, describe_instruction(plan.bound.at), outputs);
    MemoryBudget::current()->charge(plan.bytes);
  }

  // Of those whose size is known at entry.
  int64_t bytes_of_outputs() const {
    int64_t sum = 0;
    for (Register r : program_.results) {
      const RegisterInfo& info = program_.registers[r];
      bool is_known = info.storage == Storage::heap && info.is_tensor && info.dtype != DType::str &&
                      std::ranges::all_of(info.dims, [&](program::Slot s) { return is_set_at_entry_[s]; });
      if (is_known) sum += element_count(dims_of(r)) * static_cast<int64_t>(element_size(info.dtype));
    }
    return sum;
  }

  std::string describe_instruction(uint32_t at) const {
    std::string_view node = at < program_.code.size() ? program::node_of(program_, program_.code[at]) : "";
    return node.empty() ? fmt::format("instruction {}", at) : fmt::format("'{}'", node);
  }

  // Of one of the two places of a tensor that alternates.
  int64_t place_bytes(const RegisterInfo& info) const {
    return aligned_bytes(std::max<int64_t>(slots_[info.bytes], 0));
  }

  void execute(const Instruction& i) {
    switch (i.op) {
      case Opcode::sizes:
        for (uint32_t s = i.a; s < i.b; ++s) {
          const SizeStep& step = program_.steps[s];
          slots_[step.to] = result_of(step, slots_[step.a], slots_[step.b]);
        }
        break;
      case Opcode::check:
        check(program_.checks[i.a]);
        break;
      case Opcode::check_indices:
        check_indices(program_.index_checks[i.a]);
        break;
      case Opcode::launch:
        launch(program_.launches[i.a]);
        break;
      case Opcode::product:
        product(program_.products[i.a]);
        break;
      case Opcode::convolution:
        convolution(program_.convolutions[i.a]);
        break;
      case Opcode::integer:
        integer_product(program_.integer_products[i.a]);
        break;
      case Opcode::attention:
        attention(program_.attentions[i.a]);
        break;
      case Opcode::recurrent:
        recurrent(program_.recurrents[i.a]);
        break;
      case Opcode::host:
        host(i.a);
        break;
      case Opcode::bind:
        bind(program_.binds[i.a]);
        break;
      case Opcode::allocate:
        set_host(i.a, buffers_.tensor(program_.registers[i.a].dtype, dims_of(i.a)));
        break;
      case Opcode::release:
        values_[i.a] = {};
        break;
      default:
        execute_control(i);
    }
  }

  void execute_control(const Instruction& i) {
    switch (i.op) {
      case Opcode::fail:
        fail_check(program_.checks[i.a]);
      case Opcode::trip:
        check_limits(slots_[i.a]);
        break;
      case Opcode::move:
        move(i.a, i.b);
        break;
      case Opcode::take:
        take(i.a, i.b);
        break;
      case Opcode::alternate: {
        Value& value = values_[i.a];
        int64_t distance = place_bytes(program_.registers[i.a]);
        value.data += value.is_second ? -distance : distance;
        value.is_second = !value.is_second;
        break;
      }
      case Opcode::scalar:
        *reinterpret_cast<int64_t*>(data_of(i.a)) = slots_[i.b];
        break;
      case Opcode::copy_slice:
        copy_slice(program_.slice_copies[i.a]);
        break;
      case Opcode::replace:
        replace(program_.replacements[i.a]);
        break;
      case Opcode::item:
        item(program_.items[i.a]);
        break;
      case Opcode::insert:
        insert(program_.insertions[i.a]);
        break;
      case Opcode::length:
        slots_[i.a] = static_cast<int64_t>(values_[i.b].host.sequence().size());
        break;
      case Opcode::grow:
        growing_[i.a].begin();
        break;
      case Opcode::append:
        append(i.a);
        break;
      case Opcode::collect:
        collect(i.a);
        break;
      default:
        break;
    }
  }

  void check_limits(int64_t trips) {
    const Limits& limits = executable_->limits;
    if (trips >= limits.loop_trips) fail_limit("the loop has run {} trips, which is the limit", limits.loop_trips);
    check_time();
  }

  void check_time() {
    const Limits& limits = executable_->limits;
    if (limits.seconds <= 0) return;
    std::chrono::duration<double> used = std::chrono::steady_clock::now() - shared_.begin;
    if (used.count() > limits.seconds) fail_limit("the run has taken {} seconds, which is the limit", limits.seconds);
  }

  void move(Register to, Register from) {
    const RegisterInfo& info = program_.registers[to];
    if (info.storage == Storage::heap) {
      HostValue value = share(from);
      Storage storage = program_.registers[base(from)].storage;
      bool may_be_attached = storage == Storage::arena || storage == Storage::state;
      set_host(to, may_be_attached ? detached(std::move(value)) : std::move(value));
    } else if (info.storage == Storage::state) {
      std::byte* data = data_of(from);
      values_[to].host = values_[base(from)].host;
      values_[to].data = data;
    } else {
      copy_bytes(data_of(from), element_count(dims_of(to)) * static_cast<int64_t>(element_size(info.dtype)),
                 data_of(to));
    }
  }

  static void copy_bytes(const std::byte* from, int64_t bytes, std::byte* to) {
    if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
  }

  void copy_slice(const program::SliceCopy& c) {
    if (slots_[c.rows] == 0 || slots_[c.row_bytes] == 0) return;  // a value of no bytes may have no address
    const std::byte* from = data_of(c.from) + slots_[c.from_offset];
    std::byte* to = data_of(c.to) + slots_[c.to_offset];
    for (int64_t row = 0; row < slots_[c.rows]; ++row)
      copy_bytes(from + row * slots_[c.from_stride], slots_[c.row_bytes], to + row * slots_[c.to_stride]);
  }

  void replace(const program::Replacement& r) {
    replace_slices({.to_dims = dims_of(r.to),
                    .index_dims = dims_of(r.indices),
                    .slice_dims = dims_of(r.slices),
                    .element_bytes = static_cast<int64_t>(element_size(program_.registers[r.to].dtype)),
                    .indices = reinterpret_cast<const int64_t*>(data_of(r.indices)),
                    .slices = data_of(r.slices),
                    .to = data_of(r.to),
                    .node = r.node});
  }

  void take(Register to, Register from) {
    bool is_own = values_[from].is_own;
    set_host(to, std::move(values_[from].host));
    values_[from] = {};
    values_[to].is_own = is_own;
  }

  void check_type(const RegisterInfo& info, const HostValue& value) const {
    if (value.tensor().dims().size() != info.dims.size() || value.tensor().dtype() != info.dtype)
      fail("'{}' must be {} of rank {}, but is {}", info.name, name(info.dtype), info.dims.size(), value.describe());
  }

  void item(const program::Item& i) {
    const std::vector<HostValue>& items = values_[i.sequence].host.sequence();
    if (items.empty()) fail("the sequence is empty, in {}", i.node);
    HostValue found = items[position(slots_[i.index], items.size(), items.size() - 1, i.node)];
    set_host(i.to, std::move(found));
  }

  void insert(const program::Insertion& i) {
    const std::vector<HostValue>& items = values_[i.sequence].host.sequence();
    size_t at = i.index ? position(slots_[*i.index], items.size(), items.size(), i.node) : items.size();
    if (static_cast<int64_t>(items.size()) >= executable_->limits.sequence_items)
      fail_limit("the sequence would have {} items, which is over the limit, in {}", items.size() + 1, i.node);
    HostValue item = detached(share(i.item));
    bool is_own = i.takes && values_[i.sequence].is_own;
    HostValue sequence = values_[i.sequence].host;
    if (is_own) values_[i.sequence] = {};
    values_[i.to].host = with_item(std::move(sequence), is_own, at, std::move(item));
    values_[i.to].is_own = true;
  }

  void append(uint32_t index) {
    const program::Growth& growth = program_.growths[index];
    Growing& growing = growing_[index];
    if (growth.stacks)
      return growing.append(program_.registers[growth.from].dtype, dims_of(growth.from), data_of(growth.from),
                            buffers_);
    if (growing.item_count() >= executable_->limits.sequence_items)
      fail_limit("a sequence of more than {} items, which is the limit", executable_->limits.sequence_items);
    growing.append(detached(share(growth.from)));
  }

  void collect(uint32_t index) {
    const program::Growth& growth = program_.growths[index];
    Growing& growing = growing_[index];
    if (!growth.stacks) return set_host(growth.to, growing.take_items());
    if (growing.count() > 0) return set_host(growth.to, growing.take_stacked(growth.reversed, buffers_));
    Dims dims;
    for (program::Slot slot : growth.empty) dims.push_back(slots_[slot]);
    set_host(growth.to, Tensor(program_.registers[growth.from].dtype, std::move(dims)));
  }

  // What making these instructions takes.
  template <class Make>
  void record(Make make, std::span<const Instruction> instructions) {
    auto now = [] { return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1); };
    int64_t begin = now();
    make();
    int64_t end = now();
    Work work = work_of(program_, instructions, slots_);
    if (!work.kind.empty() && shared_.profile->events.size() < Profile::most_events)
      shared_.profile->events.push_back(
          {.begin_ns = begin,
           .end_ns = end,
           .instruction = place_of(instructions[0], executable_->program, executable_->functions),
           .work = std::move(work)});
  }

  void check(const program::Check& c) {
    int64_t a = slots_[c.a];
    int64_t b = slots_[c.b];
    if (c.equal ? a != b : a > b) fail_check(c);
  }

  [[noreturn]] void fail_check(const program::Check& c) const {
    fail("{}", fmt::format(fmt::runtime(c.text), fmt::arg("a", slots_[c.a]), fmt::arg("b", slots_[c.b])));
  }

  void check_indices(const program::IndexCheck& c) {
    int64_t count = element_count(dims_of(c.indices));
    if (program_.registers[c.indices].dtype == DType::i32)
      check_each(std::span(reinterpret_cast<const int32_t*>(data_of(c.indices)), static_cast<size_t>(count)), c);
    else
      check_each(std::span(reinterpret_cast<const int64_t*>(data_of(c.indices)), static_cast<size_t>(count)), c);
  }

  template <class T>
  void check_each(std::span<const T> indices, const program::IndexCheck& c) const {
    int64_t extent = slots_[c.extent];
    for (T i : indices)
      if (i < -extent || i >= extent) fail("index {} is outside -{}..{}, in {}", i, extent, extent - 1, c.node);
  }

  std::byte* data_of(Register r) const {
    const RegisterInfo& info = program_.registers[r];
    if (info.storage != Storage::view) return values_[r].data;
    return info.offset ? data_of(info.viewed) + slots_[*info.offset] : data_of(info.viewed);
  }

  Register base(Register r) const {
    while (program_.registers[r].storage == Storage::view) r = program_.registers[r].viewed;
    return r;
  }

  Dims dims_of(Register r) const {
    Dims dims;
    for (program::Slot slot : program_.registers[r].dims) dims.push_back(slots_[slot]);
    return dims;
  }

  // What a kernel is called with.
  struct Arguments {
    static constexpr size_t most = 64;
    void* buffers[most];
    int64_t sizes[most];
  };
  void set_arguments(const program::Launch& l, Arguments& arguments) const {
    CHECK(l.buffers.size() <= Arguments::most && l.sizes.size() <= Arguments::most, "a kernel of so many operands");
    for (size_t i = 0; i < l.buffers.size(); ++i) arguments.buffers[i] = data_of(l.buffers[i]);
    for (size_t i = 0; i < l.sizes.size(); ++i) arguments.sizes[i] = slots_[l.sizes[i]];
  }

  void launch(const program::Launch& l) {
    Arguments arguments;
    set_arguments(l, arguments);
    int64_t ranges[2] = {0, l.range ? slots_[*l.range] : 0};
    ++statistics_.launches;
    if (executable_->interpreter) return interpret(l, arguments, {ranges, l.range ? size_t{2} : size_t{0}});
    KernelFunction kernel = executable_->kernels[l.kernel];
    // Below so many elements, telling the other threads takes as long as the work.
    constexpr int64_t least_shared = 8192;
    if (workers_.threads() == 1 || ranges[1] < 2 || element_count(dims_of(l.buffers[0])) < least_shared)
      return kernel(arguments.buffers, arguments.sizes, ranges);
    int64_t parts = std::min<int64_t>(ranges[1], int64_t{4} * workers_.threads());
    workers_.run(parts, 0, [&](int64_t begin, int64_t end, std::byte*) {
      int64_t part[2] = {ranges[1] * begin / parts, ranges[1] * end / parts};
      kernel(arguments.buffers, arguments.sizes, part);
    });
  }

  // How many bytes there are from the first of a register on, whatever its dims say. Of what a state points to in the
  // arena only the end of that is known.
  int64_t bytes_behind(Register r) const {
    const RegisterInfo& info = program_.registers[r];
    if (info.storage == Storage::view) return bytes_behind(info.viewed) - (info.offset ? slots_[*info.offset] : 0);
    if (info.storage == Storage::arena) return info.alternates ? place_bytes(info) : slots_[info.bytes];
    const Value& value = values_[r];
    if (!value.host.is_tensor()) return arena_.holds(value.data) ? arena_.end() - value.data : 0;
    return value.host.tensor().bytes() + value.host.tensor().byte_size() - value.data;
  }

  void interpret(const program::Launch& l, const Arguments& arguments, std::span<const int64_t> ranges) {
    std::vector<CheckedBuffer> checked;
    for (size_t i = 0; i < l.buffers.size(); ++i) {
      auto size = static_cast<int64_t>(element_size(program_.registers[l.buffers[i]].dtype));
      checked.push_back(
          {.data = arguments.buffers[i],
           .elements = std::min(element_count(dims_of(l.buffers[i])), bytes_behind(l.buffers[i]) / size)});
    }
    executable_->interpreter(l.kernel, checked, {arguments.sizes, l.sizes.size()}, ranges);
  }

  // Null stands for what is not there, to library kernels: a tensor without elements is somewhere, too.
  float* floats(Register r) const {
    if (r == no_register) return nullptr;
    static float nowhere[16];
    auto* at = reinterpret_cast<float*>(data_of(r));
    return at != nullptr ? at : nowhere;
  }

  // run(epilogue) for a library call; an interpreter makes the epilogue when the call is done.
  template <class Run>
  void with_epilogue(std::optional<uint32_t> index, int64_t rows, int64_t columns, Run run) {
    ++statistics_.launches;
    if (!index) return run(kernels::Epilogue{});
    const program::Launch& l = program_.launches[*index];
    Arguments arguments;
    set_arguments(l, arguments);
    if (!executable_->interpreter)
      return run(kernels::Epilogue{
          .function = executable_->kernels[l.kernel], .buffers = arguments.buffers, .sizes = arguments.sizes});
    run(kernels::Epilogue{});
    interpret(l, arguments, std::array<int64_t, 4>{0, rows, 0, columns});
  }

  // Weights in the library's layout, which may not be there before the first call that reads them.
  std::byte* weights(Register r) const {
    const RegisterInfo& info = program_.registers[r];
    if (executable_->late_weights && info.storage == Storage::constant)
      executable_->late_weights->ensure(info.constant);
    return data_of(r);
  }
  float* float_weights(Register r) const { return reinterpret_cast<float*>(weights(r)); }

  void product(const program::MatrixProduct& p) {
    set_product(p, slots_, [this](Register r) { return floats(r); }, product_);
    if (p.packed) product_.matrices.packed_b = float_weights(p.b.value);
    with_epilogue(p.epilogue, product_.matrices.m, product_.matrices.n, [&](const kernels::Epilogue& epilogue) {
      product_.matrices.epilogue = epilogue;
      DType dtype = program_.registers[p.b.value].dtype;
      if (dtype == DType::f32) return library_.run(product_);
      library_.run(kernels::HalfGemm{.matrices = product_.matrices,
                                     .packed = reinterpret_cast<const uint16_t*>(data_of(p.b.value)),
                                     .kind = dtype == DType::f16 ? kernels::HalfKind::f16 : kernels::HalfKind::bf16});
    });
  }

  void integer_product(const program::IntegerProduct& p) {
    const RegisterInfo& input = program_.registers[p.input];
    kernels::IntegerProduct call{
        .shape = shape_of(p, slots_),
        .input = {.data = reinterpret_cast<const uint8_t*>(data_of(p.input)), .is_signed = input.dtype == DType::i8},
        .packed = data_of(p.weights),
        .output = reinterpret_cast<int32_t*>(data_of(p.output)),
        .epilogue = {}};
    if (p.zero != no_register) {
      call.input.zeros = reinterpret_cast<const uint8_t*>(data_of(p.zero));
      call.input.zero_count = element_count(dims_of(p.zero));
    }
    with_epilogue(p.epilogue, call.shape.output_pixels(), p.output_channels, [&](const kernels::Epilogue& epilogue) {
      call.epilogue = epilogue;
      library_.run(call);
    });
  }

  kernels::ChainLink call_of(const program::Convolution& c) {
    kernels::ConvolutionShape shape = shape_of(c, slots_);
    kernels::ConvolutionVersion version = versions_.of(c, shape);
    return {.convolution = {.shape = shape,
                            .input = floats(c.input),
                            .input_pixel_stride = c.input_channels,
                            .packed_weights = float_weights(weights_of(c, version)),
                            .bias = floats(c.bias),
                            .output = floats(c.output),
                            .output_pixel_stride = c.output_channels,
                            .finish = finish_of(c.finish, [this](Register r) { return floats(r); }),
                            .epilogue = {}},
            .version = version};
  }

  void convolution(const program::Convolution& c) {
    kernels::ChainLink link = call_of(c);
    kernels::Convolution& call = link.convolution;
    if (c.packs_weights) call.packed_weights = library_.packed(call.shape, call.packed_weights, link.version);
    with_epilogue(c.epilogue, call.shape.output_pixels(), c.output_channels, [&](const kernels::Epilogue& epilogue) {
      call.epilogue = epilogue;
      library_.run(call, link.version);
    });
  }

  // Makes the chain that the instruction before `at` begins, if there is one.
  bool advance_chain(size_t& at) {
    const std::vector<program::Chain>& chains = plans_.latest().chains;
    auto found = std::ranges::lower_bound(chains, at - 1, {}, &program::Chain::first);
    if (found == chains.end() || found->first != at - 1) return false;
    at = found->last + 1;
    std::span<const Instruction> links = std::span(program_.code).subspan(found->first, found->last - found->first + 1);
    if (shared_.profile == nullptr)
      chain(links);
    else
      record([&] { chain(links); }, links);
    return true;
  }

  void chain(std::span<const Instruction> instructions) {
    std::array<kernels::ChainLink, kernels::most_links> links;
    std::array<Arguments, kernels::most_links> arguments;
    for (size_t i = 0; i < instructions.size(); ++i) {
      const program::Convolution& c = program_.convolutions[instructions[i].a];
      links[i] = call_of(c);
      if (!c.epilogue) continue;
      const program::Launch& l = program_.launches[*c.epilogue];
      set_arguments(l, arguments[i]);
      links[i].convolution.epilogue = {
          .function = executable_->kernels[l.kernel], .buffers = arguments[i].buffers, .sizes = arguments[i].sizes};
      links[i].epilogue_buffers = l.buffers.size();
      for (size_t b = 0; b < l.buffers.size(); ++b)
        links[i].output_buffers |= static_cast<uint64_t>(l.buffers[b] == c.output) << b;
    }
    statistics_.launches += static_cast<int64_t>(instructions.size());
    library_.run({links.data(), instructions.size()});
  }

  void attention(const program::Attention& a) {
    bool has_boolean_mask = a.mask != no_register && program_.registers[a.mask].dtype == DType::boolean;
    ++statistics_.launches;
    library_.run(attention_call(a, slots_, has_boolean_mask, [this](Register r) { return floats(r); }));
  }

  void recurrent(const program::Recurrent& r) {
    weights(r.weights);
    kernels::Recurrent call = recurrent_call(r, slots_, [this](Register at) { return floats(at); });
    ++statistics_.launches;
    library_.run(call);
  }

  // A register as a host value; tensors of the arena are seen in place.
  HostValue host_value(Register r) const {
    if (r == no_register) return {};
    const RegisterInfo& info = program_.registers[r];
    bool points_elsewhere = info.storage == Storage::state || (info.storage == Storage::view && info.offset);
    if (!points_elsewhere) {
      if (!values_[r].host.is_absent()) return values_[r].host;
      if (!info.is_tensor) return {};
      if (info.storage == Storage::view) return host_value(info.viewed).tensor().reshaped(dims_of(r));
      return Tensor::view(info.dtype, dims_of(r), data_of(r), nullptr);
    }
    HostValue owner = info.storage == Storage::state ? values_[r].host : host_value(info.viewed);
    return Tensor::view(info.dtype, dims_of(r), data_of(r), std::make_shared<const HostValue>(std::move(owner)));
  }

  // The same for others, who may keep it.
  HostValue share(Register r) {
    if (r != no_register) values_[r].is_own = false;
    return host_value(r);
  }

  // A host value that does not point into the arena or at a caller's memory.
  HostValue detached(HostValue value) { return runtime::detached(std::move(value), arena_, buffers_); }

  void host(uint32_t index) {
    const program::HostCall& call = program_.host_calls[index];
    std::vector<HostValue> operands;
    for (Register r : call.operands) operands.push_back(share(r));
    std::vector<std::pair<std::string_view, int64_t>> symbols;
    for (const auto& [name, slot] : call.symbols) symbols.emplace_back(name, slots_[slot]);
    ++statistics_.host_calls;
    check_time();
    std::vector<HostValue> results =
        executable_->host_functions[index]({.operands = operands, .symbols = symbols, .times = host_calls_[index]++});
    for (size_t i = 0; i < call.results.size() && i < results.size(); ++i)
      if (call.results[i] != no_register) set_host(call.results[i], detached(std::move(results[i])));
  }

  void bind(const program::Bind& b) {
    if (const bool* condition = single_condition(b)) {
      slots_[b.elements[0].second] = *condition ? 1 : 0;
      return;
    }
    HostValue value = host_value(b.value);
    if (!value.is_tensor()) return;
    const Tensor& tensor = value.tensor();
    for (auto [axis, slot] : b.dims)
      if (axis < tensor.dims().size()) slots_[slot] = tensor.dims()[axis];
    if (b.elements.empty() && b.negative.empty()) return;
    const RegisterInfo& info = program_.registers[b.value];
    if (!info.is_tensor && tensor.count() != 1)
      fail("'{}' must have one element, but is {}", info.name, value.describe());
    bind_elements(b, tensor, slots_);
  }

  // Conditions are read in every trip.
  const bool* single_condition(const program::Bind& b) const {
    const RegisterInfo& info = program_.registers[b.value];
    if (!info.is_tensor || info.dtype != DType::boolean || !b.dims.empty() || b.elements.size() != 1 ||
        b.elements[0].first != 0 || !b.negative.empty() || element_count(dims_of(b.value)) != 1)
      return nullptr;
    return reinterpret_cast<const bool*>(data_of(b.value));
  }

  struct Planner {
    std::vector<program::Chain> chains;
    ArenaPlanner arena;
  };
  static constexpr size_t most_kept_planners = 8;

  std::shared_ptr<const Executable> executable_;
  const Program& program_;
  std::vector<int64_t> slots_;
  std::vector<Value> values_;
  std::vector<Register> planned_;
  std::vector<Register> owning_;  // those that hold a value of the run, which must not outlive it
  std::vector<Growing> growing_;
  std::vector<uint64_t> host_calls_;  // how often each was made in this run
  size_t at_ = 0;                     // the instruction that runs next
  Chains chains_;
  Versions versions_;
  std::list<Planner> planners_;        // the latest first
  std::vector<bool> is_set_at_entry_;  // of the slots
  Plans plans_;
  ArenaMemory arena_;
  Product product_;  // kept for its memory
  // By function, from one call to the next; those of very deep calls are not kept.
  static constexpr size_t most_kept_frames = 64;
  std::map<uint32_t, std::unique_ptr<Machine>> callees_;
  Shared& shared_;
  Workers& workers_ = shared_.workers;
  Library& library_ = shared_.library;
  Buffers& buffers_ = shared_.buffers;
  Statistics& statistics_ = shared_.statistics;
};

Context::Context(std::shared_ptr<const Executable> executable, int threads)
    : shared_(std::make_unique<Shared>(threads)) {
  const Program& program = executable->program;
  machine_ = std::make_unique<Machine>(std::move(executable), program, *shared_);
}
Context::~Context() = default;
Context::Context(Context&&) noexcept = default;

std::vector<HostValue> Context::run(std::span<const HostValue> inputs) { return machine_->run(inputs); }
MemoryPlan Context::memory_plan(std::span<const HostValue> inputs) { return machine_->memory_plan(inputs); }
const Statistics& Context::statistics() const { return shared_->statistics; }
void Context::record_to(Profile* profile) { shared_->profile = profile; }

}  // namespace selkie::runtime
