// RDP, rank and dimension propagation: what is known of every value of a module before it runs.
//
// For each value: type with symbolic dims, and the elements of small tensors. For each region: facts about the symbols.
// For each node: how its output shape is determined. The analysis goes forward and backward over each region until
// nothing changes, enters regions and functions through their operators' `forward`, and changes nothing in the module
// but its table of symbols.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/module.h"
#include "ir/shape_context.h"

namespace selkie::analysis {

// What a symbol stands for.
struct SymbolInfo {
  enum class Kind : uint8_t {
    input_dim,      // dim `axis` of parameter `value` of @main
    input_element,  // an element of that parameter, or its positive or negative part
    dim,            // dim `axis` of `value`, which only running its node tells
    element,        // an element of `value`, likewise
    trips,          // how often the region of `node` runs
    index,          // which of the trips it is, inside the region
  };
  Kind kind;
  const ir::Value* value = nullptr;
  const ir::Node* node = nullptr;
  size_t axis = 0;
  bool negative_part = false;          // elements: the symbol is max(−element, 0), else max(element, 0)
  const ir::Region* region = nullptr;  // where it has a meaning
  ir::Bounds bounds = {};
  bool is_element() const { return kind == Kind::element || kind == Kind::input_element; }
  bool is_input() const { return kind == Kind::input_dim || kind == Kind::input_element; }
};

// What must hold for the facts to hold. Made as soon as all its symbols are known: at entry if they are all inputs'.
struct Check {
  enum class Kind : uint8_t { equal, less_equal, rank };
  Kind kind;
  sym::Expr a, b;                    // a == b or a <= b
  const ir::Value* value = nullptr;  // rank: of this parameter
  size_t rank = 0;
  std::string source;  // the node that requires it
  std::string why;     // where the node itself would not mind
};

// How a region was found.
enum class Entry : uint8_t { possible, never, failing };

// How dims are known, in the order of knowing less.
enum class DimKind : uint8_t { constant, symbolic, bounded, unknown };

// What established the dims of a value last.
struct Origin {
  enum class Rule : uint8_t { declared, forward, backward, parameter };
  Rule rule = Rule::declared;
  const ir::Node* node = nullptr;
};

struct NodeClass {
  ir::DynamismClass cls = ir::DynamismClass::edo;
  std::vector<std::string_view> causes;  // names of operands whose values the shape still depends on
};

struct RegionFacts {
  explicit RegionFacts(sym::Context& context) : facts(context) {}
  sym::Facts facts;
  Entry entry = Entry::possible;
  std::string failure;        // failing: the message
  std::vector<Check> checks;  // in the order in which they were found; entry checks for the body of @main
};

class Rdp {
 public:
  // A user error if the module cannot run with any input: it names both sources of a conflict. Of results of the
  // functions in `checked`, what they declare is known and no more: calls check it.
  explicit Rdp(ir::Module& module, const std::vector<std::string>& checked = {});
  ~Rdp();
  Rdp(Rdp&&) noexcept;

  const ir::Module& module() const;
  // What is known of a value, in the terms of its region's facts.
  const ir::Known& known(const ir::Value& value) const;
  const RegionFacts& region(const ir::Region& region) const;
  const NodeClass& node_class(const ir::Node& node) const;
  Origin origin(const ir::Value& value) const;
  // Null for a symbol that is not of this analysis.
  const SymbolInfo* symbol(sym::Expr symbol) const;
  // Those that were made for dims and elements of a value, also where the value is now said by others.
  std::span<const sym::Expr> symbols_of(const ir::Value& value) const;
  DimKind dim_kind(sym::Expr dim) const;
  // An expression that is never below the number of elements of a tensor, also where arms give it different ranks.
  std::optional<sym::Expr> most_elements(const ir::Value& value) const;
  // The checks of @main that inputs alone decide, without those that follow from the others.
  const std::vector<Check>& entry_checks() const;
  // The others of @main, made when the run has given a value to their symbols.
  const std::vector<Check>& later_checks() const;
  // Whether the elements of a value are the same in every run with inputs of the same shapes.
  bool shape_determined(const ir::Value& value) const;

  class Engine;

 private:
  std::unique_ptr<Engine> engine_;
};

}  // namespace selkie::analysis
