// What an ONNX file says of itself, as onnxruntime's API tells it.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

namespace selkie::python {

// A dict of the model's properties, and lists of (name, type, shape) for its inputs, outputs and initializers that are
// also inputs. Types and shapes are spelled as onnxruntime does: "tensor(float)", [1, "N", None].
nanobind::dict header(const std::string& path, const nanobind::object& bytes);

}  // namespace selkie::python
