// Which pages of this very program are given back.
#include "base/code_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdint>

namespace selkie {
namespace {

constexpr size_t page = 4096;

// Constants that nothing else needs, three times as many as the system brings in around a page: those around the middle
// come only if that is read.
constexpr size_t neighbourhood = size_t{64} << 10;
alignas(page) const std::array<char, 3 * neighbourhood> lonely{1};

char read_lonely() { return *static_cast<const volatile char*>(&lonely[lonely.size() / 2]); }
void forget_lonely() { madvise(const_cast<char*>(lonely.data()), lonely.size(), MADV_DONTNEED); }

// Systems with larger pages and those that do not tell have no such test.
bool can_be_tested() { return sysconf(_SC_PAGESIZE) == page && code_pages_in_memory() > 0; }

TEST(CodePages, WhatCameSinceIsGivenBackAndComesAgain) {
  if (!can_be_tested()) GTEST_SKIP();
  forget_lonely();
  CodePages pages;
  size_t before = code_pages_in_memory();
  EXPECT_EQ(read_lonely(), 0);
  size_t with_lonely = code_pages_in_memory();
  EXPECT_GT(with_lonely, before);
  pages.give_back_new_ones();
  EXPECT_LT(code_pages_in_memory(), with_lonely);
  EXPECT_EQ(read_lonely(), 0);
}

TEST(CodePages, WhatWasThereStays) {
  if (!can_be_tested()) GTEST_SKIP();
  EXPECT_EQ(read_lonely(), 0);
  CodePages pages;
  size_t before = code_pages_in_memory();
  pages.give_back_new_ones();
  EXPECT_GE(code_pages_in_memory(), before);
}

}  // namespace
}  // namespace selkie
