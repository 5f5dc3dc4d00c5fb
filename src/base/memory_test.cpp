#include "base/memory.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace selkie {
namespace {

TEST(Reserve, BlocksAreAlignedAndWritable) {
  for (size_t bytes : {size_t{0}, size_t{1}, size_t{1000}, size_t{300} << 10, size_t{5} << 20}) {
    Reserve reserve(bytes);
    ASSERT_NE(reserve.data(), nullptr);
    EXPECT_EQ(reserve.size(), Reserve::size_for(bytes));
    EXPECT_GE(reserve.size(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(reserve.data()) % 64, 0U);
    reserve.use(bytes);
    if (bytes > 0) reserve.data()[bytes - 1] = std::byte{1};
  }
}

TEST(Reserve, PagesBecomeLargeOnceHalfOfOneIsUsed) {
  constexpr size_t page = size_t{2} << 20;
  Reserve reserve(4 * page);
  ASSERT_NE(reserve.data(), nullptr);
  EXPECT_EQ(reserve.size(), 4 * page);
  EXPECT_TRUE(reserve.use(page / 4).empty());
  EXPECT_EQ(reserve.use(page).data(), reserve.data());
  EXPECT_TRUE(reserve.use(page).empty());
  std::span<std::byte> next = reserve.use(2 * page + page / 2);
  EXPECT_EQ(next.data(), reserve.data() + page);
  EXPECT_EQ(next.size(), 2 * page);
  reserve.data()[4 * page - 1] = std::byte{1};
}

TEST(Reserve, TooMuchIsRefused) {
  EXPECT_EQ(Reserve(SIZE_MAX).data(), nullptr);
  EXPECT_EQ(Reserve(SIZE_MAX).size(), 0U);
}

TEST(Slab, TensorsLieBesideEachOtherAndOutliveIt) {
  Tensor first;
  Tensor second;
  Tensor huge;
  {
    Slab slab;
    first = slab.tensor(DType::f32, {3});
    second = slab.tensor(DType::f32, {5});
    huge = slab.tensor(DType::f32, {20 << 20});
  }
  EXPECT_EQ(second.bytes() - first.bytes(), 64);
  huge.mutable_data<float>()[huge.count() - 1] = 1;
  second.mutable_data<float>()[4] = 2;
  EXPECT_EQ(second.data<float>()[4], 2);
}

TEST(Slab, BudgetIsChargedAndRefunded) {
  auto budget = std::make_shared<MemoryBudget>(100);
  MemoryBudget::Scope scope(budget);
  Slab slab;
  {
    Tensor all = slab.tensor(DType::f32, {25});
    EXPECT_THROW(slab.tensor(DType::f32, {1}), Error);
  }
  EXPECT_NO_THROW(slab.tensor(DType::f32, {25}));
}

}  // namespace
}  // namespace selkie
