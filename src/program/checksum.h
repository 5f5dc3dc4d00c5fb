// A fast 64-bit checksum of bytes, which finds damage; it is no defence against somebody who wants to deceive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace selkie::program {

uint64_t checksum(std::span<const std::byte> bytes, uint64_t seed = 0);

}  // namespace selkie::program
