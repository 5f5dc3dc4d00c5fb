// How far library calls reach into their operands.
#include "runtime/reach.h"

#include <gtest/gtest.h>

namespace selkie::runtime {
namespace {

using program::Instruction;
using program::Opcode;

std::vector<int64_t> elements(const std::vector<Reach>& reaches) {
  std::vector<int64_t> out;
  for (const Reach& reach : reaches) out.push_back(reach.elements);
  return out;
}

// Slots hold their own numbers, so that sizes can be read where they are given.
class Reaches : public testing::Test {
 protected:
  Reaches() {
    for (int64_t i = 0; i < 32; ++i) slots_.push_back(i);
  }
  program::Program program_;
  std::vector<int64_t> slots_;
};

TEST_F(Reaches, ToTheLastElementByStrides) {
  // 3 x 4 by 4 x 5, the left one transposed, twice.
  program_.products.push_back({.a = {.value = 0, .row_stride = 1, .column_stride = 3, .batch_strides = {12}},
                               .b = {.value = 1, .row_stride = 5, .column_stride = 1, .batch_strides = {0}},
                               .c = {.value = 2, .row_stride = 5, .column_stride = 1, .batch_strides = {15}},
                               .m = 3,
                               .n = 5,
                               .k = 4,
                               .batch = {2},
                               .bias = 3});
  EXPECT_EQ(elements(reaches_of(program_, {.op = Opcode::product, .a = 0}, slots_)),
            (std::vector<int64_t>{24, 20, 30, 5}));
  slots_[3] = 0;  // rows
  EXPECT_EQ(elements(reaches_of(program_, {.op = Opcode::product, .a = 0}, slots_)),
            (std::vector<int64_t>{0, 0, 0, 5}));
}

TEST_F(Reaches, OverWholeImages) {
  program::Convolution call{.input = 0, .output = 1, .input_channels = 3, .output_channels = 8, .groups = 1};
  call.kernel = {1, 3, 3};
  call.batch = 2;
  call.input_dims = {1, 6, 7};
  call.output_dims = {1, 4, 5};
  call.pads = {0, 0, 0};
  program_.convolutions.push_back(call);
  EXPECT_EQ(elements(reaches_of(program_, {.op = Opcode::convolution, .a = 0}, slots_)),
            (std::vector<int64_t>{2 * 6 * 7 * 3, 2 * 4 * 5 * 8}));
}

TEST_F(Reaches, NoneOfOtherInstructions) {
  EXPECT_TRUE(reaches_of(program_, {.op = Opcode::jump, .a = 0}, slots_).empty());
}

}  // namespace
}  // namespace selkie::runtime
