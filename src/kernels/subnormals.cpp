#include "kernels/subnormals.h"

#include <bit>
#include <cstdint>

namespace selkie::kernels {
namespace {

constexpr uint32_t exponent = 0x7f800000;
constexpr uint32_t sign = 0x80000000;

}  // namespace

bool has_subnormals(std::span<const float> values) {
  uint32_t found = 0;  // no early end: most have none, and vectors have no branches
  for (float value : values) {
    auto bits = std::bit_cast<uint32_t>(value);
    found |= (bits & exponent) == 0 ? bits & ~sign : 0;
  }
  return found != 0;
}

void flush_subnormals(std::span<float> values) {
  for (float& value : values) {
    auto bits = std::bit_cast<uint32_t>(value);
    value = std::bit_cast<float>((bits & exponent) == 0 ? bits & sign : bits);
  }
}

}  // namespace selkie::kernels
