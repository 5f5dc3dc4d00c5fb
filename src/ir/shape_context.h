// What an operator's `forward`, `backward` and `value` see: what is known of operands and results before the run.
#pragma once

#include <optional>
#include <span>

#include "ir/module.h"

namespace selkie::ir {

using SymElements = std::vector<sym::Expr>;

// Tensors with more elements have no known contents.
inline constexpr int64_t max_known_elements = 64;

// The elements of a small tensor of constant dims, row-major; null where one is not known. Booleans are 0 and 1.
struct Contents {
  SymElements elements;
  int64_t denominator = 1;  // of every element; 1 for integers
  bool rounded = false;     // floats: each element is the representable number nearest to its quotient

  bool complete() const;
  friend bool operator==(const Contents&, const Contents&) = default;
};

struct Known {
  Type type;
  std::optional<Contents> contents;
  friend bool operator==(const Known&, const Known&) = default;
};

// A dim or element that only the run tells lies between these; null: no bound but 0.
struct Bounds {
  sym::Expr least;
  sym::Expr most;
};

// What the analysis offers to hooks. Symbols are stable: asked again for the same thing, it answers with the same one.
class ShapeServices {
 public:
  virtual ~ShapeServices() = default;
  // The symbol of a dim that only running the node tells.
  virtual sym::Expr unknown_dim(size_t result, size_t axis, const Bounds& bounds) = 0;
  // How often the node's region runs.
  virtual sym::Expr trips(const Bounds& bounds) = 0;
  virtual void define_trips(sym::Expr trips) = 0;
  // Inside the node's region: which of the trips it is, and a dim of a parameter that differs from trip to trip.
  virtual sym::Expr trip_index() = 0;
  virtual sym::Expr varying_dim(size_t parameter, size_t axis) = 0;
  // The elements of an operand; those that are not known get symbols. Nothing if their number is not known, or large.
  virtual std::optional<SymElements> name_elements(size_t operand) = 0;
  // Analyses a region with these parameters, under further facts. Nothing if it cannot be entered or completed.
  // Tentative: without what its nodes require, so that the answer also serves if the region is never entered.
  virtual std::optional<std::vector<Known>> run_region(size_t region, std::vector<Known> parameters, bool tentative,
                                                       const std::function<void(sym::Facts&)>& assume) = 0;
  // The facts at the end of the last analysis of a region.
  virtual const sym::Facts& region_facts(size_t region) const = 0;
  // What was assumed in the last analysis of a region, to keep its dims simple, is assumed where the node stands: to be
  // asked of a region that surely runs before facts are drawn from what it gives. Whether that can be said there.
  virtual bool adopt_assumptions(size_t region) = 0;
  virtual std::vector<Known> call(std::string_view function, std::vector<Known> arguments) = 0;
  // Whether e holds an element that was named, not derived from dims: it may be any integer.
  virtual bool is_given(sym::Expr e) const = 0;
  // Whether all symbols of e mean something where the node stands, not only inside one of its regions.
  virtual bool visible(sym::Expr e) const = 0;
  // An expression of visible symbols that is never below (above) e; null if none is known.
  virtual Bounds visible_bounds(sym::Expr e, size_t region) const = 0;
  // What must hold for the node to run, or for the analysis to be exact. Contradiction is a user error.
  virtual void require_equal(sym::Expr a, sym::Expr b) = 0;
  // Whether it holds from now on: where nothing may be required, only what is known already does.
  virtual bool require_less_equal(sym::Expr a, sym::Expr b, std::string_view why) = 0;
  // An operand whose rank is not known has this one; its dims are symbols of its own.
  virtual const SymDims& require_rank(size_t operand, size_t rank) = 0;
};

// Operands, results and attributes of one node, as far as they are known.
class ShapeContext {
 public:
  ShapeContext(const OpDef& op, const Attributes& attrs, std::span<const Known> operands,
               std::span<const Known> results, sym::Facts& facts, sym::Context& symbols, ShapeServices& services,
               const Node* node = nullptr)
      : op_(op),
        attrs_(attrs),
        operands_(operands),
        results_(results),
        facts_(facts),
        symbols_(symbols),
        services_(services),
        node_(node) {}

  const OpDef& op() const { return op_; }
  size_t operand_count() const { return operands_.size(); }
  size_t result_count() const { return results_.size(); }
  bool has(size_t i) const { return i < operands_.size() && !operands_[i].type.is_unknown(); }
  // An absent or unknown operand has type `?`.
  const Known& known(size_t i) const;
  const Type& type(size_t i) const { return known(i).type; }
  DType dtype(size_t i) const { return type(i).dtype; }
  const std::optional<SymDims>& dims(size_t i) const { return type(i).dims; }
  size_t rank(size_t i) const { return dims(i)->size(); }  // of known dims

  // The elements of an integer or boolean operand, where all are known.
  std::optional<SymElements> contents(size_t i) const;
  // The same where all of them are numbers.
  std::optional<std::vector<int64_t>> numbers(size_t i) const;
  // The elements of a float operand where all are known: numerators over one denominator.
  const Contents* rationals(size_t i) const;

  const Attribute* find_attr(std::string_view name) const;
  int64_t attr_int(std::string_view name) const { return std::get<int64_t>(*find_attr(name)); }
  const std::string& attr_string(std::string_view name) const { return std::get<std::string>(*find_attr(name)); }
  const std::vector<int64_t>& attr_ints(std::string_view name) const {
    return std::get<std::vector<int64_t>>(*find_attr(name));
  }

  sym::Context& symbols() const { return symbols_; }
  const sym::Facts& facts() const { return facts_; }
  sym::Expr constant(int64_t value) const { return symbols_.constant(value); }
  bool proves_equal(sym::Expr a, sym::Expr b) const { return a == b || facts_.prove_equal(a, b) == sym::Truth::yes; }
  bool proves_less_equal(sym::Expr a, sym::Expr b) const { return facts_.prove_less_equal(a, b) == sym::Truth::yes; }
  // Whether e cannot be `value`, as far as its range tells.
  bool excludes(sym::Expr e, int64_t value) const;
  ShapeServices& services() const { return services_; }
  const Node* node() const { return node_; }

 protected:
  const OpDef& op_;
  const Attributes& attrs_;
  std::span<const Known> operands_;
  std::span<const Known> results_;
  sym::Facts& facts_;
  sym::Context& symbols_;
  ShapeServices& services_;
  const Node* node_;
};

// `forward` gives the types of the results from what is known of the operands.
class ForwardContext : public ShapeContext {
 public:
  using ShapeContext::ShapeContext;

  // A dim that only the run tells.
  sym::Expr unknown(size_t result, size_t axis, const Bounds& bounds = {}) const {
    return services_.unknown_dim(result, axis, bounds);
  }
  SymDims unknown_dims(size_t result, size_t rank) const;
  // Elements of an operand that decides the shape. Those that are not known get symbols, so that the shape still has a
  // form; nothing if not even their number is known.
  std::optional<SymElements> elements(size_t i) const { return services_.name_elements(i); }
  // What the analysis of a region or function wants told about results beyond their types.
  void set_contents(size_t result, std::optional<Contents> contents) const;
  // Called by the analysis: the contents that `forward` set.
  std::vector<std::optional<Contents>> take_contents() const { return std::move(contents_); }

 private:
  mutable std::vector<std::optional<Contents>> contents_;
};

// `backward` says what operands must be, since the node runs and its results are what they are.
class BackwardContext : public ShapeContext {
 public:
  using ShapeContext::ShapeContext;

  const Type& result(size_t i) const;
  const std::optional<SymDims>& result_dims(size_t i) const { return result(i).dims; }
  void equal(sym::Expr a, sym::Expr b) { services_.require_equal(a, b); }
  void less_equal(sym::Expr a, sym::Expr b) { services_.require_less_equal(a, b, {}); }
  void set_rank(size_t operand, size_t rank) { services_.require_rank(operand, rank); }
  // Rank and dims; null where nothing is known of a dim.
  void set_dims(size_t operand, std::span<const sym::Expr> dims);
};

// `value` gives the elements of small results from those of the operands.
class ValueContext : public ShapeContext {
 public:
  using ShapeContext::ShapeContext;

  // Also with elements that are not known.
  const Contents* partial(size_t i) const;
  const Type& result(size_t i) const { return results_[i].type; }
  // The constant dims of a result of few elements.
  std::optional<Dims> small_dims(size_t result) const;
  void set(size_t result, Contents contents);
  void set(size_t result, SymElements elements) { set(result, Contents{.elements = std::move(elements)}); }
  // Whether e stays exact as an element of this dtype. If facts do not tell, it is required: an entry check.
  bool exact(sym::Expr e, DType dtype);
  std::vector<std::optional<Contents>> take_contents() { return std::move(contents_); }

 private:
  std::vector<std::optional<Contents>> contents_;
};

// The dims if all are numbers and their product is at most max_known_elements.
std::optional<Dims> small_dims(const Type& type);
// The contents of a small tensor; nothing where an element is no exact quotient of small numbers.
std::optional<Contents> contents_of(const Tensor& tensor, sym::Context& symbols);
// What a static operand is.
Known known_of(const SymbolicInts& given, sym::Context& symbols);
// The tensor, where all elements are numbers and none was rounded.
std::optional<Tensor> tensor_of(const Known& known);

}  // namespace selkie::ir
