#include "ir/module.h"

#include <algorithm>
#include <cstring>

#include "base/convert.h"

namespace selkie::ir {

Value* Region::add_parameter(std::string name, Type type) {
  parameters.push_back(std::make_unique<Value>(Value{std::move(name), std::move(type), nullptr, this, nullptr}));
  return parameters.back().get();
}

Value* Node::add_result(std::string name, Type type) {
  results.push_back(std::make_unique<Value>(Value{std::move(name), std::move(type), this, nullptr, nullptr}));
  return results.back().get();
}

Region& Node::add_region() {
  regions.push_back(std::make_unique<Region>());
  regions.back()->parent = this;
  return *regions.back();
}

const SymbolicInts* Node::static_operand(size_t i) const {
  if (i >= op->operands.size() || i >= operands.size() || operands[i] != nullptr) return nullptr;
  const Attribute* found = attrs.find(op->operands[i].name);
  return found != nullptr ? std::get_if<SymbolicInts>(found) : nullptr;
}

std::string Node::describe() const {
  if (source.empty() && !results.empty()) return fmt::format("node '%{}' ({})", results[0]->name, op->name);
  return fmt::format("node '{}' ({})", source, op->name);
}

// Piece by piece, and what was copied is given back, so that large weights are not in memory twice.
static void copy_from_file(std::span<const std::byte> from, const MappedFile* file, std::byte* to) {
  constexpr size_t piece = size_t{4} << 20;
  for (size_t at = 0; at < from.size(); at += piece) {
    std::span<const std::byte> part = from.subspan(at, std::min(piece, from.size() - at));
    std::memcpy(to + at, part.data(), part.size());
    if (file != nullptr && part.size() == piece) file->release(part);
  }
}

Tensor Constant::tensor() const {
  if (in_memory) return *in_memory;
  if (is_sub_byte(dtype)) return unpack_sub_byte(dtype, dims, raw.data(), raw.size());
  size_t size = element_size(dtype);
  int64_t count = element_count(dims);
  CHECK(static_cast<size_t>(count) * size <= raw.size(), "constant @{}", value.name);
  size_t alignment = dtype == DType::c128 ? 8 : size;
  if (reinterpret_cast<uintptr_t>(raw.data()) % alignment == 0) return Tensor::view(dtype, dims, raw.data(), file);
  Tensor copy(dtype, dims);
  copy_from_file(raw.first(copy.byte_size()), file.get(), copy.mutable_bytes());
  return copy;
}

Function& Module::add_function(std::string name) {
  functions_.push_back(std::make_unique<Function>(*symbols_));
  functions_.back()->name = std::move(name);
  return *functions_.back();
}

Function* Module::find_function(std::string_view name) const {
  for (const auto& function : functions_)
    if (function->name == name) return function.get();
  return nullptr;
}

Function& Module::main() const {
  Function* function = find_function("main");
  if (function == nullptr) fail("the module has no function @main");
  return *function;
}

Constant& Module::add_constant(std::string_view name) {
  if (name.empty()) name = "c";
  std::string unique(name);
  while (constant_names_.contains(unique)) unique = fmt::format("{}_{}", name, constant_names_.find(name)->second++);
  constant_names_.emplace(unique, 1);
  constants_.push_back(std::make_unique<Constant>());
  Constant& constant = *constants_.back();
  constant.value.name = std::move(unique);
  constant.value.constant = &constant;
  return constant;
}

Value* Module::add_constant(std::string_view name, Tensor tensor) {
  Constant& constant = add_constant(name);
  constant.dtype = tensor.dtype();
  constant.dims = tensor.dims();
  SymDims dims;
  for (int64_t d : tensor.dims()) dims.push_back(symbols_->constant(d));
  constant.value.type = Type::tensor(tensor.dtype(), std::move(dims));
  constant.in_memory = std::move(tensor);
  return &constant.value;
}

void Module::erase_constants_if(const std::function<bool(const Constant&)>& unused) {
  std::erase_if(constants_, [&](const auto& constant) { return unused(*constant); });
}

const DataType* Module::find_data_type(std::string_view name) const {
  for (const DataType& type : data_types)
    if (type.name == name) return &type;
  return nullptr;
}

void for_each_node(Region& region, const std::function<void(Node&, Region&)>& f) {
  for (auto& node : region.nodes) {
    f(*node, region);
    for (auto& inner : node->regions) for_each_node(*inner, f);
  }
}

void for_each_node(const Region& region, const std::function<void(const Node&)>& f) {
  for (const auto& node : region.nodes) {
    f(*node);
    for (const auto& inner : node->regions) for_each_node(static_cast<const Region&>(*inner), f);
  }
}

void replace_uses(Region& region, const std::unordered_map<const Value*, Value*>& replacement) {
  if (replacement.empty()) return;
  auto replace = [&](Value*& use) {
    for (auto at = replacement.find(use); at != replacement.end(); at = replacement.find(use)) use = at->second;
  };
  for (auto& node : region.nodes) {
    for (Value*& operand : node->operands) replace(operand);
    for (auto& inner : node->regions) replace_uses(*inner, replacement);
  }
  for (Value*& yield : region.yields) replace(yield);
}

}  // namespace selkie::ir
