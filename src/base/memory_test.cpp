#include "base/memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>

namespace selkie {
namespace {

TEST(Memory, BlocksAreAlignedAndWritable) {
  for (size_t bytes : {size_t{0}, size_t{1}, size_t{1000}, size_t{300} << 10, size_t{5} << 20}) {
    std::byte* memory = allocate_memory(bytes);
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0U);
    if (bytes > 0) memory[bytes - 1] = std::byte{1};
    std::free(memory);
  }
}

TEST(Memory, TooMuchIsRefused) { EXPECT_EQ(allocate_memory(SIZE_MAX), nullptr); }

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
