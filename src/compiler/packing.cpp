#include "compiler/packing.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <thread>

#include "base/error.h"
#include "base/mapped_file.h"

namespace selkie::compiler {

ElementRange whole(const ir::Constant& constant) {
  return {.first = 0, .count = static_cast<size_t>(element_count(constant.dims))};
}

Weights::Weights(const ir::Constant& constant, ElementRange range, Room& room) : file_(constant.file.get()) {
  if (constant.in_memory) {
    data_ = constant.in_memory->data<float>() + range.first;
    return;
  }
  CHECK((range.first + range.count) * sizeof(float) <= constant.raw.size(), "constant @{}", constant.value.name);
  raw_ = constant.raw.subspan(range.first * sizeof(float), range.count * sizeof(float));
  if (is_aligned(constant)) {
    if (file_ != nullptr) file_->expect(raw_);
    data_ = reinterpret_cast<const float*>(raw_.data());
    return;
  }
  std::byte* copy = room.provide(raw_.size());
  copy_to(copy);
  data_ = reinterpret_cast<const float*>(copy);
}

Weights::~Weights() {
  if (file_ != nullptr) file_->release(raw_);
}

bool Weights::is_aligned(const ir::Constant& constant) {
  return constant.in_memory || reinterpret_cast<uintptr_t>(constant.raw.data()) % alignof(float) == 0;
}

// Piece by piece, and what was copied is given back, so that large weights are not in memory once more.
void Weights::copy_to(std::byte* room) const {
  for (size_t at = 0; at < raw_.size(); at += piece_bytes) {
    std::span<const std::byte> part = raw_.subspan(at, std::min(piece_bytes, raw_.size() - at));
    if (file_ != nullptr) file_->expect(part);
    std::memcpy(room + at, part.data(), part.size());
    if (file_ != nullptr) file_->release(part);
  }
}

void Packings::add(const ir::Constant& weights, ElementRange range, std::function<void(const float*)> pack) {
  packings_.push_back({.room = Weights::is_aligned(weights) ? 0 : range.count,
                       .run = [constant = &weights, range, pack = std::move(pack)](Room& room) {
                         pack(Weights(*constant, range, room).data());
                       }});
}

void Packings::add(size_t elements, std::function<void()> pack) {
  packings_.push_back({.room = elements, .run = [pack = std::move(pack)](Room&) { pack(); }});
}

// Those that need most room come first, while there are few packed ones.
void Packings::run(int threads) {
  std::ranges::stable_sort(packings_, std::greater(), &Packing::room);
  std::atomic<size_t> next = 0;
  std::vector<std::exception_ptr> errors(packings_.size());
  auto work = [&] {
    Room room;
    for (size_t i = next++; i < packings_.size(); i = next++) try {
        packings_[i].run(room);
      } catch (...) {
        errors[i] = std::current_exception();
      }
  };
  {
    std::vector<std::jthread> helpers;
    auto most = static_cast<size_t>(std::max(threads, 1));
    for (size_t i = 1; i < std::min(packings_.size(), most); ++i) helpers.emplace_back(work);
    work();
  }
  packings_.clear();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace selkie::compiler
