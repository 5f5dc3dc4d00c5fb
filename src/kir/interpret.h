// Runs a kernel without compiling it: the oracle for code generation, and the sanitizer build's way to run kernels.
#pragma once

#include <span>

#include "kir/kernel.h"

namespace selkie::kir {

struct BufferView {
  void* data;
  int64_t count;  // of elements
};

// The arguments are those of a compiled kernel. An access outside of a buffer, a division of symbolic integers by zero
// and a number of arguments that does not fit are user errors.
void interpret(const Kernel& kernel, std::span<const BufferView> buffers, std::span<const int64_t> sizes,
               std::span<const int64_t> ranges);

}  // namespace selkie::kir
