// The table of instruction sets, and which of them this machine runs.
#include "base/error.h"
#include "codegen/cpu/compile.h"

namespace selkie::codegen::cpu {
namespace {

constexpr std::string_view x86 = "x86_64-unknown-linux-gnu";

constexpr Isa table[] = {
    {.name = "avx512",
     .triple = x86,
     .cpu = "x86-64-v4",
     .features = "",
     .vector_bytes = 64,
     .masks_words = true,
     .masks_bytes = true,
     .has_fma = true,
     .converts_half = true,
     .scales = true},
    {.name = "avx2",
     .triple = x86,
     .cpu = "x86-64-v3",
     .features = "",
     .vector_bytes = 32,
     .masks_words = true,
     .masks_bytes = false,
     .has_fma = true,
     .converts_half = true,
     .scales = false},
    {.name = "sse4.2",
     .triple = x86,
     .cpu = "x86-64-v2",
     .features = "",
     .vector_bytes = 16,
     .masks_words = false,
     .masks_bytes = false,
     .has_fma = false,
     .converts_half = false,
     .scales = false},
    {.name = "neon",
     .triple = "aarch64-unknown-linux-gnu",
     .cpu = "generic",
     .features = "+neon",
     .vector_bytes = 16,
     .masks_words = false,
     .masks_bytes = false,
     .has_fma = true,
     .converts_half = true,
     .scales = false},
};

}  // namespace

std::span<const Isa> all_isas() { return table; }

bool host_runs(const Isa& isa) {
#if defined(__x86_64__)
  if (isa.name == "avx512") return __builtin_cpu_supports("x86-64-v4");
  if (isa.name == "avx2") return __builtin_cpu_supports("x86-64-v3");
  if (isa.name == "sse4.2") return __builtin_cpu_supports("x86-64-v2");
#elif defined(__aarch64__)
  if (isa.name == "neon") return true;
#endif
  return false;
}

const Isa& host_isa() {
  for (const Isa& isa : table)
    if (host_runs(isa)) return isa;
  fail("this machine runs none of the instruction sets that code is generated for");
}

}  // namespace selkie::codegen::cpu
