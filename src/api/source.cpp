#include "api/source.h"

#include "api/load_model.h"
#include "driver/artifact.h"
#include "driver/dims.h"
#include "onnx/import.h"
#include "ops/registry.h"
#include "program/file.h"

namespace selkie::api {

std::shared_ptr<ir::Module> import_model(const Source& source) {
  std::shared_ptr<ir::Module> module =
      source.path.empty() ? onnx::import_bytes(source.bytes, ops::op_set(), source.folder) : load_model(source.path);
  driver::require_dims(module->main(), source.facts, "dims");
  return module;
}

driver::Built build(const Source& source) {
  if (source.path.empty() || !program::is_artifact(source.path))
    return driver::build(import_model(source), source.options);
  if (!source.facts.empty()) fail("'{}' is compiled: dims come too late", source.path);
  return driver::load(source.path, source.options.host);
}

}  // namespace selkie::api
