// Attributes: the constants written on a node.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/tensor.h"
#include "ir/type.h"

namespace selkie::ir {

// The name of a function of the module, as `@name`.
struct FunctionRef {
  std::string name;
  friend bool operator==(const FunctionRef&, const FunctionRef&) = default;
};

// Integer elements that are expressions of the input's dims: what a pass writes in the place of an operand that held
// them. The text form is sym[N, 2*S], or sym(N) for a scalar.
struct SymbolicInts {
  std::vector<sym::Expr> elements;
  bool scalar = false;
  friend bool operator==(const SymbolicInts&, const SymbolicInts&) = default;
};

// The order of alternatives is the order of AttrKind.
using Attribute = std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>,
                               std::vector<std::string>, Tensor, Type, FunctionRef, SymbolicInts>;
enum class AttrKind : uint8_t { integer, real, text, integers, reals, texts, tensor, type, function, symbolic };

inline AttrKind kind_of(const Attribute& a) { return static_cast<AttrKind>(a.index()); }
std::string_view name(AttrKind kind);

// Named attributes in a fixed order (sorted by name), so that equal nodes print equally.
class Attributes {
 public:
  const Attribute* find(std::string_view name) const;
  void set(std::string_view name, Attribute value);
  void erase(std::string_view name);
  bool empty() const { return items_.empty(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

 private:
  std::vector<std::pair<std::string, Attribute>> items_;
};

}  // namespace selkie::ir
