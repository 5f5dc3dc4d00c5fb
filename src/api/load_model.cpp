#include "api/load_model.h"

#include "ir/parse.h"
#include "onnx/import.h"
#include "ops/registry.h"
#include "program/file.h"

namespace selkie::api {

std::unique_ptr<ir::Module> load_model(const std::string& path) {
  if (program::is_artifact(path)) fail("'{}' is compiled: the model that it was made from is needed here", path);
  return path.ends_with(".sk") ? ir::parse_file(path, ops::op_set()) : onnx::import_file(path, ops::op_set());
}

}  // namespace selkie::api
