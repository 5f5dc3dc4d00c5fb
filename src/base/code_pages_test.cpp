// Which pages of this very program are given back.
#include "base/code_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace selkie {
namespace {

constexpr size_t page = 4096;

// Alone on its page, so that nothing else needs that.
[[gnu::noinline, gnu::aligned(page)]] int lonely(int x) {
  asm volatile(".skip 4096, 0x90");
  return x + 1;
}

// Systems with larger pages and those that do not tell have no such test.
bool can_be_tested() { return sysconf(_SC_PAGESIZE) == page && code_pages_in_memory() > 0; }

void forget_lonely() { madvise(reinterpret_cast<void*>(&lonely), page, MADV_DONTNEED); }

TEST(CodePages, WhatCameSinceIsGivenBackAndComesAgain) {
  if (!can_be_tested()) GTEST_SKIP();
  forget_lonely();
  CodePages pages;
  size_t before = code_pages_in_memory();
  EXPECT_EQ(lonely(1), 2);
  size_t with_lonely = code_pages_in_memory();
  EXPECT_GT(with_lonely, before);
  pages.give_back_new_ones();
  EXPECT_LT(code_pages_in_memory(), with_lonely);
  EXPECT_EQ(lonely(2), 3);
}

TEST(CodePages, WhatWasThereStays) {
  if (!can_be_tested()) GTEST_SKIP();
  EXPECT_EQ(lonely(1), 2);
  CodePages pages;
  size_t before = code_pages_in_memory();
  pages.give_back_new_ones();
  EXPECT_GE(code_pages_in_memory(), before);
}

}  // namespace
}  // namespace selkie
