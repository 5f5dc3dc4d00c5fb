// Products and convolutions of bytes against plain loops, which they equal exactly: every sign, zero points of every
// kind, every number of rows, sizes around vectors and every way of cutting into tasks.
#include "kernels/integer_gemm.h"

#include <gtest/gtest.h>

#include <memory>

#include "kernels/test_support.h"

namespace selkie::kernels {

extern const IntegerTable wide_integer_table;

namespace {

using namespace testing;

std::vector<const IntegerTable*> tables() {
  std::vector<const IntegerTable*> all = {&wide_integer_table};
  for (IntegerIsa isa : usable_integer_isas()) all.push_back(&integer_table(isa));
  return all;
}

enum class Zeros { none, one, several };

// Random bytes that end at a page that traps, with zero points.
struct Bytes {
  Bytes(int64_t count, bool is_signed, Zeros kind, int64_t several, Random& random)
      : memory((count + 3) / 4), zeros(static_cast<size_t>(kind == Zeros::several ? several : 1)) {
    auto* end = reinterpret_cast<uint8_t*>(memory.data() + memory.size());
    // Extremes come often: they are what overflows.
    auto byte = [&] {
      int64_t drawn = pick(random, 0, 511);
      return static_cast<uint8_t>(drawn < 256 ? drawn : drawn < 384 ? 127 : drawn < 448 ? 128 : 255);
    };
    tensor = {.data = end - count, .is_signed = is_signed};
    for (int64_t i = 0; i < count; ++i) end[i - count] = byte();
    if (kind == Zeros::none) return;
    for (uint8_t& zero : zeros) zero = byte();
    tensor.zeros = zeros.data();
    tensor.zero_count = static_cast<int64_t>(zeros.size());
  }
  int64_t at(int64_t i, int64_t zero) const {
    auto value = [&](uint8_t byte) { return tensor.is_signed ? static_cast<int8_t>(byte) : int64_t{byte}; };
    return value(tensor.data[i]) - (tensor.zeros ? value(tensor.zeros[tensor.zero_count == 1 ? 0 : zero]) : 0);
  }

  Guarded memory;
  std::vector<uint8_t> zeros;
  ByteTensor tensor;
};

void add_one(void* const* buffers, const int64_t* sizes, const int64_t* ranges) {
  auto* c = static_cast<int32_t*>(buffers[0]);
  for (int64_t i = ranges[0]; i < ranges[1]; ++i)
    for (int64_t j = ranges[2]; j < ranges[3]; ++j) c[i * sizes[0] + j] += 1;
}

// Runs all tasks, backwards and one at a time: they may not depend on each other.
void run(const IntegerTable& table, IntegerProduct product, const IntegerWeights& weights, int threads,
         Guarded& output) {
  size_t bytes = packed_integer_bytes(table, product.shape);
  TestScratch packed(bytes);
  pack_integer(table, product.shape, weights, static_cast<std::byte*>(packed.data()));
  product.packed = static_cast<const std::byte*>(packed.data());
  product.output = reinterpret_cast<int32_t*>(output.data());
  void* buffers[] = {output.data()};
  int64_t sizes[] = {product.shape.output_channels};
  product.epilogue = {.function = threads > 1 ? add_one : nullptr, .buffers = buffers, .sizes = sizes};
  IntegerPlan plan = plan_integer(table, product, threads);
  TestScratch memory(plan.memory_bytes);
  for (int64_t stage = 0; stage < IntegerPlan::stages; ++stage)
    for (int64_t task = plan.tasks(stage); task-- > 0;) {
      TestScratch scratch(plan.scratch_bytes);
      run_integer_stage(table, product, plan, stage, task, task + 1, memory.data(), scratch.data());
    }
}

struct Case {
  int64_t m, n, k;
  bool a_signed = false;
  bool b_signed = true;
  Zeros a_zeros = Zeros::one;
  Zeros b_zeros = Zeros::none;
  int threads = 1;
};

void check(const IntegerTable& table, const Case& t, Random& random) {
  SCOPED_TRACE(fmt::format("{} {}x{}x{} signed {} {} zeros {} {} threads {}", table.name, t.m, t.n, t.k, t.a_signed,
                           t.b_signed, static_cast<int>(t.a_zeros), static_cast<int>(t.b_zeros), t.threads));
  Bytes a(t.m * t.k, t.a_signed, t.a_zeros, t.m, random);
  Bytes b(t.k * t.n, t.b_signed, t.b_zeros, t.n, random);
  Guarded c(t.m * t.n);
  run(table, {.shape = product_shape(t.m, t.n, t.k), .input = a.tensor},
      {.bytes = b.tensor, .column_stride = 1, .channel_stride = t.n, .tap_stride = 0}, t.threads, c);
  for (int64_t i = 0; i < t.m; ++i)
    for (int64_t j = 0; j < t.n; ++j) {
      int64_t want = t.threads > 1 ? 1 : 0;
      for (int64_t d = 0; d < t.k; ++d) want += a.at(i * t.k + d, i) * b.at(d * t.n + j, j);
      ASSERT_EQ(reinterpret_cast<const int32_t*>(c.data())[i * t.n + j], want) << "at " << i << ", " << j;
    }
}

TEST(IntegerGemm, EveryNumberOfRows) {
  Random random(1);
  for (const IntegerTable* table : tables())
    for (int64_t m = 0; m <= 2 * table->tile_rows + 1; ++m)
      check(*table, {.m = m, .n = table->tile_columns + 1, .k = 11}, random);
}

TEST(IntegerGemm, SizesAroundVectors) {
  Random random(2);
  for (const IntegerTable* table : tables())
    for (int64_t n : {0, 1, 2, 13, table->tile_columns - 1, table->tile_columns, table->tile_columns + 1})
      for (int64_t k : {0, 1, 2, 3, 4, 5, 31, 32, 33, 257}) check(*table, {.m = 5, .n = n, .k = k}, random);
}

TEST(IntegerGemm, SignsAndZeroPoints) {
  Random random(3);
  for (const IntegerTable* table : tables())
    for (int form = 0; form < 36; ++form)
      check(*table,
            {.m = 9,
             .n = 19,
             .k = 37,
             .a_signed = form % 2 == 1,
             .b_signed = form / 2 % 2 == 1,
             .a_zeros = static_cast<Zeros>(form / 4 % 3),
             .b_zeros = static_cast<Zeros>(form / 12)},
            random);
}

TEST(IntegerGemm, LargeOnesInManyTasks) {
  Random random(4);
  for (const IntegerTable* table : tables())
    for (int threads : {1, 2, 7}) {
      check(*table, {.m = 131, .n = 197, .k = 301, .b_zeros = Zeros::several, .threads = threads}, random);
      check(*table, {.m = 1, .n = 517, .k = 1031, .a_signed = true, .threads = threads}, random);
    }
}

// All of one sign and as large as they can be: 16 bits would overflow, and do where products of bytes saturate.
TEST(IntegerGemm, NothingSaturates) {
  for (const IntegerTable* table : tables()) {
    std::vector<uint8_t> a(64, 255);
    std::vector<uint8_t> b(64, 0x80);  // −128
    uint8_t zero = 0;
    Guarded c(1);
    run(*table, {.shape = product_shape(1, 1, 64), .input = {.data = a.data(), .zeros = &zero}},
        {.bytes = {.data = b.data(), .is_signed = true}, .column_stride = 1, .channel_stride = 1, .tap_stride = 0}, 1,
        c);
    EXPECT_EQ(*reinterpret_cast<const int32_t*>(c.data()), -255 * 128 * 64) << table->name;
  }
}

// The element of the output by its definition.
int64_t convolved(const ConvolutionShape& s, const Bytes& x, const Bytes& w, int64_t row, int64_t column) {
  int64_t channels = s.input_channels / s.groups;
  int64_t first = column / (s.output_channels / s.groups) * channels;
  std::array<int64_t, 3> at;
  int64_t image = row;
  for (size_t axis = 3; axis-- > 0; image /= s.output[axis]) at[axis] = image % s.output[axis];
  int64_t sum = 0;
  for (int64_t tap = 0; tap < s.taps(); ++tap) {
    std::array<int64_t, 3> k{tap / s.kernel[2] / s.kernel[1], tap / s.kernel[2] % s.kernel[1], tap % s.kernel[2]};
    int64_t pixel = image;
    bool inside = true;
    for (size_t axis = 0; axis < 3; ++axis) {
      int64_t place = at[axis] * s.stride[axis] - s.pad[axis] + k[axis] * s.dilation[axis];
      inside = inside && place >= 0 && place < s.input[axis];
      pixel = pixel * s.input[axis] + place;
    }
    for (int64_t c = 0; inside && c < channels; ++c)
      sum += x.at(pixel * s.input_channels + first + c, 0) * w.at((column * channels + c) * s.taps() + tap, column);
  }
  return sum;
}

TEST(IntegerGemm, Convolutions) {
  Random random(5);
  for (const IntegerTable* table : tables())
    for (int i = 0; i < 60; ++i) {
      bool depthwise = i % 4 == 3;
      ConvolutionShape shape{.batch = pick(random, 1, 2), .groups = pick(random, 1, depthwise ? 40 : 3)};
      shape.input_channels = shape.groups * (depthwise ? 1 : pick(random, 1, 9));
      shape.output_channels = shape.groups * (depthwise ? 1 : pick(random, 1, 20));
      for (size_t axis = 0; axis < 3; ++axis) {
        shape.kernel[axis] = pick(random, 1, 3);
        shape.stride[axis] = pick(random, 1, 2);
        shape.dilation[axis] = pick(random, 1, 2);
        shape.pad[axis] = pick(random, 0, 2);
        shape.input[axis] = pick(random, 1, 6);
        int64_t reach = shape.input[axis] + 2 * shape.pad[axis] - (shape.kernel[axis] - 1) * shape.dilation[axis] - 1;
        shape.output[axis] = reach < 0 ? 0 : reach / shape.stride[axis] + 1;
      }
      int64_t channels = shape.input_channels / shape.groups;
      int64_t pixels = shape.batch * shape.input[0] * shape.input[1] * shape.input[2];
      Bytes x(pixels * shape.input_channels, i % 2 == 0, Zeros::one, 1, random);
      Bytes w(shape.output_channels * channels * shape.taps(), i % 3 == 0, static_cast<Zeros>(i % 5 % 3),
              shape.output_channels, random);
      Guarded y(shape.output_pixels() * shape.output_channels);
      run(*table, {.shape = shape, .input = x.tensor},
          {.bytes = w.tensor,
           .column_stride = channels * shape.taps(),
           .channel_stride = shape.taps(),
           .tap_stride = 1},
          1 + i % 2 * 3, y);
      for (int64_t j = 0; j < y.size(); ++j)
        ASSERT_EQ(reinterpret_cast<const int32_t*>(y.data())[j],
                  convolved(shape, x, w, j / shape.output_channels, j % shape.output_channels) + i % 2)
            << table->name << " case " << i << " element " << j;
    }
}

}  // namespace
}  // namespace selkie::kernels
