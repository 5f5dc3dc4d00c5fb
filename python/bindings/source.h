// Where a model comes from, and how it is to be compiled: what reports need to look at it once more.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "driver/build.h"

namespace selkie::python {

struct Source {
  std::string path;        // a file: ONNX, text IR (.sk), or a compiled model,
  nanobind::object bytes;  // or the bytes of an ONNX model
  std::vector<std::string> facts = {};
  driver::Options options = {};

  // The bytes, which stay where they are while the object is held; empty for a file. Needs the interpreter's lock.
  std::string_view view() const;
};

// Needs no lock: `bytes` is the source's view.
std::shared_ptr<ir::Module> import_model(const Source& source, std::string_view bytes);

}  // namespace selkie::python
