#include "kir/interpret.h"

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "kir/scalar.h"
#include "sym/node.h"
#include "sym/range.h"

namespace selkie::kir {
namespace {

uint64_t raw(int64_t value) { return static_cast<uint64_t>(value); }

// Where the values of symbols are: sizes first, then the variables of loops.
using Slots = std::unordered_map<uint64_t, uint32_t>;

// A symbolic integer as steps of a stack machine, so that no name is looked up while a loop runs.
class IntegerProgram {
 public:
  IntegerProgram(sym::Expr e, const Slots& slots) { append(e.node(), slots); }

  // `stack` is room to work in.
  int64_t run(const std::vector<int64_t>& symbols, std::vector<int64_t>& stack) const {
    stack.clear();
    for (const Step& step : steps_) {
      if (step.kind == Kind::constant || step.kind == Kind::symbol) {
        stack.push_back(step.kind == Kind::constant ? step.value : symbols[raw(step.value)]);
        continue;
      }
      int64_t b = stack.back();
      stack.pop_back();
      stack.back() = combine(step, stack.back(), b);
    }
    return stack.back();
  }

 private:
  using Kind = sym::Kind;
  struct Step {
    Kind kind;
    int64_t value = 0;  // of a constant or the slot of a symbol; of a sum: what the second operand is multiplied by
  };

  static int64_t combine(const Step& step, int64_t a, int64_t b) {
    switch (step.kind) {
      case Kind::sum:
        return static_cast<int64_t>(raw(a) + raw(b) * raw(step.value));
      case Kind::product:
        return static_cast<int64_t>(raw(a) * raw(b));
      case Kind::min:
        return std::min(a, b);
      case Kind::max:
        return std::max(a, b);
      default:
        if (b == 0) b = 1;  // as in compiled code: without meaning, where a condition keeps the result from being used
        if (step.kind == Kind::mod) return sym::floor_remainder(a, b);
        return b == -1 ? static_cast<int64_t>(0 - raw(a)) : sym::floor_quotient(a, b);
    }
  }

  void append(const sym::Node* node, const Slots& slots) {
    switch (node->kind) {
      case Kind::constant:
        steps_.push_back({Kind::constant, node->value});
        return;
      case Kind::symbol:
        steps_.push_back({Kind::symbol, slots.at(node->id)});
        return;
      case Kind::sum:
        steps_.push_back({Kind::constant, node->value});
        for (const sym::Term& term : node->terms()) {
          append(term.monomial, slots);
          steps_.push_back({Kind::sum, term.coefficient});
        }
        return;
      case Kind::product: {
        steps_.push_back({Kind::constant, 1});
        for (const sym::Factor& factor : node->factors())
          for (int64_t i = 0; i < factor.power; ++i) {
            append(factor.atom, slots);
            steps_.push_back({Kind::product});
          }
        return;
      }
      default:
        append(node->operands()[0], slots);
        for (const sym::Node* operand : node->operands().subspan(1)) {
          append(operand, slots);
          steps_.push_back({node->kind});
        }
    }
  }

  std::vector<Step> steps_;
};

class Interpreter {
 public:
  Interpreter(const Kernel& kernel, std::span<const BufferView> buffers, std::span<const int64_t> sizes,
              std::span<const int64_t> ranges)
      : kernel_(kernel),
        buffers_(buffers),
        ranges_(ranges),
        symbols_(sizes.begin(), sizes.end()),
        locals_(kernel.locals.size()),
        values_(kernel.expressions.size()),
        stamps_(kernel.expressions.size()) {
    for (uint32_t i = 0; i < kernel.sizes.size(); ++i) slots_.emplace(kernel.sizes[i].id(), i);
    add_variables(kernel.body);
    symbols_.resize(slots_.size());
    for (const Expr& e : kernel.expressions)
      integers_.push_back(e.op == Op::integer ? std::optional(IntegerProgram(e.integer, slots_)) : std::nullopt);
  }

  void run() { run_block(kernel_.body, 0); }

 private:
  void add_variables(const Block& block) {
    for (const Statement& s : block) {
      if (s.kind == Statement::Kind::loop) {
        slots_.emplace(s.variable.id(), static_cast<uint32_t>(slots_.size()));
        extents_.emplace(&s, IntegerProgram(s.extent, slots_));
      }
      add_variables(s.body);
    }
  }

  void run_block(const Block& block, size_t range_depth) {
    for (const Statement& s : block) {
      ++stamp_;  // what was evaluated for the statement before may have changed
      switch (s.kind) {
        case Statement::Kind::loop:
          run_loop(s, range_depth);
          break;
        case Statement::Kind::declare:
        case Statement::Kind::assign:
          locals_[s.slot] = evaluate(s.value);
          break;
        case Statement::Kind::accumulate: {
          Scalar operands[] = {locals_[s.slot], evaluate(s.value)};
          locals_[s.slot] = apply_scalar(s.combine, kernel_.locals[s.slot].dtype, operands);
          break;
        }
        case Statement::Kind::store: {
          Scalar value = evaluate(s.value);
          int64_t index = evaluate(s.index).whole;
          check_index(s.slot, index);
          store_scalar(kernel_.buffers[s.slot].dtype, buffers_[s.slot].data, index, value);
          break;
        }
        case Statement::Kind::branch:
          if (evaluate(s.value).whole) run_block(s.body, range_depth);
          break;
      }
    }
  }

  void run_loop(const Statement& s, size_t range_depth) {
    bool is_range = s.loop_kind == Statement::LoopKind::range;
    int64_t begin = is_range ? ranges_[2 * range_depth] : 0;
    int64_t end = is_range ? ranges_[2 * range_depth + 1] : extents_.at(&s).run(symbols_, stack_);
    int64_t& variable = symbols_[slots_.at(s.variable.id())];
    for (int64_t i = begin; i < end; ++i) {
      variable = i;
      run_block(s.body, range_depth + is_range);
    }
  }

  void check_index(uint32_t slot, int64_t index) const {
    if (index < 0 || index >= buffers_[slot].count)
      fail("kernel {} accesses element {} of {}, which has {}", kernel_.name, index, kernel_.buffers[slot].name,
           buffers_[slot].count);
  }

  // Equal ids within one statement are one evaluation: kernels are graphs, not trees.
  Scalar evaluate(ExprId id) {
    if (stamps_[id] == stamp_) return values_[id];
    Scalar value = evaluate_new(id);
    stamps_[id] = stamp_;
    values_[id] = value;
    return value;
  }

  Scalar evaluate_new(ExprId id) {
    const Expr& e = kernel_[id];
    switch (e.op) {
      case Op::integer:
        return {.whole = integers_[id]->run(symbols_, stack_)};
      case Op::constant:
        return constant_scalar(e.dtype, e.bits);
      case Op::local:
        return locals_[e.slot];
      case Op::load_if:
        if (!evaluate(e.operands[1]).whole) return evaluate(e.operands[2]);
        [[fallthrough]];
      case Op::load: {
        int64_t index = evaluate(e.operands[0]).whole;
        check_index(e.slot, index);
        return load_scalar(e.dtype, buffers_[e.slot].data, index);
      }
      case Op::cast:
        return cast_scalar(kernel_[e.operands[0]].dtype, e.dtype, evaluate(e.operands[0]));
      case Op::bits:
        return bits_scalar(kernel_[e.operands[0]].dtype, e.dtype, evaluate(e.operands[0]));
      default: {
        size_t count = info(e.op).operands;
        Scalar operands[3];
        for (size_t i = 0; i < count; ++i) operands[i] = evaluate(e.operands[i]);
        return apply_scalar(e.op, kernel_[e.operands[count - 1]].dtype, {operands, count});
      }
    }
  }

  const Kernel& kernel_;
  std::span<const BufferView> buffers_;
  std::span<const int64_t> ranges_;
  Slots slots_;
  std::vector<int64_t> symbols_;
  std::vector<Scalar> locals_;
  std::vector<std::optional<IntegerProgram>> integers_;  // by expression
  std::unordered_map<const Statement*, IntegerProgram> extents_;
  std::vector<Scalar> values_;
  std::vector<uint64_t> stamps_;
  uint64_t stamp_ = 0;
  std::vector<int64_t> stack_;
};

}  // namespace

void interpret(const Kernel& kernel, std::span<const BufferView> buffers, std::span<const int64_t> sizes,
               std::span<const int64_t> ranges) {
  if (buffers.size() != kernel.buffers.size())
    fail("kernel {} takes {} buffers, {} are given", kernel.name, kernel.buffers.size(), buffers.size());
  if (sizes.size() != kernel.sizes.size())
    fail("kernel {} takes {} sizes, {} are given", kernel.name, kernel.sizes.size(), sizes.size());
  size_t range_count = 2 * range_extents(kernel).size();
  if (ranges.size() != range_count)
    fail("kernel {} takes {} numbers for its ranges, {} are given", kernel.name, range_count, ranges.size());
  Interpreter(kernel, buffers, sizes, ranges).run();
}

}  // namespace selkie::kir
