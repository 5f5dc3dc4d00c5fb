// The number that ONNX has for a dtype, as attributes of casts hold it.
#pragma once

#include "base/dtype.h"

namespace selkie::passes {

inline int64_t onnx_number(DType dtype) {
  int64_t number = 1;
  while (dtype_from_onnx(number) != dtype) ++number;
  return number;
}

}  // namespace selkie::passes
