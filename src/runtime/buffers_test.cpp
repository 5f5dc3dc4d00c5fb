#include "runtime/buffers.h"

#include <gtest/gtest.h>

namespace selkie::runtime {
namespace {

constexpr int64_t large = 1 << 19;  // floats: a large page

TEST(Buffers, BlockServesTheNextRun) {
  Buffers buffers;
  const std::byte* first = buffers.tensor(DType::f32, {large}).bytes();
  EXPECT_EQ(buffers.kept_bytes(), 4 * large);
  buffers.begin_run();
  Tensor again = buffers.tensor(DType::f32, {2, large / 4});
  EXPECT_EQ(again.bytes(), first);
  EXPECT_EQ(buffers.kept_bytes(), 0);
}

TEST(Buffers, LargePageServesAllSizesThatFit) {
  Buffers buffers;
  const std::byte* first = buffers.tensor(DType::f32, {large / 8}).bytes();
  EXPECT_EQ(buffers.kept_bytes(), 4 * large);
  for (int64_t size : {large, large / 8, large / 2}) EXPECT_EQ(buffers.tensor(DType::f32, {size}).bytes(), first);
  EXPECT_EQ(buffers.kept_bytes(), 4 * large);
}

TEST(Buffers, BlockInUseIsNotGivenTwice) {
  Buffers buffers;
  Tensor one = buffers.tensor(DType::f32, {large});
  Tensor two = buffers.tensor(DType::f32, {large});
  EXPECT_NE(one.bytes(), two.bytes());
}

TEST(Buffers, MuchTooLargeBlockIsLeftAlone) {
  Buffers buffers;
  buffers.tensor(DType::f32, {8 * large});
  const Tensor small = buffers.tensor(DType::f32, {large});
  EXPECT_EQ(buffers.kept_bytes(), 4 * 8 * large);
}

TEST(Buffers, BlocksThatWaitTooLongAreFreed) {
  Buffers buffers;
  buffers.tensor(DType::f32, {large});
  for (int run = 0; run < 200; ++run) {
    buffers.begin_run();
    buffers.tensor(DType::f32, {8 * large});
  }
  EXPECT_EQ(buffers.kept_bytes(), 4 * 8 * large);
}

TEST(Buffers, TensorsOutliveThem) {
  Tensor tensor;
  {
    Buffers buffers;
    tensor = buffers.tensor(DType::f32, {large});
  }
  tensor.mutable_data<float>()[large - 1] = 1;
  EXPECT_EQ(tensor.data<float>()[large - 1], 1);
}

TEST(Buffers, BudgetIsChargedAndRefunded) {
  auto budget = std::make_shared<MemoryBudget>(4 * large);
  MemoryBudget::Scope scope(budget);
  Buffers buffers;
  {
    Tensor all = buffers.tensor(DType::f32, {large});
    EXPECT_THROW(buffers.tensor(DType::f32, {1}), Error);
  }
  EXPECT_NO_THROW(buffers.tensor(DType::f32, {large}));
}

TEST(Buffers, NothingIsATensorToo) {
  Buffers buffers;
  EXPECT_EQ(buffers.tensor(DType::f32, {0, 3}).count(), 0);
}

}  // namespace
}  // namespace selkie::runtime
