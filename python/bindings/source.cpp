#include "source.h"

#include <fstream>
#include <sstream>

#include "driver/dims.h"
#include "ir/parse.h"
#include "ir/verify.h"
#include "onnx/import.h"
#include "ops/registry.h"
#include "program/file.h"

namespace selkie::python {
namespace {

std::unique_ptr<ir::Module> import_text(const std::string& path) {
  std::ifstream in(path);
  if (!in) fail("cannot open '{}'", path);
  std::stringstream text;
  text << in.rdbuf();
  auto module = ir::parse(text.str(), ops::op_set(), path);
  ir::verify(*module);
  return module;
}

}  // namespace

std::string_view Source::view() const {
  if (!bytes.is_valid() || bytes.is_none()) return {};
  return {PyBytes_AS_STRING(bytes.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(bytes.ptr()))};
}

std::shared_ptr<ir::Module> import_model(const Source& source, std::string_view bytes) {
  std::shared_ptr<ir::Module> module;
  if (source.path.empty())
    module = onnx::import_bytes(bytes, ops::op_set());
  else if (program::is_artifact(source.path))
    fail("'{}' is compiled: the model that it was made from is needed here", source.path);
  else
    module = source.path.ends_with(".sk") ? import_text(source.path) : onnx::import_file(source.path, ops::op_set());
  driver::require_dims(module->main(), source.facts, "dims");
  return module;
}

}  // namespace selkie::python
