#include "compiler/packing.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <thread>

#include "base/error.h"
#include "base/mapped_file.h"

namespace selkie::compiler {

namespace {

bool is_aligned(const ir::Constant& constant) {
  size_t alignment = constant.dtype == DType::c128 ? sizeof(double) : element_size(constant.dtype);
  return constant.in_memory || reinterpret_cast<uintptr_t>(constant.raw.data()) % alignment == 0;
}

constexpr size_t neighbourhood = size_t{64} << 10;  // of a page, which the system brings in with it

// With what came in beside them: of many small constants that is most of a file.
void release_around(const MappedFile& file, std::span<const std::byte> bytes) {
  std::span<const std::byte> all = file.bytes();
  auto begin = static_cast<size_t>(bytes.data() - all.data());
  size_t end = std::min(begin + bytes.size() + neighbourhood, all.size());
  begin -= std::min(begin, neighbourhood);
  file.release(all.subspan(begin, end - begin));
}

// Piece by piece, and what was copied is given back, so that large weights are not in memory once more.
void move_out(const MappedFile* file, std::span<const std::byte> raw, std::byte* to) {
  for (size_t at = 0; at < raw.size(); at += piece_bytes) {
    std::span<const std::byte> part = raw.subspan(at, std::min(piece_bytes, raw.size() - at));
    if (file != nullptr) file->expect(part);
    std::memcpy(to + at, part.data(), part.size());
    if (file != nullptr) release_around(*file, part);
  }
}

}  // namespace

ElementRange whole(const ir::Constant& constant) {
  return {.first = 0, .count = static_cast<size_t>(element_count(constant.dims))};
}

WeightSource::WeightSource(const ir::Constant& constant, ElementRange range)
    : in_memory_(constant.in_memory), count_(range.count), file_(constant.file), is_aligned_(is_aligned(constant)) {
  if (in_memory_) {
    first_ = range.first;
    return;
  }
  CHECK((range.first + range.count) * sizeof(float) <= constant.raw.size(), "constant @{}", constant.value.name);
  raw_ = constant.raw.subspan(range.first * sizeof(float), range.count * sizeof(float));
}

const float* WeightSource::bring_in(Room& room) const {
  if (in_memory_) return in_memory_->data<float>() + first_;
  if (is_aligned_) {
    if (file_ != nullptr) file_->expect(raw_);
    return reinterpret_cast<const float*>(raw_.data());
  }
  std::byte* copy = room.provide(raw_.size());
  move_out(file_.get(), raw_, copy);
  return reinterpret_cast<const float*>(copy);
}

void WeightSource::give_back() const {
  if (file_ != nullptr && !raw_.empty()) release_around(*file_, raw_);
}

void Packings::add(const Tensor& to, WeightSource weights, std::function<void(const float*)> pack) {
  add(to, Several{std::move(weights)}, [pack = std::move(pack)](auto given) { pack(given[0]); });
}

void Packings::add(const Tensor& to, Several weights,
                   std::function<void(std::array<const float*, most_sources>)> pack) {
  Packing packing{.to = to.bytes(), .elements = 0, .can_wait = true, .run = {}};
  for (const std::optional<WeightSource>& source : weights) {
    if (!source) continue;
    packing.elements += source->elements();
    packing.can_wait &= source->can_wait();
  }
  packing.run = [weights = std::move(weights), pack = std::move(pack)] {
    std::array<Room, most_sources> rooms;
    std::array<const float*, most_sources> data{};
    for (size_t i = 0; i < most_sources; ++i)
      if (weights[i]) data[i] = weights[i]->bring_in(rooms[i]);
    pack(data);
    for (const std::optional<WeightSource>& source : weights)
      if (source) source->give_back();
  };
  packings_.push_back(std::move(packing));
}

void Packings::add(const Tensor& to, size_t elements, std::function<void()> pack) {
  packings_.push_back({.to = to.bytes(), .elements = elements, .can_wait = false, .run = std::move(pack)});
}

Packings::Later Packings::take(const std::set<const std::byte*>& tensors) {
  std::set<const std::byte*> chosen = tensors;
  for (const Packing& packing : packings_)
    if (!packing.can_wait) chosen.erase(packing.to);
  Later out;
  std::erase_if(packings_, [&](Packing& packing) {
    if (!chosen.contains(packing.to)) return false;
    out[packing.to].push_back(std::move(packing.run));
    return true;
  });
  return out;
}

// What a packing reads is in memory meanwhile: those that read most come first, while there are few packed ones.
void Packings::run(int threads) {
  std::ranges::stable_sort(packings_, std::greater(), &Packing::elements);
  std::atomic<size_t> next = 0;
  std::vector<std::exception_ptr> errors(packings_.size());
  auto work = [&] {
    for (size_t i = next++; i < packings_.size(); i = next++) try {
        packings_[i].run();
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

Tensor stored_constant(const ir::Constant& constant, Slab& slab, Packings& packings) {
  bool is_small = constant.raw.size() < neighbourhood;
  if (constant.in_memory || is_sub_byte(constant.dtype) || (is_aligned(constant) && !is_small))
    return constant.tensor();
  Tensor copy = is_small ? Tensor(constant.dtype, constant.dims) : slab.tensor(constant.dtype, constant.dims);
  packings.add(
      copy, static_cast<size_t>(copy.count()),
      [file = constant.file.get(), raw = constant.raw, to = copy.mutable_bytes()] { move_out(file, raw, to); });
  return copy;
}

}  // namespace selkie::compiler
