#include "runtime/growing.h"

#include <algorithm>

namespace selkie::runtime {
namespace {

Dims stacked(int64_t count, const Dims& slice) {
  Dims dims{count};
  dims.insert(dims.end(), slice.begin(), slice.end());
  return dims;
}

}  // namespace

void Growing::begin() { *this = {}; }

void Growing::append(DType dtype, const Dims& dims, const std::byte* slice, Buffers& buffers) {
  constexpr int64_t first_room = 4;
  if (count_ == 0) {
    slice_ = dims;
    memory_ = buffers.tensor(dtype, stacked(first_room, slice_));
  }
  if (dims != slice_) fail("slices of shape {} and {} cannot be stacked", to_string(slice_), to_string(dims));
  if (count_ == memory_.dim(0)) {
    Tensor larger = buffers.tensor(dtype, stacked(2 * count_, slice_));
    std::copy_n(memory_.bytes(), memory_.byte_size(), larger.mutable_bytes());
    memory_ = std::move(larger);
  }
  size_t bytes = memory_.byte_size() / static_cast<size_t>(memory_.dim(0));
  std::copy_n(slice, bytes, memory_.mutable_bytes() + static_cast<size_t>(count_) * bytes);
  ++count_;
}

Tensor Growing::take_stacked(bool reversed, Buffers& buffers) {
  int64_t count = std::exchange(count_, 0);
  Tensor memory = std::exchange(memory_, {});
  Dims dims = stacked(count, slice_);
  if (!reversed) {
    auto owner = std::make_shared<const Tensor>(memory);
    return Tensor::view(memory.dtype(), std::move(dims), memory.bytes(), std::move(owner));
  }
  Tensor out = buffers.tensor(memory.dtype(), std::move(dims));
  size_t bytes = out.byte_size() / static_cast<size_t>(count);
  for (int64_t i = 0; i < count; ++i)
    std::copy_n(memory.bytes() + static_cast<size_t>(count - 1 - i) * bytes, bytes,
                out.mutable_bytes() + static_cast<size_t>(i) * bytes);
  return out;
}

}  // namespace selkie::runtime
