// Weights on their way from the model's file into the forms that library kernels read. That is done last: until then
// there are only addresses for them, and what compiles has the memory.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/memory.h"
#include "ir/module.h"

namespace selkie::compiler {

// Of weights that are copied or packed some at a time.
inline constexpr size_t piece_bytes = size_t{4} << 20;

struct ElementRange {
  size_t first, count;
};
ElementRange whole(const ir::Constant& constant);

// Some weights of f32 as the model has them. What holds them in its file is given back thereafter. Those that lie there
// as no floats can are copied into `room`.
class Weights {
 public:
  Weights(const ir::Constant& constant, ElementRange range, Room& room);
  ~Weights();
  Weights(const Weights&) = delete;
  Weights& operator=(const Weights&) = delete;

  const float* data() const { return data_; }

 private:
  void copy_to(std::byte* room) const;

  const MappedFile* file_;
  std::span<const std::byte> raw_;
  const float* data_ = nullptr;
};

class Packings {
 public:
  // pack(these weights as the model has them), later.
  void add(const ir::Constant& weights, ElementRange range, std::function<void(const float*)> pack);
  // A function that reads so many elements in all.
  void add(size_t elements, std::function<void()> pack);
  // All of them, on so many threads. The module's constants must still be there.
  void run(int threads);

 private:
  struct Packing {
    size_t elements;  // that it reads
    std::function<void(Room&)> run;
  };
  std::vector<Packing> packings_;
};

// A constant that kernels read as the model has it, once the packings have run. It stays in its file where it lies
// there as they need it and is large: each of many small ones would hold the pages around it, too.
Tensor stored_constant(const ir::Constant& constant, Slab& slab, Packings& packings);

}  // namespace selkie::compiler
