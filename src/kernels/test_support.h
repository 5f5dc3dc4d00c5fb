// What the kernels' tests share: the tables to test, and buffers between pages that may not be touched.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "base/error.h"
#include "kernels/table.h"

namespace selkie::kernels {

extern const KernelTable wide_table;

namespace testing {

inline std::vector<const KernelTable*> tested_tables() {
  std::vector<const KernelTable*> tables = {&wide_table};
  for (Isa isa : usable_isas()) tables.push_back(&table(isa));
  return tables;
}

using Random = std::mt19937;
inline int64_t pick(Random& random, int64_t least, int64_t most) {
  return std::uniform_int_distribution<int64_t>(least, most)(random);
}

// Floats that end, or begin, exactly at a page that traps: a read or write beyond them stops the test.
class Guarded {
 public:
  enum class Side { end, begin };

  explicit Guarded(int64_t count, Side side = Side::end) : count_(count) {
    auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    size_t bytes = static_cast<size_t>(count) * sizeof(float);
    size_t inside = (bytes + page - 1) / page * page;
    mapped_ = inside + 2 * page;
    base_ = static_cast<char*>(mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    CHECK(base_ != MAP_FAILED, "no memory for a test");
    if (inside) CHECK(mprotect(base_ + page, inside, PROT_READ | PROT_WRITE) == 0);
    data_ = reinterpret_cast<float*>(base_ + page + (side == Side::end ? inside - bytes : 0));
  }
  Guarded(int64_t count, Random& random, Side side = Side::end) : Guarded(count, side) {
    std::uniform_real_distribution<float> distribution(-1, 1);
    for (int64_t i = 0; i < count; ++i) data_[i] = distribution(random);
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  ~Guarded() { munmap(base_, mapped_); }

  float* data() { return data_; }
  const float* data() const { return data_; }
  int64_t size() const { return count_; }
  float& operator[](int64_t i) { return data_[i]; }
  float operator[](int64_t i) const { return data_[i]; }
  void fill(float value) {
    for (int64_t i = 0; i < count_; ++i) data_[i] = value;
  }

 private:
  int64_t count_;
  size_t mapped_;
  char* base_;
  float* data_;
};

// An epilogue over rows of sizes[0] floats.
inline void add_one(void* const* buffers, const int64_t* sizes, const int64_t* ranges) {
  auto* c = static_cast<float*>(buffers[0]);
  for (int64_t i = ranges[0]; i < ranges[1]; ++i)
    for (int64_t j = ranges[2]; j < ranges[3]; ++j) c[i * sizes[0] + j] += 1;
}

// Scratch memory aligned as kernels expect it, with the bytes after it watched.
class TestScratch {
 public:
  explicit TestScratch(size_t bytes) : floats_(static_cast<int64_t>((bytes + 63) / 64 * 16)) { floats_.fill(-7e30f); }
  void* data() { return floats_.data(); }

 private:
  Guarded floats_;
};

}  // namespace testing
}  // namespace selkie::kernels
