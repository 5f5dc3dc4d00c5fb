// Models from files.
#pragma once

#include <memory>
#include <string>

#include "ir/module.h"

namespace selkie::api {

// ONNX, or text IR if the name ends in .sk. A compiled model is a user error.
std::unique_ptr<ir::Module> load_model(const std::string& path);

}  // namespace selkie::api
