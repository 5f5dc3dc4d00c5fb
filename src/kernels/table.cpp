// Which instruction sets the processor runs, and the sizes of its caches.
#include "kernels/table.h"

#include <unistd.h>

#include <array>

#include "base/error.h"

namespace selkie::kernels {

extern const KernelTable generic_table;
#if defined(__x86_64__)
extern const KernelTable avx2_table;
extern const KernelTable avx512_table;
#endif

namespace {

struct Usable {
  std::array<Isa, 3> isas = {Isa::generic};
  size_t count = 1;
};

Usable find_usable() {
  Usable usable;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) usable.isas[usable.count++] = Isa::avx2;
  if (usable.count == 2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw"))
    usable.isas[usable.count++] = Isa::avx512;
#endif
  return usable;
}

int64_t cache_bytes(int name, int64_t otherwise) {
  int64_t bytes = sysconf(name);
  return bytes > 0 ? bytes : otherwise;
}

}  // namespace

std::span<const Isa> usable_isas() {
  static const Usable usable = find_usable();
  return {usable.isas.data(), usable.count};
}

Isa best_isa() { return usable_isas().back(); }

const KernelTable& table(Isa isa) {
  switch (isa) {
#if defined(__x86_64__)
    case Isa::avx2:
      return avx2_table;
    case Isa::avx512:
      return avx512_table;
#endif
    case Isa::generic:
      return generic_table;
    default:
      CHECK(false, "no kernels for instruction set {}", static_cast<int>(isa));
  }
}

const CacheSizes& cache_sizes() {
  static const CacheSizes sizes{.l1 = cache_bytes(_SC_LEVEL1_DCACHE_SIZE, 32 << 10),
                                .l2 = cache_bytes(_SC_LEVEL2_CACHE_SIZE, 512 << 10)};
  return sizes;
}

}  // namespace selkie::kernels
