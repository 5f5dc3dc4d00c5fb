// What a well-formed kernel is: names, dtypes, scopes and the places where each statement may stand.
#include <algorithm>
#include <set>
#include <unordered_map>

#include "base/error.h"
#include "kir/expressions.h"
#include "kir/text.h"

namespace selkie::kir {
namespace {

constexpr size_t max_nesting = 64;

bool is_supported(DType dtype) { return (dtypes::numeric | dtypes::boolean).contains(dtype); }

// The dtypes that an operation takes, told by its operand that decides (select: operand 1).
bool takes(Op op, DType dtype) {
  switch (op) {
    case Op::sqrt:
    case Op::floor:
    case Op::ceil:
    case Op::trunc:
    case Op::round:
    case Op::exp:
    case Op::log:
    case Op::tanh:
    case Op::erf:
    case Op::sigmoid:
    case Op::sin:
    case Op::cos:
    case Op::is_nan:
    case Op::pow:
    case Op::fma:
      return is_float(dtype);
    case Op::bit_not:
    case Op::bit_and:
    case Op::bit_or:
    case Op::bit_xor:
      return is_integer(dtype) || dtype == DType::boolean;
    case Op::shift_left:
    case Op::shift_right:
      return is_integer(dtype);
    case Op::equal:
    case Op::less:
    case Op::less_equal:
    case Op::select:
      return true;
    default:
      return dtype != DType::boolean;
  }
}

class Verifier {
 public:
  explicit Verifier(const Kernel& kernel) : kernel_(kernel), declared_(kernel.locals.size()) {}

  void run() {
    check_names();
    check_expressions();
    check_block(kernel_.body, Place{.ranges_allowed = true});
  }

 private:
  struct Place {
    bool ranges_allowed = false;
    size_t depth = 0;
    size_t range_depth = 0;
    const Statement* vector_loop = nullptr;
  };
  enum class Scope : uint8_t { undeclared, live, in_vector_loop, accumulated, ended };

  void name_once(const std::string& name, std::string_view what) {
    if (!is_name(name)) fail("{} '{}' is no name of the text form", what, name);
    if (!names_.insert(name).second) fail("the name '{}' is taken twice", name);
  }

  void check_names() {
    if (kernel_.name.empty()) fail("the kernel has no name");
    for (sym::Expr size : kernel_.sizes) {
      if (!size || !size.is_symbol()) fail("a size is not a symbol");
      if (!names_.insert(std::string(size.symbol_name())).second) fail("size {} is given twice", size.symbol_name());
      symbols_.push_back(size);
    }
    for (const Buffer& buffer : kernel_.buffers) {
      name_once(buffer.name, "buffer");
      check_dtype(buffer.dtype, buffer.name);
      check_symbols(buffer.elements, fmt::format("the number of elements of {}", buffer.name));
    }
    for (const Local& local : kernel_.locals) {
      name_once(local.name, "local");
      check_dtype(local.dtype, local.name);
    }
  }

  static void check_dtype(DType dtype, std::string_view what) {
    if (!is_supported(dtype)) fail("{}: kernels have no dtype {}", what, name(dtype));
  }

  void check_symbols(sym::Expr e, std::string_view what) const {
    if (!e) fail("{} is not given", what);
    std::vector<sym::Expr> used;
    sym::collect_symbols(e, used);
    for (sym::Expr symbol : used)
      if (std::find(symbols_.begin(), symbols_.end(), symbol) == symbols_.end())
        fail("{} is {}, but {} is neither a size nor a variable of a loop around it", what, sym::to_string(e),
             symbol.symbol_name());
  }

  void check_expressions() const {
    std::unordered_multimap<uint64_t, ExprId> seen;
    for (ExprId id = 0; id < kernel_.expressions.size(); ++id) {
      try {
        check_expression(id);
      } catch (Error& error) {
        throw error.note(fmt::format("expression {} ({})", id, info(kernel_[id].op).name));
      }
      uint64_t hash = hash_expression(kernel_[id]);
      auto [begin, end] = seen.equal_range(hash);
      for (auto it = begin; it != end; ++it)
        if (same_expression(kernel_[it->second], kernel_[id])) fail("expressions {} and {} are equal", it->second, id);
      seen.emplace(hash, id);
    }
  }

  DType operand_dtype(const Expr& e, size_t i) const { return kernel_[e.operands[i]].dtype; }

  void check_expression(ExprId id) const {
    const Expr& e = kernel_[id];
    check_dtype(e.dtype, "result");
    for (size_t i = 0; i < e.operands.size(); ++i) {
      bool wanted = i < info(e.op).operands;
      if (wanted != (e.operands[i] != no_expr)) fail("it takes {} operands", info(e.op).operands);
      if (wanted && e.operands[i] >= id) fail("operand {} does not come before it", i);
    }
    if ((e.op == Op::integer) != static_cast<bool>(e.integer)) fail("a symbolic integer is given where none belongs");
    if (e.op != Op::constant && e.bits != 0) fail("bits are given where none belong");
    if (info(e.op).result == ResultRule::given)
      check_given(e);
    else
      check_operation(e);
  }

  void check_given(const Expr& e) const {
    bool is_load = e.op == Op::load || e.op == Op::load_if;
    if (!is_load && e.op != Op::local && e.slot != 0) fail("a slot is given where none belongs");
    if (is_load) {
      if (e.slot >= kernel_.buffers.size()) fail("there is no buffer {}", e.slot);
      if (e.dtype != kernel_.buffers[e.slot].dtype) fail("its dtype is not that of {}", kernel_.buffers[e.slot].name);
      if (operand_dtype(e, 0) != DType::i64) fail("the index of a load is {}, not i64", name(operand_dtype(e, 0)));
    }
    if (e.op == Op::load_if) {
      if (operand_dtype(e, 1) != DType::boolean) fail("the condition of a load is {}", name(operand_dtype(e, 1)));
      if (operand_dtype(e, 2) != e.dtype) fail("what stands for a load is {}", name(operand_dtype(e, 2)));
    }
    if (e.op == Op::local) {
      if (e.slot >= kernel_.locals.size()) fail("there is no local {}", e.slot);
      if (e.dtype != kernel_.locals[e.slot].dtype) fail("its dtype is not that of {}", kernel_.locals[e.slot].name);
    }
    if (e.op == Op::integer && e.dtype != DType::i64) fail("a symbolic integer is i64");
    if (e.op == Op::bits && (element_size(e.dtype) != element_size(operand_dtype(e, 0)) || e.dtype == DType::boolean ||
                             operand_dtype(e, 0) == DType::boolean))
      fail("the bits of {} cannot be read as {}", name(operand_dtype(e, 0)), name(e.dtype));
  }

  void check_operation(const Expr& e) const {
    size_t first = e.op == Op::select ? 1 : 0;
    DType dtype = operand_dtype(e, first);
    if (first == 1 && operand_dtype(e, 0) != DType::boolean) fail("the condition is {}", name(operand_dtype(e, 0)));
    for (size_t i = first; i < info(e.op).operands; ++i)
      if (operand_dtype(e, i) != dtype) fail("operands are {} and {}", name(dtype), name(operand_dtype(e, i)));
    if (!takes(e.op, dtype)) fail("it does not take {}", name(dtype));
    DType result = info(e.op).result == ResultRule::truth ? DType::boolean : dtype;
    if (e.dtype != result) fail("its dtype is {}, not {}", name(e.dtype), name(result));
    if (e.slot != 0) fail("a slot is given where none belongs");
  }

  // Every symbol and local that the expression reads where it is used must be in scope there.
  void check_use(ExprId id, std::string_view what) {
    if (id >= kernel_.expressions.size()) fail("{} is not given", what);
    std::vector<ExprId> stack{id};
    std::set<ExprId> visited;
    while (!stack.empty()) {
      ExprId at = stack.back();
      stack.pop_back();
      if (!visited.insert(at).second) continue;
      const Expr& e = kernel_[at];
      if (e.op == Op::integer) check_symbols(e.integer, what);
      if (e.op == Op::local) {
        const std::string& local = kernel_.locals[e.slot].name;
        if (declared_[e.slot] == Scope::accumulated)
          fail("{} reads {}, which the vector loop around it accumulates", what, local);
        if (declared_[e.slot] != Scope::live && declared_[e.slot] != Scope::in_vector_loop)
          fail("{} reads {} outside of its scope", what, local);
      }
      for (ExprId operand : e.operands)
        if (operand != no_expr) stack.push_back(operand);
    }
  }

  void check_block(const Block& block, const Place& place) {
    if (place.depth > max_nesting) fail("more than {} blocks are nested", max_nesting);
    std::vector<uint32_t> declared;
    bool has_range = std::any_of(block.begin(), block.end(), [](const Statement& s) {
      return s.kind == Statement::Kind::loop && s.loop_kind == Statement::LoopKind::range;
    });
    size_t loops = 0;
    for (const Statement& s : block) {
      if (has_range && s.kind != Statement::Kind::declare && (s.kind != Statement::Kind::loop || ++loops > 1))
        fail("only declarations may stand beside a range loop");
      check_statement(s, place);
      if (s.kind == Statement::Kind::declare) declared.push_back(s.slot);
    }
    for (uint32_t slot : declared) declared_[slot] = Scope::ended;
  }

  void check_statement(const Statement& s, const Place& place) {
    switch (s.kind) {
      case Statement::Kind::loop:
        return check_loop(s, place);
      case Statement::Kind::branch: {
        if (place.vector_loop) fail("a branch stands in a vector loop");
        check_use(s.value, "a condition");
        if (kernel_[s.value].dtype != DType::boolean) fail("a condition is {}", name(kernel_[s.value].dtype));
        Place inner{.depth = place.depth + 1, .range_depth = place.range_depth};
        return check_block(s.body, inner);
      }
      case Statement::Kind::store:
        return check_store(s);
      default:
        return check_local(s, place);
    }
  }

  void check_loop(const Statement& s, const Place& place) {
    if (!s.variable || !s.variable.is_symbol()) fail("the variable of a loop is not a symbol");
    if (std::find(symbols_.begin(), symbols_.end(), s.variable) != symbols_.end())
      fail("the variable {} is taken", s.variable.symbol_name());
    check_symbols(s.extent, fmt::format("the extent of {}", s.variable.symbol_name()));
    Place inner{.depth = place.depth + 1, .range_depth = place.range_depth, .vector_loop = place.vector_loop};
    if (place.vector_loop) check_inner_loop(s, *place.vector_loop);
    if (s.loop_kind == Statement::LoopKind::range) {
      if (!place.ranges_allowed || place.range_depth == 2)
        fail("the range loop over {} is not among the outermost two", s.variable.symbol_name());
      inner.ranges_allowed = true;
      ++inner.range_depth;
    }
    std::vector<Scope> outside = declared_;
    if (s.loop_kind == Statement::LoopKind::vector) {
      inner.vector_loop = &s;
      combines_.clear();
      for (const Statement& part : s.body)
        if (part.kind == Statement::Kind::accumulate && part.slot < declared_.size() &&
            declared_[part.slot] == Scope::live)
          declared_[part.slot] = Scope::accumulated;
    }
    symbols_.push_back(s.variable);
    check_block(s.body, inner);
    symbols_.pop_back();
    for (size_t i = 0; i < outside.size(); ++i)
      if (outside[i] != Scope::undeclared) declared_[i] = outside[i];
  }

  // All lanes of a vector run an inner loop together.
  static void check_inner_loop(const Statement& s, const Statement& vector_loop) {
    if (s.loop_kind != Statement::LoopKind::serial)
      fail("the loop over {} stands in a vector loop and is not serial", s.variable.symbol_name());
    std::vector<sym::Expr> used;
    sym::collect_symbols(s.extent, used);
    if (std::find(used.begin(), used.end(), vector_loop.variable) != used.end())
      fail("the extent of {} differs between the iterations of a vector loop", s.variable.symbol_name());
  }

  void check_store(const Statement& s) {
    if (s.slot >= kernel_.buffers.size()) fail("there is no buffer {} to store to", s.slot);
    const Buffer& buffer = kernel_.buffers[s.slot];
    if (buffer.role == Buffer::Role::input) fail("a store goes to the input {}", buffer.name);
    check_use(s.index, fmt::format("the index of a store to {}", buffer.name));
    check_use(s.value, fmt::format("what is stored to {}", buffer.name));
    if (kernel_[s.index].dtype != DType::i64) fail("the index of a store to {} is not i64", buffer.name);
    if (kernel_[s.value].dtype != buffer.dtype)
      fail("{} is stored to {}, which is {}", name(kernel_[s.value].dtype), buffer.name, name(buffer.dtype));
  }

  void check_local(const Statement& s, const Place& place) {
    if (s.slot >= kernel_.locals.size()) fail("there is no local {}", s.slot);
    const Local& local = kernel_.locals[s.slot];
    Scope& scope = declared_[s.slot];
    check_use(s.value, fmt::format("the value of {}", local.name));
    if (kernel_[s.value].dtype != local.dtype)
      fail("{} is assigned to {}, which is {}", name(kernel_[s.value].dtype), local.name, name(local.dtype));
    if (s.kind == Statement::Kind::declare) {
      if (scope != Scope::undeclared) fail("{} is declared twice", local.name);
      scope = place.vector_loop ? Scope::in_vector_loop : Scope::live;
      return;
    }
    if (scope == Scope::undeclared || scope == Scope::ended) fail("{} is set outside of its scope", local.name);
    if (s.kind == Statement::Kind::assign && place.vector_loop && scope != Scope::in_vector_loop)
      fail("{} is assigned in a vector loop that does not declare it", local.name);
    bool inner = place.vector_loop && std::none_of(place.vector_loop->body.begin(), place.vector_loop->body.end(),
                                                   [&](const Statement& part) { return &part == &s; });
    if (inner && scope != Scope::in_vector_loop)
      fail("{} is accumulated in a loop inside a vector loop that does not declare it", local.name);
    if (s.kind == Statement::Kind::accumulate) check_accumulate(s, local);
  }

  void check_accumulate(const Statement& s, const Local& local) {
    static constexpr Op allowed[] = {Op::add, Op::mul, Op::min, Op::max, Op::bit_and, Op::bit_or};
    if (std::find(std::begin(allowed), std::end(allowed), s.combine) == std::end(allowed))
      fail("{} cannot be accumulated by {}", local.name, info(s.combine).name);
    if (!takes(s.combine, local.dtype)) fail("{} does not take {}", info(s.combine).name, name(local.dtype));
    auto [it, first] = combines_.emplace(s.slot, s.combine);
    if (!first && declared_[s.slot] == Scope::accumulated && it->second != s.combine)
      fail("{} is accumulated by {} and by {}", local.name, info(it->second).name, info(s.combine).name);
    it->second = s.combine;
  }

  const Kernel& kernel_;
  std::set<std::string> names_;
  std::vector<sym::Expr> symbols_;  // in scope
  std::vector<Scope> declared_;
  std::unordered_map<uint32_t, Op> combines_;  // of the present vector loop
};

}  // namespace

void verify(const Kernel& kernel) {
  try {
    Verifier(kernel).run();
  } catch (Error& error) {
    throw error.note(fmt::format("kernel {}", kernel.name));
  }
}

}  // namespace selkie::kir
