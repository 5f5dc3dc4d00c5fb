// What the trips of a loop give one after the other, where nobody knows before how many there are.
#pragma once

#include <vector>

#include "base/host_value.h"
#include "runtime/buffers.h"

namespace selkie::runtime {

class Growing {
 public:
  void begin();
  // A slice of the same dtype and dims as those before; memory grows by doubling, so that each is copied at most twice
  // on average.
  void append(DType dtype, const Dims& dims, const std::byte* slice, Buffers& buffers);
  void append(HostValue item) { items_.push_back(std::move(item)); }
  int64_t count() const { return count_; }
  int64_t item_count() const { return static_cast<int64_t>(items_.size()); }

  // All slices along a new first axis; there is at least one. What was collected is let go of.
  Tensor take_stacked(bool reversed, Buffers& buffers);
  Sequence take_items() { return {std::exchange(items_, {})}; }

 private:
  Tensor memory_;  // of so many slices that there is room for more
  Dims slice_;
  int64_t count_ = 0;
  std::vector<HostValue> items_;
};

}  // namespace selkie::runtime
