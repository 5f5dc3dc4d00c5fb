// Operator samples (ir::Sample) as runnable modules.
#pragma once

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/host_value.h"
#include "ir/module.h"

namespace selkie::tests {

// One operand of a sample: its text form, whether its contents are written out, and how to make it.
struct SampleOperand {
  bool absent = false;
  bool has_contents = false;   // written in the sample, not random
  std::optional<DType> dtype;  // of a plain tensor
  Dims dims;
  std::string type_text;             // of the parameter
  std::string elements_text;         // "{1, 2}", or empty
  std::vector<SampleOperand> items;  // of a structure; keys and values of a map
  std::string label;                 // of a record: its constructor; of a closure: its function
  enum class Kind { tensor, sequence, optional, map, record, closure } kind = Kind::tensor;

  HostValue make(std::mt19937_64& random) const;
};

struct ParsedSample {
  const ir::OpDef* op = nullptr;
  std::string prelude;  // functions and data types before the call
  std::vector<SampleOperand> operands;
  std::string rest;                     // attributes and regions
  std::vector<SampleOperand> expected;  // results, where the sample is a good one
  std::string error;                    // a part of the message, where it is a bad one
  bool good() const { return error.empty(); }

  // @main with one parameter per operand that is there, and the operator as its one node.
  std::unique_ptr<ir::Module> module() const;
  std::vector<HostValue> inputs(uint64_t seed) const;
};

ParsedSample parse_sample(const ir::OpDef& op, const ir::Sample& sample);

// Types the parameters of @main like the inputs, with a symbol for every dim, but for those of integers and ones, which
// often decide shapes: then there are kernels.
void type_parameters(ir::Module& module, const std::vector<HostValue>& inputs);

}  // namespace selkie::tests
