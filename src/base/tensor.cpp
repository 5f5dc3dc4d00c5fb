#include "base/tensor.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace selkie {
namespace {

int64_t default_limit() {
  int64_t pages = sysconf(_SC_PHYS_PAGES);
  int64_t page = sysconf(_SC_PAGE_SIZE);
  return pages > 0 && page > 0 ? pages / 5 * 4 * page : int64_t{1} << 34;
}

std::shared_ptr<MemoryBudget>& current_budget() {
  thread_local std::shared_ptr<MemoryBudget> budget = std::make_shared<MemoryBudget>(default_limit());
  return budget;
}

}  // namespace

int64_t element_count(std::span<const int64_t> dims) {
  int64_t count = 1;
  bool zero = std::find(dims.begin(), dims.end(), 0) != dims.end();
  for (int64_t d : dims) {
    if (d < 0) fail("dimension {} of {} is negative", d, to_string(dims));
    if (!zero && __builtin_mul_overflow(count, d, &count))
      fail("a tensor of shape {} has too many elements", to_string(dims));
  }
  return zero ? 0 : count;
}

std::string to_string(std::span<const int64_t> dims) { return fmt::format("[{}]", fmt::join(dims, ", ")); }

void MemoryBudget::charge(int64_t bytes) {
  int64_t used = used_.load();
  do {
    if (bytes > limit_ - used)
      fail("out of memory: {} bytes are needed, {} are in use, and the limit is {}", bytes, used, limit_);
  } while (!used_.compare_exchange_weak(used, used + bytes));
  if (used + bytes > peak_) peak_ = used + bytes;
}

void MemoryBudget::refund(int64_t bytes) { used_ -= bytes; }

MemoryBudget::Scope::Scope(std::shared_ptr<MemoryBudget> budget) : previous_(current_budget()) {
  current_budget() = std::move(budget);
}
MemoryBudget::Scope::~Scope() { current_budget() = std::move(previous_); }
std::shared_ptr<MemoryBudget> MemoryBudget::current() { return current_budget(); }

Tensor::Tensor(DType dtype, Dims dims) : dtype_(dtype), dims_(std::move(dims)), count_(element_count(dims_)) {
  size_t size = dtype == DType::str ? sizeof(std::string) : element_size(dtype);
  int64_t bytes = 0;
  if (__builtin_mul_overflow(count_, static_cast<int64_t>(size), &bytes))
    fail("a tensor of shape {} has too many elements", to_string(dims_));
  std::shared_ptr<MemoryBudget> budget = MemoryBudget::current();
  try {
    budget->charge(bytes);
  } catch (Error& error) {
    error.note(fmt::format("while making a tensor {}{}", name(dtype), to_string(dims_)));
    throw;
  }
  if (dtype == DType::str) {
    auto strings =
        std::shared_ptr<std::string[]>(new std::string[static_cast<size_t>(count_)], [budget, bytes](std::string* p) {
          delete[] p;
          budget->refund(bytes);
        });
    data_ = std::shared_ptr<const std::byte>(strings, reinterpret_cast<const std::byte*>(strings.get()));
    return;
  }
  // calloc leaves large blocks untouched until they are written.
  void* memory = std::calloc(std::max<size_t>(static_cast<size_t>(bytes), 1), 1);
  if (memory == nullptr) {
    budget->refund(bytes);
    fail("out of memory: the system refused {} bytes for a tensor {}{}", bytes, name(dtype), to_string(dims_));
  }
  data_ = std::shared_ptr<const std::byte>(static_cast<const std::byte*>(memory), [budget, bytes](const std::byte* p) {
    std::free(const_cast<std::byte*>(p));
    budget->refund(bytes);
  });
}

Tensor Tensor::view(DType dtype, Dims dims, const std::byte* data, std::shared_ptr<const void> owner) {
  Tensor t;
  t.dtype_ = dtype;
  t.dims_ = std::move(dims);
  t.count_ = element_count(t.dims_);
  t.data_ = std::shared_ptr<const std::byte>(std::move(owner), data);
  return t;
}

Tensor Tensor::scalar_i64(int64_t value) { return from<int64_t>(DType::i64, {}, {&value, 1}); }

Tensor Tensor::of_i64(std::span<const int64_t> values) {
  return from<int64_t>(DType::i64, {static_cast<int64_t>(values.size())}, values);
}

Tensor Tensor::scalar_bool(bool value) { return from<bool>(DType::boolean, {}, {&value, 1}); }

Tensor Tensor::reshaped(Dims dims) const {
  Tensor t = *this;
  t.count_ = element_count(dims);
  if (t.count_ != count_)
    fail("{} elements of shape {} do not fit shape {}", count_, to_string(dims_), to_string(dims));
  t.dims_ = std::move(dims);
  return t;
}

Tensor Tensor::bit_cast_to(DType dtype) const {
  CHECK(element_size(dtype) == element_size(dtype_) && dtype != DType::str && dtype_ != DType::str);
  Tensor t = *this;
  t.dtype_ = dtype;
  return t;
}

void Tensor::check_access(size_t size, bool is_string) const {
  bool fits = dtype_ == DType::str ? is_string : !is_string && size == element_size(dtype_);
  CHECK(fits, "{} elements accessed as {} bytes", name(dtype_), size);
}

}  // namespace selkie
