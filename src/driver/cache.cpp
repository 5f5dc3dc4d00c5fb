#include "driver/cache.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include "program/checksum.h"
#include "program/fields.h"

namespace selkie::driver {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view magic = "selkie code 1\n";

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

// Two keys of one name are told apart by the key, which an entry holds.
fs::path path_of(const std::string& folder, std::string_view key) {
  return fs::path(folder) / fmt::format("{:016x}.code", program::checksum(bytes_of(key)));
}

std::string to_entry(std::string_view key, const program::Image& image) {
  program::Writer content;
  content(std::string(key), image);
  program::Writer sum;
  sum(program::checksum(bytes_of(content.bytes())));
  return std::string(magic) + std::string(sum.bytes()) + std::string(content.bytes());
}

std::optional<program::Image> from_entry(std::string_view entry, std::string_view key) {
  if (!entry.starts_with(magic)) return std::nullopt;
  uint64_t sum = 0;
  std::string found;
  program::Image image;
  try {
    program::Reader reader(bytes_of(entry.substr(magic.size())), "an entry of the cache");
    reader(sum);
    std::string_view content = entry.substr(magic.size() + sizeof(sum));
    if (sum != program::checksum(bytes_of(content))) return std::nullopt;
    reader(found, image);
    reader.expect_end();
  } catch (const Error&) {
    return std::nullopt;
  }
  if (found != key) return std::nullopt;
  return image;
}

// A name that no other process or thread writes to.
fs::path partial_of(const fs::path& path) {
  static std::atomic<uint64_t> count = 0;
  fs::path partial = path;
  partial += fmt::format(".{}.{}.partial", getpid(), count++);
  return partial;
}

struct Entry {
  fs::path path;
  fs::file_time_type used;
  uint64_t bytes;
};

// What a process that ended too early left behind is listed, too, and goes when it is old.
std::vector<Entry> entries(const std::string& folder) {
  std::vector<Entry> list;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() != ".code" && at->path().extension() != ".partial") continue;
    std::error_code gone;
    Entry entry{.path = at->path(), .used = at->last_write_time(gone), .bytes = 0};
    if (!gone) entry.bytes = at->file_size(gone);
    if (!gone) list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace

std::optional<program::Image> CodeCache::find(std::string_view key) const {
  fs::path path = path_of(folder_, key);
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  std::string entry{std::istreambuf_iterator<char>(in), {}};
  std::optional<program::Image> image = from_entry(entry, key);
  std::error_code ignored;
  if (image) fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);
  return image;
}

void CodeCache::store(std::string_view key, const program::Image& image) const {
  std::string entry = to_entry(key, image);
  if (entry.size() > most_bytes_) return;
  std::error_code error;
  if (fs::create_directories(folder_, error)) fs::permissions(folder_, fs::perms::owner_all, error);
  fs::path path = path_of(folder_, key);
  fs::path partial = partial_of(path);
  std::ofstream out(partial, std::ios::binary);
  out.write(entry.data(), static_cast<std::streamsize>(entry.size()));
  out.close();
  error = {};
  if (out) fs::rename(partial, path, error);
  if (!out || error) {
    fs::remove(partial, error);
    return;
  }
  evict();
}

void CodeCache::evict() const {
  std::vector<Entry> list = entries(folder_);
  std::ranges::sort(list, {}, &Entry::used);
  uint64_t total = 0;
  for (const Entry& entry : list) total += entry.bytes;
  for (const Entry& entry : list) {
    if (total <= most_bytes_) return;
    std::error_code ignored;
    fs::remove(entry.path, ignored);
    total -= entry.bytes;
  }
}

// The XDG base directory specification: a relative path is to be ignored.
std::string user_cache_folder() {
  const char* given = std::getenv("XDG_CACHE_HOME");
  if (given != nullptr && fs::path(given).is_absolute()) return fs::path(given) / "selkie";
  const char* home = std::getenv("HOME");
  if (home != nullptr && fs::path(home).is_absolute()) return fs::path(home) / ".cache" / "selkie";
  return {};
}

std::string usable_cache_folder(const std::string& folder) {
  std::error_code error;
  // What it holds is run, so it is for its owner alone.
  if (fs::create_directories(folder, error)) fs::permissions(folder, fs::perms::owner_all, error);
  if (error || !fs::is_directory(folder, error)) fail("cannot use '{}' as a cache folder", folder);
  return folder;
}

}  // namespace selkie::driver
