// The host tensor that constants, the reference evaluator and the runtime share, and the budget its memory comes from.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/error.h"

namespace selkie {

using Dims = std::vector<int64_t>;

// Product of dims; fails where it does not fit 63 bits or a dim is negative.
int64_t element_count(std::span<const int64_t> dims);
std::string to_string(std::span<const int64_t> dims);  // "[2, 3]"

// The bytes that tensors of one run may hold together. Tensors charge the budget that is current in their thread when
// they are made and refund it when they go.
class MemoryBudget {
 public:
  explicit MemoryBudget(int64_t limit_bytes) : limit_(limit_bytes) {}
  void charge(int64_t bytes);
  void refund(int64_t bytes);
  int64_t peak() const { return peak_; }

  // Makes a budget current in this thread for the lifetime of the scope.
  class Scope {
   public:
    explicit Scope(std::shared_ptr<MemoryBudget> budget);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    std::shared_ptr<MemoryBudget> previous_;
  };

  // Without a scope the limit is four fifths of the machine's memory.
  static std::shared_ptr<MemoryBudget> current();

 private:
  int64_t limit_;
  std::atomic<int64_t> used_ = 0;
  std::atomic<int64_t> peak_ = 0;
};

// A dense tensor in row-major order. Copies share the elements; whoever made a tensor may write it until it is shared.
class Tensor {
 public:
  Tensor() = default;
  // Elements start as zero (or empty strings).
  Tensor(DType dtype, Dims dims);
  // Wraps memory that `owner` keeps alive, without a copy.
  static Tensor view(DType dtype, Dims dims, const std::byte* data, std::shared_ptr<const void> owner);

  template <class T>
  static Tensor from(DType dtype, Dims dims, std::span<const T> values) {
    Tensor t(dtype, std::move(dims));
    CHECK(static_cast<int64_t>(values.size()) == t.count());
    std::copy(values.begin(), values.end(), t.mutable_data<T>());
    return t;
  }
  static Tensor scalar_i64(int64_t value);
  static Tensor of_i64(std::span<const int64_t> values);
  static Tensor scalar_bool(bool value);

  DType dtype() const { return dtype_; }
  const Dims& dims() const { return dims_; }
  int64_t dim(int64_t axis) const { return dims_[static_cast<size_t>(axis)]; }
  int64_t rank() const { return static_cast<int64_t>(dims_.size()); }
  int64_t count() const { return count_; }
  size_t byte_size() const { return static_cast<size_t>(count_) * element_size(dtype_); }

  // The elements as T, which must be of the dtype's size (std::string for str).
  template <class T>
  const T* data() const {
    check_access(sizeof(T), std::is_same_v<T, std::string>);
    return reinterpret_cast<const T*>(data_.get());
  }
  template <class T>
  T* mutable_data() {
    check_access(sizeof(T), std::is_same_v<T, std::string>);
    return reinterpret_cast<T*>(const_cast<std::byte*>(data_.get()));
  }
  template <class T>
  std::span<const T> values() const {
    return {data<T>(), static_cast<size_t>(count_)};
  }
  const std::byte* bytes() const { return data_.get(); }
  std::byte* mutable_bytes() { return const_cast<std::byte*>(data_.get()); }

  // The same elements under other dims of equal count.
  Tensor reshaped(Dims dims) const;
  // The same bytes under another dtype of equal element size.
  Tensor bit_cast_to(DType dtype) const;

 private:
  void check_access(size_t size, bool is_string) const;

  DType dtype_ = DType::f32;
  Dims dims_;
  int64_t count_ = 1;
  std::shared_ptr<const std::byte> data_;
};

}  // namespace selkie
