// Types of the tensor IR: tensors with symbolic dims, sequences, optionals, maps, tuples, functions and data types.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "sym/expr.h"

namespace selkie::ir {

using SymDims = std::vector<sym::Expr>;

struct Type {
  enum class Kind : uint8_t { unknown, tensor, seq, opt, map, tuple, function, data };

  Kind kind = Kind::unknown;
  DType dtype = DType::f32;     // tensor: its elements; map: its keys
  std::optional<SymDims> dims;  // tensor: nothing if not even the rank is known
  std::vector<Type> parts;      // seq, opt, map: one; tuple: all; function: parameters, then results
  size_t parameter_count = 0;   // function
  std::string name;             // data

  static Type tensor(DType dtype, std::optional<SymDims> dims = std::nullopt) {
    return {.kind = Kind::tensor, .dtype = dtype, .dims = std::move(dims)};
  }
  static Type seq(Type element) { return {.kind = Kind::seq, .parts = {std::move(element)}}; }
  static Type opt(Type element) { return {.kind = Kind::opt, .parts = {std::move(element)}}; }
  static Type map(DType key, Type value) { return {.kind = Kind::map, .dtype = key, .parts = {std::move(value)}}; }
  static Type tuple(std::vector<Type> parts) { return {.kind = Kind::tuple, .parts = std::move(parts)}; }
  static Type function(std::vector<Type> parameters, std::vector<Type> results);
  static Type data(std::string name) { return {.kind = Kind::data, .name = std::move(name)}; }

  bool is_unknown() const { return kind == Kind::unknown; }
  bool is_tensor() const { return kind == Kind::tensor; }
  friend bool operator==(const Type&, const Type&) = default;
};

// The text form: "f32[N, 3]", "f32[*]", "seq<f32[*]>", "(f32[], i64[])", "fn(f32[2]) -> f32[2]", "Tree", "?".
std::string to_string(const Type& type);

// Whether a value of type `from` may stand where `to` is declared, as far as both are known.
bool compatible(const Type& from, const Type& to);

}  // namespace selkie::ir
