#include "base/code_pages.h"

#ifdef __linux__
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <cstdint>
#include <span>

namespace selkie {

#ifdef __linux__
namespace {

size_t page_size() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

struct Range {
  std::byte* begin;
  size_t pages;
};

// What is loaded and never written of the object that this very code lies in.
int collect_ranges(dl_phdr_info* object, size_t, void* found) {
  std::vector<Range> ranges;
  bool is_ours = false;
  auto own = reinterpret_cast<uintptr_t>(&collect_ranges);
  for (const ElfW(Phdr) & header : std::span(object->dlpi_phdr, object->dlpi_phnum)) {
    if (header.p_type != PT_LOAD || (header.p_flags & PF_W) != 0) continue;
    uintptr_t begin = (object->dlpi_addr + header.p_vaddr) / page_size() * page_size();
    uintptr_t end = object->dlpi_addr + header.p_vaddr + header.p_memsz;
    is_ours |= own >= begin && own < end;
    ranges.push_back(
        {.begin = reinterpret_cast<std::byte*>(begin), .pages = (end - begin + page_size() - 1) / page_size()});
  }
  if (!is_ours) return 0;
  *static_cast<std::vector<Range>*>(found) = std::move(ranges);
  return 1;
}

// Which pages are in memory as their file has them; none where the system does not tell. A page that was written, as
// debuggers do, is not the file's any more.
std::vector<bool> pages_in_memory(const Range& range) {
  constexpr uint64_t is_present = uint64_t{1} << 63;
  constexpr uint64_t is_of_file = uint64_t{1} << 61;
  std::vector<uint64_t> entries(range.pages);
  std::vector<bool> out(range.pages, false);
  int map = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  if (map < 0) return out;
  size_t bytes = entries.size() * sizeof(uint64_t);
  auto at = static_cast<off_t>(reinterpret_cast<uintptr_t>(range.begin) / page_size() * sizeof(uint64_t));
  bool is_read = pread(map, entries.data(), bytes, at) == static_cast<ssize_t>(bytes);
  close(map);
  if (!is_read) return out;
  for (size_t i = 0; i < entries.size(); ++i) out[i] = (entries[i] & is_present) != 0 && (entries[i] & is_of_file) != 0;
  return out;
}

std::vector<Range> own_ranges() {
  std::vector<Range> ranges;
  dl_iterate_phdr(collect_ranges, &ranges);
  return ranges;
}

}  // namespace

CodePages::CodePages() {
  for (const Range& range : own_ranges()) segments_.push_back({.begin = range.begin, .before = pages_in_memory(range)});
}

void CodePages::give_back_new_ones() const {
  for (const Segment& segment : segments_) {
    size_t pages = segment.before.size();
    std::vector<bool> now = pages_in_memory({.begin = segment.begin, .pages = pages});
    auto is_new = [&](size_t i) { return now[i] && !segment.before[i]; };
    for (size_t i = 0; i < pages; ++i) {
      size_t first = i;
      while (i < pages && is_new(i)) ++i;
      if (i > first) madvise(segment.begin + first * page_size(), (i - first) * page_size(), MADV_DONTNEED);
    }
  }
}

size_t code_pages_in_memory() {
  size_t count = 0;
  for (const Range& range : own_ranges())
    count += static_cast<size_t>(std::ranges::count(pages_in_memory(range), true));
  return count;
}
#else
CodePages::CodePages() = default;
void CodePages::give_back_new_ones() const {}
size_t code_pages_in_memory() { return 0; }
#endif

}  // namespace selkie
