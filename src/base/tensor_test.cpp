// Tensors, the budget their memory comes from, sets of dtypes, and values made of tensors.
#include "base/tensor.h"

#include <gtest/gtest.h>

#include "base/host_value.h"

namespace selkie {
namespace {

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Dims, CountsAndRefusals) {
  EXPECT_EQ(element_count(Dims{}), 1);
  EXPECT_EQ(element_count(Dims{2, 3}), 6);
  EXPECT_EQ(element_count(Dims{int64_t{1} << 40, 0, int64_t{1} << 40}), 0);
  EXPECT_EQ(error_of([] { element_count(Dims{2, -1}); }), "dimension -1 of [2, -1] is negative");
  EXPECT_EQ(error_of([] { element_count(Dims{-1, 0}); }), "dimension -1 of [-1, 0] is negative");
  EXPECT_NE(error_of([] { element_count(Dims{int64_t{1} << 40, int64_t{1} << 40}); }).find("too many elements"),
            std::string::npos);
  EXPECT_NE(error_of([] { Tensor(DType::f64, {int64_t{1} << 61}); }).find("too many elements"), std::string::npos);
}

TEST(MemoryBudget, ChargesAndRefunds) {
  auto budget = std::make_shared<MemoryBudget>(1000);
  MemoryBudget::Scope scope(budget);
  EXPECT_EQ(MemoryBudget::current(), budget);
  {
    Tensor a(DType::f32, {100});
    EXPECT_EQ(budget->peak(), 400);
    Tensor shared = a;
    Tensor again = a.reshaped({10, 10});
    EXPECT_EQ(budget->peak(), 400);
  }
  Tensor b(DType::f32, {200});
  EXPECT_EQ(budget->peak(), 800);
  std::string error = error_of([] { Tensor(DType::u8, {201}); });
  EXPECT_EQ(
      error,
      "out of memory: 201 bytes are needed, 800 are in use, and the limit is 1000\n  while making a tensor u8[201]");
  EXPECT_NO_THROW(Tensor(DType::u8, {200}));
}

TEST(MemoryBudget, ScopesNest) {
  auto outer = std::make_shared<MemoryBudget>(100);
  auto inner = std::make_shared<MemoryBudget>(10);
  MemoryBudget::Scope first(outer);
  {
    MemoryBudget::Scope second(inner);
    EXPECT_THROW(Tensor(DType::u8, {11}), Error);
  }
  EXPECT_EQ(MemoryBudget::current(), outer);
  EXPECT_NO_THROW(Tensor(DType::u8, {11}));
}

TEST(MemoryBudget, ATensorMayOutliveItsScope) {
  Tensor kept;
  {
    MemoryBudget::Scope scope(std::make_shared<MemoryBudget>(100));
    kept = Tensor(DType::str, {2});
  }
  EXPECT_EQ(kept.values<std::string>()[1], "");
}

TEST(DTypeSet, Algebra) {
  constexpr DTypeSet set{DType::f32, DType::i64};
  static_assert(set.contains(DType::f32) && !set.contains(DType::f16));
  static_assert(DTypeSet{}.empty() && !set.empty());
  static_assert((set - DTypeSet{DType::f32}) == DTypeSet{DType::i64});
  static_assert((set | DTypeSet{DType::str}).contains(DType::str));
  for (const DTypeInfo& row : all_dtypes()) {
    EXPECT_TRUE(dtypes::all.contains(row.dtype)) << row.name;
    EXPECT_EQ(dtypes::numeric.contains(row.dtype),
              dtypes::floats.contains(row.dtype) || dtypes::ints.contains(row.dtype))
        << row.name;
  }
}

TEST(DType, NamesAndNumbersComeBack) {
  for (const DTypeInfo& row : all_dtypes()) {
    EXPECT_EQ(dtype_from_name(row.name), row.dtype);
    EXPECT_EQ(dtype_from_onnx(static_cast<int64_t>(row.dtype)), row.dtype);
    if (row.dtype != DType::str) EXPECT_EQ(element_size(row.dtype), std::max<size_t>(1, row.bits / 8u)) << row.name;
  }
  EXPECT_EQ(dtype_from_name("f33"), std::nullopt);
  for (int64_t code : {int64_t{0}, int64_t{-1}, int64_t{27}, int64_t{1} << 40})
    EXPECT_EQ(dtype_from_onnx(code), std::nullopt);
}

TEST(Tensor, ReshapeSharesAndRefuses) {
  Tensor t = Tensor::of_i64(std::vector<int64_t>{1, 2, 3, 4});
  EXPECT_EQ(t.reshaped({2, 2}).bytes(), t.bytes());
  EXPECT_EQ(error_of([&] { t.reshaped({3}); }), "4 elements of shape [4] do not fit shape [3]");
}

TEST(Tensor, AViewKeepsItsOwner) {
  auto owner = std::make_shared<std::vector<float>>(2, 1.5f);
  std::weak_ptr<std::vector<float>> watch = owner;
  Tensor t = Tensor::view(DType::f32, {2}, reinterpret_cast<const std::byte*>(owner->data()), owner);
  owner.reset();
  EXPECT_EQ(t.values<float>()[1], 1.5f);
  t = Tensor();
  EXPECT_TRUE(watch.expired());
}

TEST(HostValue, SaysWhatItIsInstead) {
  EXPECT_EQ(error_of([] { HostValue(Sequence{}).tensor(); }),
            "a tensor is needed, but the value is a sequence of 0 items");
  EXPECT_EQ(error_of([] { HostValue().sequence(); }), "a sequence is needed, but the value is absent");
  EXPECT_EQ(HostValue(Optional{std::make_shared<HostValue>(Tensor(DType::f32, {2}))}).describe(),
            "an optional of f32[2]");
  EXPECT_EQ(HostValue(Record{"", {HostValue()}}).describe(), "a tuple of 1");
  EXPECT_EQ(HostValue(Closure{"f", {}}).describe(), "a closure of @f");
}

TEST(HostValue, AssignmentIsSafeWithItsOwnParts) {
  HostValue value = Sequence{{HostValue(Sequence{{HostValue(Tensor::scalar_i64(7))}})}};
  value = value.sequence()[0];
  const HostValue& same = value;
  value = same;
  EXPECT_EQ(value.sequence()[0].tensor().values<int64_t>()[0], 7);
}

TEST(HostValue, DeepNestingIsFreedWithoutADeepStack) {
  HostValue value;
  for (int i = 0; i < 300'000; ++i) {
    if (i % 3 == 0)
      value = Optional{std::make_shared<HostValue>(std::move(value))};
    else if (i % 3 == 1)
      value = Sequence{{std::move(value)}};
    else
      value = Record{"Cons", {std::move(value)}};
  }
  HostValue copy = value;
  value = HostValue();
  EXPECT_FALSE(copy.is_absent());
}

TEST(Error, LongChainsOfNotesAreCut) {
  Error error("first");
  for (int i = 0; i < 1000; ++i) error.note(fmt::format("note {}", i));
  std::string text = error.what();
  EXPECT_NE(text.find("note 19\n  …"), std::string::npos);
  EXPECT_EQ(text.find("note 20"), std::string::npos);
}

}  // namespace
}  // namespace selkie
