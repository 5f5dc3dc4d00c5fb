// The tensor IR: module → functions → regions → nodes. Regions may use values of the regions around them.
//
// There are no use lists: a pass collects what it replaces and applies it in one sweep (`replace_uses`), which keeps
// every edit local and the order of effects obvious.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mapped_file.h"
#include "ir/op_def.h"
#include "sym/facts.h"

namespace selkie::ir {

class Module;
struct Constant;
struct Node;
struct Region;

struct Value {
  std::string name;  // from the source; need not be unique
  Type type;
  Node* node = nullptr;                // the node whose result this is,
  const Region* region = nullptr;      // or the region whose parameter it is,
  const Constant* constant = nullptr;  // or the constant that it names
};

struct Region {
  Node* parent = nullptr;  // null for a function's body
  std::vector<std::unique_ptr<Value>> parameters;
  std::vector<std::unique_ptr<Node>> nodes;
  std::vector<Value*> yields;

  Value* add_parameter(std::string name, Type type);
};

struct Node {
  const OpDef* op = nullptr;
  std::vector<Value*> operands;  // null where an optional operand is left out
  Attributes attrs;
  std::vector<std::unique_ptr<Value>> results;  // a result nobody names has an empty name
  std::vector<std::unique_ptr<Region>> regions;
  std::string source;  // ONNX node name, or file:line

  // The elements that stand in the place of operand i, where a pass found them before the run.
  const SymbolicInts* static_operand(size_t i) const;

  Value* add_result(std::string name, Type type = {});
  Region& add_region();
  // "node 'Conv_3' (conv)": what a message calls this node.
  std::string describe() const;
};

// A tensor known before the run. Weights stay where they are in their file until something reads them.
struct Constant {
  Value value;
  DType dtype = DType::f32;
  Dims dims;
  // Either elements in memory, or bytes as a file holds them (little endian, sub-byte types packed).
  std::optional<Tensor> in_memory;
  std::span<const std::byte> raw;
  std::shared_ptr<const MappedFile> file;

  // The elements: a view of the raw bytes where they are aligned and not packed, else a copy.
  Tensor tensor() const;
};

struct Function {
  explicit Function(sym::Context& context) : facts(context) {}
  std::string name;
  std::vector<Type> result_types;
  std::vector<std::string> result_names;  // as the source calls them
  sym::Facts facts;                       // the `where` clause
  Region body;
};

struct DataConstructor {
  std::string name;
  std::vector<Type> fields;
};

struct DataType {
  std::string name;
  std::vector<DataConstructor> constructors;
};

class Module {
 public:
  Module() : symbols_(std::make_unique<sym::Context>()) {}

  sym::Context& symbols() { return *symbols_; }
  Function& add_function(std::string name);
  const std::vector<std::unique_ptr<Function>>& functions() const { return functions_; }
  Function* find_function(std::string_view name) const;
  // The function that a run starts with; a user error if there is none.
  Function& main() const;

  // Names of constants are unique; a taken one gets a suffix.
  Constant& add_constant(std::string_view name);
  Value* add_constant(std::string_view name, Tensor tensor);
  const std::vector<std::unique_ptr<Constant>>& constants() const { return constants_; }
  void erase_constants_if(const std::function<bool(const Constant&)>& unused);

  std::vector<DataType> data_types;
  const DataType* find_data_type(std::string_view name) const;

 private:
  std::unique_ptr<sym::Context> symbols_;  // first member: everything below holds expressions of it
  std::vector<std::unique_ptr<Function>> functions_;
  std::vector<std::unique_ptr<Constant>> constants_;
  std::map<std::string, int, std::less<>> constant_names_;
};

// Calls `f` on every node of a region, outer nodes before the nodes inside them.
void for_each_node(Region& region, const std::function<void(Node&, Region&)>& f);
void for_each_node(const Region& region, const std::function<void(const Node&)>& f);

// Replaces every use of a key by its value, transitively, in the region and all inside it.
void replace_uses(Region& region, const std::unordered_map<const Value*, Value*>& replacement);

// How deep regions may nest in one function. Deeper input is refused, since every walk recurses.
inline constexpr int max_region_depth = 100;

}  // namespace selkie::ir
