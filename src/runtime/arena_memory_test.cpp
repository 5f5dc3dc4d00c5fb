#include "runtime/arena_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <vector>

namespace selkie::runtime {
namespace {

constexpr int64_t large = int64_t{64} << 20;
constexpr int64_t small = int64_t{1} << 20;

size_t pages_in_memory(const std::byte* memory, int64_t bytes) {
  constexpr size_t page = 4096;
  auto begin = reinterpret_cast<uintptr_t>(memory) / page * page;
  std::vector<unsigned char> found(static_cast<size_t>(bytes) / page);
  if (mincore(reinterpret_cast<void*>(begin), found.size() * page, found.data()) != 0) return 0;
  size_t count = 0;
  for (unsigned char is_there : found) count += is_there & 1;
  return count;
}

TEST(ArenaMemory, WhatRunsDoNotNeedIsGivenBack) {
  ArenaMemory arena;
  std::byte* memory = arena.provide(large);
  std::memset(memory, 1, static_cast<size_t>(large));
  size_t before = pages_in_memory(memory, large);
  EXPECT_GE(before, static_cast<size_t>(large) / 4096 / 2);
  for (int i = 0; i < 2 * ArenaMemory::patience; ++i) memory = arena.provide(small);
  EXPECT_TRUE(arena.holds(memory));
  EXPECT_LT(pages_in_memory(memory, large), before / 4);
  // And is there again for those that do.
  memory = arena.provide(large);
  std::memset(memory, 2, static_cast<size_t>(large));
}

TEST(ArenaMemory, WhatOneInManyNeedsIsKept) {
  ArenaMemory arena;
  std::byte* memory = arena.provide(large);
  std::memset(memory, 1, static_cast<size_t>(large));
  size_t before = pages_in_memory(memory, large);
  for (int i = 0; i < 10 * ArenaMemory::patience; ++i) arena.provide(i % 30 == 0 ? large : small);
  EXPECT_EQ(pages_in_memory(memory, large), before);
}

}  // namespace
}  // namespace selkie::runtime
