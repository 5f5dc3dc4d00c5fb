// What an operator's `forward` sees: operand types with symbolic dims, known contents, attributes and facts.
#pragma once

#include <optional>
#include <span>

#include "ir/module.h"

namespace selkie::ir {

// The elements of a small integer tensor (rank 0 or 1), each a symbolic expression.
using SymElements = std::vector<sym::Expr>;

class ForwardContext {
 public:
  ForwardContext(const OpDef& op, const Attributes& attrs, std::span<const Type> operands,
                 std::span<const std::optional<SymElements>> contents, size_t result_count, sym::Context& symbols,
                 sym::Facts& facts)
      : op_(op),
        attrs_(attrs),
        operands_(operands),
        contents_(contents),
        result_count_(result_count),
        symbols_(symbols),
        facts_(facts) {}

  size_t operand_count() const { return operands_.size(); }
  size_t result_count() const { return result_count_; }
  bool has(size_t i) const { return i < operands_.size() && !operands_[i].is_unknown(); }
  // An absent or unknown operand has type `?`.
  const Type& type(size_t i) const;
  DType dtype(size_t i) const { return type(i).dtype; }
  const std::optional<SymDims>& dims(size_t i) const { return type(i).dims; }
  // Contents of an integer operand, where they are known.
  std::optional<SymElements> contents(size_t i) const;
  // The same where all of them are numbers.
  std::optional<std::vector<int64_t>> numbers(size_t i) const;

  const Attribute* find_attr(std::string_view name) const;
  int64_t attr_int(std::string_view name) const { return std::get<int64_t>(*find_attr(name)); }
  const std::vector<int64_t>& attr_ints(std::string_view name) const {
    return std::get<std::vector<int64_t>>(*find_attr(name));
  }

  sym::Context& symbols() const { return symbols_; }
  sym::Facts& facts() const { return facts_; }
  sym::Expr constant(int64_t value) const { return symbols_.constant(value); }

 private:
  const OpDef& op_;
  const Attributes& attrs_;
  std::span<const Type> operands_;
  std::span<const std::optional<SymElements>> contents_;
  size_t result_count_;
  sym::Context& symbols_;
  sym::Facts& facts_;
};

}  // namespace selkie::ir
