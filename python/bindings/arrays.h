// Values of Python's as host values, and back. Elements of arrays are not copied where their layout allows it.
#pragma once

#include <nanobind/nanobind.h>

#include <span>
#include <string>
#include <vector>

#include "base/host_value.h"
#include "ir/type.h"

namespace selkie::python {

// Before any other function of this file.
void init_arrays();

// What inputs point into. Their tensors own nothing, so that a run can let go of them without the interpreter's lock.
using Kept = std::vector<nanobind::object>;

// `type` is what the model declares; arrays keep their own dtype, which the run then holds against it, but numbers and
// lists of numbers become what is declared. `name` is the input's, for messages.
HostValue to_value(PyObject* given, const ir::Type& type, const std::string& name, Kept& kept);

// Memory that is not the caller's to change: what lies in it is copied for the outputs.
class Foreign {
 public:
  // Of weights, which may also be outputs.
  explicit Foreign(std::span<const Tensor> constants);
  bool holds(const std::byte* at) const;

 private:
  std::vector<std::pair<const std::byte*, const std::byte*>> ranges_;  // sorted, from … to
};

// The results of a run as Python's values, each with memory of its own. `inputs` are those of the run.
nanobind::object to_python(const HostValue& value, std::span<const HostValue> inputs, const Foreign& foreign,
                           std::vector<const std::byte*>& handed_out);

// Writes a result into an array that the caller gives; another dtype, shape or layout is a failure of the input.
void copy_into(const HostValue& value, PyObject* array, const std::string& name);

// numpy.dtype of elements, or an equally large unsigned integer's where NumPy has none and ml_dtypes is not installed.
nanobind::object numpy_dtype(DType dtype);

}  // namespace selkie::python
