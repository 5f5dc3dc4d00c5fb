#include "kir/builder.h"

#include <algorithm>

#include "base/error.h"

namespace selkie::kir {

namespace {

// Applies f to the symbolic integers of a and b, if they are, and if the result can be said.
template <class F>
Value symbolic(Value a, Value b, F&& f) {
  if (!a.integer() || !b.integer()) return {};
  try {
    return a.builder().integer(f(a.integer(), b.integer()));
  } catch (const LimitError&) {
    return {};
  }
}

bool is_true(Value v) { return v.builder().kernel()[v.id()].op == Op::constant && v.builder().kernel()[v.id()].bits; }

Value like(Value a, double b) { return a.builder().number(a.dtype(), b); }

}  // namespace

DType Value::dtype() const { return builder_->kernel()[id_].dtype; }

sym::Expr Value::integer() const {
  const Expr& e = builder_->kernel()[id_];
  return e.op == Op::integer ? e.integer : sym::Expr();
}

Value unary(Op op, Value a) { return a.builder().make(op, a.dtype(), {{a}}); }

Value is_nan(Value a) {
  if (!is_float(a.dtype())) return a.builder().number(DType::boolean, 0);
  return a.builder().make(Op::is_nan, DType::boolean, {{a}});
}

Value binary(Op op, Value a, Value b) {
  DType dtype = info(op).result == ResultRule::truth ? DType::boolean : a.dtype();
  return a.builder().make(op, dtype, {{a, b}});
}

Value operator+(Value a, Value b) {
  if (Value v = symbolic(a, b, [](auto x, auto y) { return x + y; })) return v;
  return binary(Op::add, a, b);
}
Value operator-(Value a, Value b) {
  if (Value v = symbolic(a, b, [](auto x, auto y) { return x - y; })) return v;
  return binary(Op::sub, a, b);
}
Value operator*(Value a, Value b) {
  if (Value v = symbolic(a, b, [](auto x, auto y) { return x * y; })) return v;
  return binary(Op::mul, a, b);
}
Value operator/(Value a, Value b) { return binary(Op::div, a, b); }
Value operator-(Value a) { return unary(Op::neg, a); }
Value operator<(Value a, Value b) {
  if (a.integer() && b.integer() && a.integer() == b.integer()) return a.builder().number(DType::boolean, 0);
  return binary(Op::less, a, b);
}
Value operator<=(Value a, Value b) {
  if (a.integer() && b.integer() && a.integer() == b.integer()) return a.builder().number(DType::boolean, 1);
  return binary(Op::less_equal, a, b);
}
Value operator==(Value a, Value b) { return binary(Op::equal, a, b); }
Value operator&(Value a, Value b) {
  if (a.dtype() == DType::boolean && is_true(a)) return b;
  if (a.dtype() == DType::boolean && is_true(b)) return a;
  return binary(Op::bit_and, a, b);
}
Value operator|(Value a, Value b) { return binary(Op::bit_or, a, b); }
Value logical_not(Value a) { return a == like(a, 0); }

Value operator+(Value a, double b) { return a + like(a, b); }
Value operator-(Value a, double b) { return a - like(a, b); }
Value operator*(Value a, double b) { return a * like(a, b); }
Value operator/(Value a, double b) { return a / like(a, b); }
Value operator-(double a, Value b) { return like(b, a) - b; }
Value operator/(double a, Value b) { return like(b, a) / b; }
Value operator<(Value a, double b) { return a < like(a, b); }

Value min(Value a, Value b) {
  if (Value v = symbolic(a, b, [](auto x, auto y) { return sym::min(x, y); })) return v;
  return binary(Op::min, a, b);
}
Value max(Value a, Value b) {
  if (Value v = symbolic(a, b, [](auto x, auto y) { return sym::max(x, y); })) return v;
  return binary(Op::max, a, b);
}
Value select(Value condition, Value yes, Value no) {
  const Expr& known = condition.builder().kernel()[condition.id()];
  if (known.op == Op::constant) return known.bits != 0 ? yes : no;
  return condition.builder().make(Op::select, yes.dtype(), {{condition, yes, no}});
}
Value cast(Value a, DType dtype) {
  if (a.dtype() == dtype) return a;
  return a.builder().make(Op::cast, dtype, {{a}});
}
Value floordiv(Value a, Value b) {
  if (Value v = symbolic(a, b, [](auto x, auto y) { return sym::floordiv(x, y); })) return v;
  Value quotient = a / b;
  Value rest = a - quotient * b;
  Value differs = logical_not(rest == like(rest, 0)) & ((rest < 0.0) == (like(b, 0) <= b));
  return select(differs, quotient - 1, quotient);
}
Value mod(Value a, Value b) {
  if (Value v = symbolic(a, b, [](auto x, auto y) { return sym::mod(x, y); })) return v;
  return a - floordiv(a, b) * b;
}

Builder::Builder(sym::Context& symbols, std::string name) : symbols_(symbols) {
  kernel_.name = std::move(name);
  scopes_.push_back({.kind = Statement::LoopKind::serial});
}

uint32_t Builder::add_buffer(std::string name, DType dtype, Buffer::Role role, sym::Expr elements) {
  kernel_.buffers.push_back({.name = std::move(name), .dtype = dtype, .role = role, .elements = elements});
  return static_cast<uint32_t>(kernel_.buffers.size() - 1);
}

Value Builder::integer(sym::Expr e) { return {this, expressions_.integer(e)}; }

Value Builder::number(DType dtype, double value) {
  if (dtype == DType::i64) return integer(static_cast<int64_t>(value));
  return {this,
          is_float(dtype) ? expressions_.real(dtype, value) : expressions_.whole(dtype, static_cast<int64_t>(value))};
}

Value Builder::load(uint32_t buffer, Value index) { return {this, expressions_.load(buffer, index.id())}; }

Value Builder::load_if(Value condition, uint32_t buffer, Value index, Value otherwise) {
  if (is_true(condition)) return load(buffer, index);
  return {this, expressions_.load_if(buffer, index.id(), condition.id(), otherwise.id())};
}

Value Builder::make(Op op, DType dtype, std::span<const Value> operands) {
  Expr e{.op = op, .dtype = dtype};
  for (size_t i = 0; i < operands.size(); ++i) e.operands[i] = operands[i].id();
  return {this, expressions_.add(e)};
}

void Builder::loop(Statement::LoopKind kind, sym::Expr extent, std::string_view hint,
                   const std::function<void(Value variable)>& body) {
  sym::Expr variable = symbols_.fresh(hint);
  scopes_.push_back({.variable = variable, .extent = extent, .kind = kind});
  body(integer(variable));
  Statement statement{.kind = Statement::Kind::loop,
                      .loop_kind = kind,
                      .variable = variable,
                      .extent = extent,
                      .body = std::move(scopes_.back().block)};
  scopes_.pop_back();
  scopes_.back().block.push_back(std::move(statement));
}

void Builder::store(uint32_t buffer, Value index, Value value) {
  scopes_.back().block.push_back(
      {.kind = Statement::Kind::store, .slot = buffer, .index = index.id(), .value = value.id()});
}

size_t Builder::depth(ExprId id, Depths& known) const {
  auto at = known.find(id);
  if (at != known.end()) return at->second;
  const Expr& e = kernel_[id];
  size_t deepest = 0;
  if (e.op == Op::integer) {
    std::vector<sym::Expr> used;
    sym::collect_symbols(e.integer, used);
    for (size_t i = 1; i < scopes_.size(); ++i)
      if (std::ranges::find(used, scopes_[i].variable) != used.end()) deepest = i;
  }
  if (e.op == Op::local)
    for (size_t i = 0; i < scopes_.size(); ++i)
      if (std::ranges::find(scopes_[i].locals, e.slot) != scopes_[i].locals.end()) deepest = i;
  for (ExprId operand : e.operands)
    if (operand != no_expr) deepest = std::max(deepest, depth(operand, known));
  return known[id] = deepest;
}

size_t Builder::depth(const Statement& s, Depths& known) const {
  size_t deepest = 0;
  if (s.value != no_expr) deepest = std::max(deepest, depth(s.value, known));
  if (s.index != no_expr) deepest = std::max(deepest, depth(s.index, known));
  for (const Statement& inner : s.body) deepest = std::max(deepest, depth(inner, known));
  return deepest;
}

// Of loops. A local that is no reduction may depend on all those around it.
void Builder::collect_variables(ExprId id, std::set<ExprId>& seen, std::vector<sym::Expr>& used) const {
  if (id == no_expr || !seen.insert(id).second) return;
  const Expr& e = kernel_[id];
  if (e.op == Op::integer) sym::collect_symbols(e.integer, used);
  if (e.op == Op::local) {
    if (auto at = variables_of_.find(e.slot); at != variables_of_.end()) {
      used.insert(used.end(), at->second.begin(), at->second.end());
    } else {
      Depths known;
      for (size_t i = 1; i <= depth(id, known); ++i) used.push_back(scopes_[i].variable);
    }
  }
  for (ExprId operand : e.operands) collect_variables(operand, seen, used);
}

void Builder::collect_variables(const Statement& s, std::set<ExprId>& seen, std::vector<sym::Expr>& used) const {
  collect_variables(s.value, seen, used);
  collect_variables(s.index, seen, used);
  for (const Statement& inner : s.body) collect_variables(inner, seen, used);
}

namespace {

bool is_transcendental(Op op) {
  static constexpr Op all[] = {Op::exp, Op::log, Op::tanh, Op::erf, Op::sigmoid, Op::sin, Op::cos, Op::pow};
  return std::find(std::begin(all), std::end(all), op) != std::end(all);
}

void make_serial(Statement& loop) {
  if (loop.kind != Statement::Kind::loop) return;
  loop.loop_kind = Statement::LoopKind::serial;
  for (Statement& inner : loop.body) make_serial(inner);
}

}  // namespace

Value Builder::reduce(Op combine, Value start, std::span<const sym::Expr> extents,
                      const std::function<Value(const Index&)>& element) {
  // Built in scopes of its own; which scope it belongs to is known afterwards.
  Index index;
  for (size_t i = 0; i < extents.size(); ++i) {
    sym::Expr variable = symbols_.fresh("r");
    auto kind = i + 1 == extents.size() ? Statement::LoopKind::vector : Statement::LoopKind::serial;
    scopes_.push_back({.variable = variable, .extent = extents[i], .kind = kind});
    index.push_back(integer(variable));
  }
  ++reducing_;
  Value value = element(index);
  --reducing_;
  auto local = static_cast<uint32_t>(kernel_.locals.size());  // declared below, when its place is known
  kernel_.locals.push_back({.name = "t" + std::to_string(local), .dtype = value.dtype()});
  Statement statement{.kind = Statement::Kind::accumulate, .slot = local, .combine = combine, .value = value.id()};
  for (size_t i = extents.size(); i-- > 0;) {
    Scope scope = std::move(scopes_.back());
    scopes_.pop_back();
    scope.block.push_back(std::move(statement));
    statement = {.kind = Statement::Kind::loop,
                 .loop_kind = scope.kind,
                 .variable = scope.variable,
                 .extent = scope.extent,
                 .body = std::move(scope.block)};
  }
  // The loops of the reduction itself are closed by now, so that depth speaks of what is outside.
  Depths known;
  size_t place = std::max(depth(start.id(), known), depth(statement, known));
  if (std::any_of(scopes_.begin(), scopes_.begin() + static_cast<std::ptrdiff_t>(place) + 1,
                  [](const Scope& scope) { return scope.kind == Statement::LoopKind::vector; })) {
    reduces_in_vector_loop_ = true;
    make_serial(statement);
  }
  std::vector<sym::Expr>& used = variables_of_[local];
  std::set<ExprId> seen;
  collect_variables(start.id(), seen, used);
  collect_variables(statement, seen, used);
  for (size_t i = 1; i <= place; ++i) {
    constexpr int64_t few = 16;  // steps, which vectors make up for
    bool is_short = scopes_[i].extent.constant().value_or(few + 1) <= few;
    if (!is_short && std::ranges::find(used, scopes_[i].variable) == used.end()) ++idle_loops_;
  }
  std::vector<sym::Expr>& around = reductions_.emplace_back();
  for (size_t i = 1; i <= place; ++i) around.push_back(scopes_[i].extent);
  scopes_[place].locals.push_back(local);
  scopes_[place].block.push_back({.kind = Statement::Kind::declare, .slot = local, .value = start.id()});
  scopes_[place].block.push_back(std::move(statement));
  return {this, expressions_.local(local)};
}

std::vector<sym::Expr> Builder::extents_of(const Index& at) const {
  std::vector<sym::Expr> used;
  std::set<ExprId> seen;
  auto walk = [&](auto& self, ExprId id) -> void {
    if (id == no_expr || !seen.insert(id).second) return;
    if (kernel_[id].integer) sym::collect_symbols(kernel_[id].integer, used);
    for (ExprId operand : kernel_[id].operands) self(self, operand);
  };
  for (const Value& v : at) walk(walk, v.id());
  std::vector<sym::Expr> extents;
  for (size_t i = 1; i < scopes_.size(); ++i)
    if (std::ranges::find(used, scopes_[i].variable) != used.end()) extents.push_back(scopes_[i].extent);
  return extents;
}

size_t Builder::cost(Value value) const {
  std::set<ExprId> seen;
  auto walk = [&](auto& self, ExprId id) -> size_t {
    if (id == no_expr || !seen.insert(id).second) return 0;
    const Expr& e = kernel_[id];
    if (e.op == Op::integer || e.op == Op::constant || e.op == Op::local) return 0;
    if (e.op == Op::load || e.op == Op::load_if) return 1;
    size_t own = is_transcendental(e.op) ? 16 : 1;
    for (ExprId operand : e.operands) own += self(self, operand);
    return own;
  };
  return walk(walk, value.id());
}

bool Builder::loads(ExprId id, std::set<ExprId>& seen) const {
  if (id == no_expr || !seen.insert(id).second) return false;
  const Expr& e = kernel_[id];
  if (e.op == Op::load || e.op == Op::load_if) return true;
  return std::ranges::any_of(e.operands, [&](ExprId operand) { return loads(operand, seen); });
}

Value Builder::hoist(Value value) {
  Op op = kernel_[value.id()].op;
  if (scopes_.back().kind != Statement::LoopKind::vector) return value;
  if (op == Op::integer || op == Op::constant || op == Op::local) return value;
  Depths known;
  size_t place = depth(value.id(), known);
  // A loop may have no steps, and then an element that only its steps need may not exist.
  std::set<ExprId> seen;
  if (place + 1 == scopes_.size() || loads(value.id(), seen)) return value;
  auto local = static_cast<uint32_t>(kernel_.locals.size());
  kernel_.locals.push_back({.name = "t" + std::to_string(local), .dtype = value.dtype()});
  scopes_[place].locals.push_back(local);
  scopes_[place].block.push_back({.kind = Statement::Kind::declare, .slot = local, .value = value.id()});
  return {this, expressions_.local(local)};
}

std::optional<Value> Builder::recall(const Key& key) const {
  for (const Scope& scope : scopes_) {
    auto at = scope.remembered.find(key);
    if (at != scope.remembered.end()) return at->second;
  }
  return std::nullopt;
}

void Builder::remember(Key key, Value value) {
  Depths known;
  size_t place = depth(value.id(), known);
  for (ExprId id : key.second) place = std::max(place, depth(id, known));
  scopes_[place].remembered.emplace(std::move(key), value);
}

Kernel Builder::finish() {
  CHECK(scopes_.size() == 1, "a loop is still open");
  kernel_.body = std::move(scopes_[0].block);
  set_sizes(kernel_);
  return std::move(kernel_);
}

}  // namespace selkie::kir
