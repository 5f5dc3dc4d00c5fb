#include "kernels/processor.h"

#include <unistd.h>

#include <cstdint>

#include "kernels/table.h"
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace selkie::kernels {
namespace {

#if defined(__x86_64__)
struct Model {
  bool is_intel;
  uint32_t family, model;
};

Model this_model() {
  uint32_t a = 0;
  uint32_t b = 0;
  uint32_t c = 0;
  uint32_t d = 0;
  if (__get_cpuid(0, &a, &b, &c, &d) == 0) return {};
  bool is_intel = b == signature_INTEL_ebx;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return {};
  uint32_t family = a >> 8 & 15;
  uint32_t model = a >> 4 & 15;
  if (family == 6 || family == 15) model |= (a >> 16 & 15) << 4;
  if (family == 15) family += a >> 20 & 255;
  return {.is_intel = is_intel, .family = family, .model = model};
}

WideUnits find_wide_units() {
  Model m = this_model();
  if (!m.is_intel) return m.family == 0x1a ? WideUnits::zen5 : WideUnits::fewer;
  if (m.family != 6) return WideUnits::fewer;
  switch (m.model) {
    case 0x55:  // Skylake, Cascade Lake and Cooper Lake for servers; few of them have one
    case 0x6a:  // Ice Lake for servers
    case 0x6c:
    case 0x8f:  // Sapphire Rapids
    case 0xcf:  // Emerald Rapids
    case 0xad:  // Granite Rapids
    case 0xae:
      return WideUnits::intel;
    default:
      return WideUnits::fewer;
  }
}
#else
WideUnits find_wide_units() { return WideUnits::fewer; }
#endif

FirstCache find_first_cache() {
  constexpr int64_t usual_ways = 8;
  int64_t ways = 0;
#if defined(_SC_LEVEL1_DCACHE_ASSOC)
  ways = sysconf(_SC_LEVEL1_DCACHE_ASSOC);
#endif
  if (ways <= 0) ways = usual_ways;
  return {.ways = ways, .way_bytes = cache_sizes().l1 / ways};
}

}  // namespace

WideUnits wide_units() {
  static const WideUnits found = find_wide_units();
  return found;
}

const FirstCache& first_cache() {
  static const FirstCache found = find_first_cache();
  return found;
}

}  // namespace selkie::kernels
