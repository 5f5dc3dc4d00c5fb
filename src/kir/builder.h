// Builds kernels. Expressions are interned; index arithmetic stays symbolic as long as it can. A reduction is placed in
// the outermost loop that knows all it depends on, so that what a row shares is computed once per row.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>

#include "kir/expressions.h"

namespace selkie::kir {

class Builder;

// An expression under construction.
class Value {
 public:
  Value() = default;
  Value(Builder* builder, ExprId id) : builder_(builder), id_(id) {}
  ExprId id() const { return id_; }
  Builder& builder() const { return *builder_; }
  DType dtype() const;
  // The symbolic integer that it is; null where it depends on the contents of buffers.
  sym::Expr integer() const;
  explicit operator bool() const { return builder_ != nullptr; }

 private:
  Builder* builder_ = nullptr;
  ExprId id_ = no_expr;
};

using Index = std::vector<Value>;

Value operator+(Value a, Value b);
Value operator-(Value a, Value b);
Value operator*(Value a, Value b);
Value operator/(Value a, Value b);  // of integers: truncating
Value operator-(Value a);
Value operator<(Value a, Value b);
Value operator<=(Value a, Value b);
Value operator==(Value a, Value b);
Value operator&(Value a, Value b);
Value operator|(Value a, Value b);
Value logical_not(Value a);
// With a number of the other operand's dtype.
Value operator+(Value a, double b);
Value operator-(Value a, double b);
Value operator*(Value a, double b);
Value operator/(Value a, double b);
Value operator-(double a, Value b);
Value operator/(double a, Value b);
Value operator<(Value a, double b);

Value min(Value a, Value b);
Value max(Value a, Value b);
Value select(Value condition, Value yes, Value no);
Value cast(Value a, DType dtype);
Value unary(Op op, Value a);
Value is_nan(Value a);
Value binary(Op op, Value a, Value b);
// Of integers, rounding to minus infinity.
Value floordiv(Value a, Value b);
Value mod(Value a, Value b);

class Builder {
 public:
  Builder(sym::Context& symbols, std::string name);
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  sym::Context& symbols() { return symbols_; }
  const Kernel& kernel() const { return kernel_; }

  uint32_t add_buffer(std::string name, DType dtype, Buffer::Role role, sym::Expr elements);
  Value integer(sym::Expr e);
  Value integer(int64_t value) { return integer(symbols_.constant(value)); }
  Value number(DType dtype, double value);
  Value load(uint32_t buffer, Value index);
  Value load_if(Value condition, uint32_t buffer, Value index, Value otherwise);
  Value make(Op op, DType dtype, std::span<const Value> operands);

  // Runs `body` with the variable of a new loop.
  void loop(Statement::LoopKind kind, sym::Expr extent, std::string_view hint,
            const std::function<void(Value variable)>& body);
  void store(uint32_t buffer, Value index, Value value);

  // combine over all indices below the extents of element(index), starting with `start`.
  Value reduce(Op combine, Value start, std::span<const sym::Expr> extents,
               const std::function<Value(const Index&)>& element);

  // The same value, kept in a local of the outermost loop that knows it if that is outside the present vector loop and
  // it reads no buffer.
  Value hoist(Value value);

  // The extents of the open loops on whose variables an index depends, from the outside in.
  std::vector<sym::Expr> extents_of(const Index& at) const;
  // Whether one of them belongs to a reduction.
  bool is_reducing() const { return reducing_ > 0; }
  // Arithmetic operations and loads that an expression takes, up to what is in locals.
  size_t cost(Value value) const;

  // For each reduction, the extents of the loops around it.
  const std::vector<std::vector<sym::Expr>>& reductions() const { return reductions_; }

  // Loops of more than a few steps that a reduction stands in although it is the same in all of them, summed over
  // reductions: another order of the loops has less work.
  size_t idle_loops() const { return idle_loops_; }

  // What was computed for a key in a loop that is still open, and the place to remember it.
  using Key = std::pair<const void*, std::vector<ExprId>>;
  std::optional<Value> recall(const Key& key) const;
  void remember(Key key, Value value);

  // Whether a reduction had to be placed inside a vector loop: each lane then reduces for itself.
  bool reduces_in_vector_loop() const { return reduces_in_vector_loop_; }
  // The kernel, with its sizes in the order of first use.
  Kernel finish();

 private:
  struct Scope {
    sym::Expr variable;  // null for the body of the kernel
    sym::Expr extent;
    Statement::LoopKind kind;
    Block block;
    std::vector<uint32_t> locals;
    std::map<Key, Value> remembered;
  };

  // The innermost open scope that an expression depends on.
  using Depths = std::unordered_map<ExprId, size_t>;
  size_t depth(ExprId id, Depths& known) const;
  size_t depth(const Statement& statement, Depths& known) const;
  bool loads(ExprId id, std::set<ExprId>& seen) const;
  void collect_variables(ExprId id, std::set<ExprId>& seen, std::vector<sym::Expr>& used) const;
  void collect_variables(const Statement& statement, std::set<ExprId>& seen, std::vector<sym::Expr>& used) const;

  sym::Context& symbols_;
  Kernel kernel_;
  Expressions expressions_{kernel_};
  std::vector<Scope> scopes_;
  std::vector<std::vector<sym::Expr>> reductions_;
  std::unordered_map<uint32_t, std::vector<sym::Expr>> variables_of_;  // on which the locals of reductions depend
  size_t idle_loops_ = 0;
  bool reduces_in_vector_loop_ = false;
  size_t reducing_ = 0;
};

}  // namespace selkie::kir
