// What passes that replace nodes by others have in common.
#pragma once

#include <iterator>

#include "ir/module.h"

namespace selkie::passes {

// Puts nodes before the one at `at`, and gives its new place.
inline size_t insert_before(ir::Region& region, size_t at, std::vector<std::unique_ptr<ir::Node>> nodes) {
  region.nodes.insert(region.nodes.begin() + static_cast<std::ptrdiff_t>(at), std::make_move_iterator(nodes.begin()),
                      std::make_move_iterator(nodes.end()));
  return at + nodes.size();
}

// The number that ONNX has for a dtype, as casts hold it.
inline int64_t onnx_number(DType dtype) {
  int64_t number = 1;
  while (dtype_from_onnx(number) != dtype) ++number;
  return number;
}

}  // namespace selkie::passes
