// Where an embedder's model comes from, and how it is to be compiled: what reports need to look at it once more.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "driver/build.h"

namespace selkie::api {

struct Source {
  std::string path;             // a file: ONNX, text IR (.sk), or a compiled model,
  std::string_view bytes = {};  // or the bytes of an ONNX model, which the embedder holds; null if they were let go
  std::string folder = ".";     // of weights that lie beside a model of bytes
  std::vector<std::string> facts = {};
  driver::Options options = {};
};

std::shared_ptr<ir::Module> import_model(const Source& source);

// Imports and compiles, or loads.
driver::Built build(const Source& source);

}  // namespace selkie::api
