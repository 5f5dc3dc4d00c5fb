// Epilogues so simple that a library kernel does them as it stores an element: y = clamp(y + x).
#pragma once

#include <optional>

#include "kir/kernel.h"

namespace selkie::codegen {

struct Finish {
  std::optional<uint32_t> addend;  // the buffer whose element in the same place is added
  float low;
  float high;
};

// What an epilogue's kernel does, if it is no more than that.
std::optional<Finish> find_finish(const kir::Kernel& kernel);

}  // namespace selkie::codegen
