// Kernel IR to machine code for CPUs. LLVM stays behind this header.
#pragma once

#include <span>
#include <string_view>

#include "kir/kernel.h"
#include "program/image.h"

namespace selkie::codegen::cpu {

// What code generation must know of an instruction set.
struct Isa {
  std::string_view name;
  std::string_view triple;
  std::string_view cpu;
  std::string_view features;
  unsigned vector_bytes;
  bool masks_words;    // loads and stores of vectors under a mask, for elements of 4 and 8 bytes
  bool masks_bytes;    // the same for 1 and 2 bytes
  bool has_fma;        // a * b + c rounded once
  bool converts_half;  // between f16 and f32
  bool scales;         // multiplies vectors of its width by powers of two in one instruction
};

// All of them, the best of each architecture first: avx512, avx2, sse4.2; neon.
std::span<const Isa> all_isas();
bool host_runs(const Isa& isa);
// The best one that this machine runs; a user error if it runs none.
const Isa& host_isa();

// Kernels must be well formed and have distinct names. They are compiled in up to `threads` threads; the result does
// not depend on how many.
program::Image compile(std::span<const kir::Kernel* const> kernels, const Isa& isa, unsigned threads = 1);

// The LLVM IR of one kernel after optimisation, for people to read.
std::string llvm_text(const kir::Kernel& kernel, const Isa& isa);

}  // namespace selkie::codegen::cpu
