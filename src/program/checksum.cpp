#include "program/checksum.h"

#include <array>
#include <bit>
#include <cstring>

namespace selkie::program {
namespace {

constexpr uint64_t factor = 0x9e3779b97f4a7c15;  // 2^64 divided by the golden ratio: odd, with well mixed bits

uint64_t mix(uint64_t state, uint64_t word) { return std::rotl((state ^ word) * factor, 29); }

// Every bit of the state reaches every bit of the result (the finaliser of SplitMix64).
uint64_t finish(uint64_t state) {
  state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9;
  state = (state ^ (state >> 27)) * 0x94d049bb133111eb;
  return state ^ (state >> 31);
}

}  // namespace

uint64_t checksum(std::span<const std::byte> bytes, uint64_t seed) {
  // Four independent chains, so that multiplications overlap.
  std::array<uint64_t, 4> states{seed, seed + factor, seed + 2 * factor, seed + 3 * factor};
  constexpr size_t block = sizeof(states);
  size_t at = 0;
  for (; at + block <= bytes.size(); at += block) {
    std::array<uint64_t, 4> words;
    std::memcpy(words.data(), bytes.data() + at, block);
    for (size_t i = 0; i < states.size(); ++i) states[i] = mix(states[i], words[i]);
  }
  std::array<uint64_t, 4> rest{};
  if (at < bytes.size()) std::memcpy(rest.data(), bytes.data() + at, bytes.size() - at);
  uint64_t result = finish(bytes.size() ^ seed);
  for (size_t i = 0; i < states.size(); ++i) result = finish(result ^ mix(states[i], rest[i]));
  return result;
}

}  // namespace selkie::program
