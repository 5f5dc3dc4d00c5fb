// Symbolic integers as 64-bit arithmetic.
#pragma once

#include <optional>
#include <unordered_map>

#include "codegen/cpu/number.h"
#include "sym/node.h"

namespace selkie::codegen::cpu {

bool depends_on(const sym::Node* node, const sym::Node* symbol);

// How much an integer grows when the variable of the vector loop grows by one, if that is the same everywhere.
struct Stride {
  int64_t constant = 0;
  llvm::Value* rest = nullptr;  // what is added to the constant, if anything
};

class Integers {
 public:
  explicit Integers(Builder& builder) : builder_(builder) {}

  // What a symbol or a division is from here on.
  void bind(const sym::Node* node, Number value) { known_[node] = value; }
  void unbind(const sym::Node* node) { known_.erase(node); }
  // Whether all symbols in it have values.
  bool is_bound(const sym::Node* node) const;

  // The value where the symbol `variable`, if one is given, has the value `at`, which may be a vector.
  Number lower(const sym::Node* node, const sym::Node* variable = nullptr, Number at = {});
  std::optional<Stride> stride(const sym::Node* node, const sym::Node* variable);

 private:
  Number lower_sum(const sym::Node* node, const sym::Node* variable, Number at);
  Number lower_product(const sym::Node* node, const sym::Node* variable, Number at);
  Number lower_call(const sym::Node* node, const sym::Node* variable, Number at);
  Number lower_division(const sym::Node* node, Number a, Number b);
  Number literal(int64_t value) { return {builder_, builder_.getInt64(static_cast<uint64_t>(value))}; }

  Builder& builder_;
  std::unordered_map<const sym::Node*, Number> known_;
};

}  // namespace selkie::codegen::cpu
