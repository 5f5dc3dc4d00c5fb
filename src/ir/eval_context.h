// What an operator's `eval` sees: its operands and attributes, and the means to run regions and functions.
#pragma once

#include <functional>
#include <random>
#include <span>

#include "base/host_value.h"
#include "ir/module.h"

namespace selkie::ir {

// What a run may use at most; reaching one is a user error.
struct RunLimits {
  int64_t loop_trips = int64_t{1} << 40;
  int64_t call_depth = 1000;
  int64_t sequence_items = int64_t{1} << 30;
  double seconds = 0;  // 0: no limit
};

// A tensor that a region would have given, had it run: 0 for a dim, and no dims for a rank, that only running it tells.
struct EmptyResult {
  DType dtype = DType::f32;
  std::optional<Dims> dims;
  std::string failure;  // why the region cannot give it at these sizes, so that it has no shape
};

// What the evaluator offers to operators with regions, functions or random numbers.
class EvalServices {
 public:
  virtual ~EvalServices() = default;
  virtual std::vector<HostValue> run_region(const Region& region, std::vector<HostValue> arguments) = 0;
  virtual std::vector<HostValue> call(std::string_view function, std::vector<HostValue> arguments) = 0;
  // What a region's results would be for such arguments.
  virtual std::vector<EmptyResult> infer_region(const Region& region, const std::vector<HostValue>& arguments) = 0;
  virtual const Module& module() const = 0;
  virtual std::mt19937_64& random() = 0;
  virtual const RunLimits& limits() const = 0;
};

// For operators that need none of it; asking is an error.
EvalServices& no_services();

class EvalContext {
 public:
  EvalContext(const OpDef& op, const Attributes& attrs, std::span<const HostValue> operands, size_t result_count,
              EvalServices& services, const Node* node = nullptr)
      : op_(op), attrs_(attrs), operands_(operands), results_(result_count), services_(services), node_(node) {}

  const OpDef& op() const { return op_; }

  // Operands by position in the record. A missing optional operand is absent.
  size_t operand_count() const { return operands_.size(); }
  bool has(size_t i) const { return i < operands_.size() && !operands_[i].is_absent(); }
  const HostValue& operand(size_t i) const;
  const Tensor& tensor(size_t i) const { return operand(i).tensor(); }

  // Attributes, with the record's default where the node has none.
  bool has_attr(std::string_view name) const { return find(name) != nullptr; }
  int64_t attr_int(std::string_view name) const { return attr<int64_t>(name); }
  float attr_float(std::string_view name) const { return attr<float>(name); }
  const std::string& attr_string(std::string_view name) const { return attr<std::string>(name); }
  const std::vector<int64_t>& attr_ints(std::string_view name) const { return attr<std::vector<int64_t>>(name); }
  template <class T>
  const T& attr(std::string_view name) const {
    const Attribute* found = find(name);
    CHECK(found != nullptr && std::holds_alternative<T>(*found), "attribute '{}' of {}", name, op_.name);
    return std::get<T>(*found);
  }
  // The dtype in an integer attribute that holds ONNX's number for it.
  DType attr_dtype(std::string_view name) const;

  size_t result_count() const { return results_.size(); }
  void set(size_t i, HostValue value) {
    if (i < results_.size()) results_[i] = std::move(value);
  }
  std::vector<HostValue> take_results() { return std::move(results_); }

  size_t region_count() const { return node_ == nullptr ? 0 : node_->regions.size(); }
  const Region& region(size_t i) const { return *node_->regions[i]; }
  std::vector<HostValue> run_region(size_t i, std::vector<HostValue> arguments) {
    return services_.run_region(region(i), std::move(arguments));
  }
  EvalServices& services() { return services_; }

 private:
  const Attribute* find(std::string_view name) const;

  const OpDef& op_;
  const Attributes& attrs_;
  std::span<const HostValue> operands_;
  std::vector<HostValue> results_;
  EvalServices& services_;
  const Node* node_;
};

// Checks operands against the record, runs `eval`, and returns the results. Errors name the operator and operand.
std::vector<HostValue> evaluate(EvalContext& context);

}  // namespace selkie::ir
