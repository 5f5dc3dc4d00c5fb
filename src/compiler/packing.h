// Weights on their way from the model's file into the forms that library kernels read. That is done last: until then
// there are only addresses for them, and what compiles has the memory.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "base/memory.h"
#include "ir/module.h"

namespace selkie::compiler {

// Of weights that are copied or packed some at a time.
inline constexpr size_t piece_bytes = size_t{1} << 20;

struct ElementRange {
  size_t first, count;
};
ElementRange whole(const ir::Constant& constant);

// Weights of f32 as the model has them. They do not need the module, and can wait for their time if a file has them.
class WeightSource {
 public:
  WeightSource(const ir::Constant& constant, ElementRange range);

  // Those that lie in their file as no floats can are copied into `room`.
  const float* bring_in(Room& room) const;
  // What holds them in their file.
  void give_back() const;
  size_t elements() const { return count_; }
  bool can_wait() const { return file_ != nullptr; }

 private:
  std::optional<Tensor> in_memory_;
  size_t first_ = 0;
  size_t count_;
  std::span<const std::byte> raw_;
  std::shared_ptr<const MappedFile> file_;
  bool is_aligned_;
};

class Packings {
 public:
  // pack(these weights as the model has them), later, which fills `to` or a part of it.
  void add(const Tensor& to, WeightSource weights, std::function<void(const float*)> pack);
  // The same of several; null for those that are left out.
  static constexpr size_t most_sources = 4;
  using Several = std::array<std::optional<WeightSource>, most_sources>;
  void add(const Tensor& to, Several weights, std::function<void(std::array<const float*, most_sources>)> pack);
  // A function that reads so many elements in all.
  void add(const Tensor& to, size_t elements, std::function<void()> pack);

  // Takes out what fills some of these tensors, so that it is done later, even when the module is gone. Those that
  // cannot wait stay.
  using Later = std::map<const std::byte*, std::vector<std::function<void()>>>;
  Later take(const std::set<const std::byte*>& tensors);
  // All of them, on so many threads. The module's constants must still be there.
  void run(int threads);

 private:
  struct Packing {
    const std::byte* to;
    size_t elements;  // that it reads
    bool can_wait;
    std::function<void()> run;
  };
  std::vector<Packing> packings_;
};

// A constant that kernels read as the model has it, once the packings have run. It stays in its file where it lies
// there as they need it and is large: each of many small ones would hold the pages around it, too.
Tensor stored_constant(const ir::Constant& constant, Slab& slab, Packings& packings);

}  // namespace selkie::compiler
