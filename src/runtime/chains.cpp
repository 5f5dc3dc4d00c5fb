#include "runtime/chains.h"

#include <algorithm>

#include "kernels/chain.h"
#include "program/uses.h"
#include "runtime/profile.h"

namespace selkie::runtime {
namespace {

// Sizes of code that may not run need not mean anything.
bool is_sensible(const kernels::ConvolutionShape& s) {
  constexpr int64_t most = int64_t{1} << 24;
  auto is_size = [](int64_t size) { return size > 0 && size <= most; };
  auto is_pad = [](int64_t size) { return size >= 0 && size <= most; };
  return is_size(s.batch) && std::ranges::all_of(s.input, is_size) && std::ranges::all_of(s.output, is_size) &&
         std::ranges::all_of(s.pad, is_pad);
}

}  // namespace

Chains::Chains(const program::Program& program) : program_(program), all_(program::find_chains(program)) {}

std::vector<program::Chain> Chains::choose(std::span<const int64_t> slots, int threads, Versions& chosen) const {
  std::vector<program::Chain> out;
  std::vector<kernels::ConvolutionShape> shapes;
  std::vector<kernels::ConvolutionVersion> versions;
  for (const program::Chain& chain : all_) {
    shapes.clear();
    versions.clear();
    for (uint32_t i = chain.first; i <= chain.last; ++i) {
      const program::Convolution& c = program_.convolutions[program_.code[i].a];
      shapes.push_back(shape_of(c, slots));
      if (!is_sensible(shapes.back())) break;
      versions.push_back(chosen.of(c, shapes.back()));
    }
    uint32_t first = chain.first;
    for (size_t links : kernels::cut_into_chains(std::span(shapes).first(versions.size()), versions, threads)) {
      uint32_t next = first + static_cast<uint32_t>(links);
      if (links > 1) out.push_back({.first = first, .last = next - 1});
      first = next;
    }
  }
  return out;
}

std::vector<Lifetime> Chains::lifetimes(std::span<const program::Register> planned,
                                        std::span<const program::Chain> chosen) const {
  std::vector<Lifetime> all(program_.registers.size());
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = {.first = program_.registers[i].first, .last = program_.registers[i].last};
  for (const program::Chain& chain : chosen)
    for (uint32_t i = chain.first; i <= chain.last; ++i)
      program::for_each_register(program_, program_.code[i], [&](program::Register r) {
        Lifetime& life = all[program::base_of(program_, r)];
        life.first = std::min(life.first, chain.first);
        life.last = std::max(life.last, chain.last);
      });
  std::vector<Lifetime> out;
  for (program::Register r : planned) out.push_back(all[r]);
  return out;
}

std::vector<program::Register> Chains::never_stored(std::span<const program::Chain> chosen) const {
  std::vector<program::Register> out;
  for (const program::Chain& chain : chosen)
    for (uint32_t i = chain.first; i < chain.last; ++i) out.push_back(program_.convolutions[program_.code[i].a].output);
  return out;
}

}  // namespace selkie::runtime
