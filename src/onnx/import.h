// ONNX models to tensor IR.
#pragma once

#include <memory>
#include <string>

#include "ir/module.h"

namespace selkie::onnx {

// The newest opset of each domain that Selkie knows.
inline constexpr int newest_opset = 27;

// Maps the file and imports it. Weights stay in the mapping. Throws Error that names node, value or tensor.
std::unique_ptr<ir::Module> import_file(const std::string& path, const ir::OpSet& ops);

// The same from bytes in memory, which need not outlive the call. External data is looked for in `folder`.
std::unique_ptr<ir::Module> import_bytes(std::string_view bytes, const ir::OpSet& ops, const std::string& folder = ".");

}  // namespace selkie::onnx
