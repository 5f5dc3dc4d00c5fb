// Machine code on disk, by the text of the kernels that it was compiled from. Processes may share a folder: entries
// appear whole under their name, and one that is damaged, or another's with the same name, is as good as none.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "program/image.h"

namespace selkie::driver {

class CodeCache {
 public:
  // The folder is made when something is stored. Files together have at most so many bytes: those that were not used
  // for the longest time go first.
  CodeCache(std::string folder, uint64_t most_bytes) : folder_(std::move(folder)), most_bytes_(most_bytes) {}

  // The key is all that the code depends on.
  std::optional<program::Image> find(std::string_view key) const;
  // A folder that cannot be written is not an error: the code is compiled again.
  void store(std::string_view key, const program::Image& image) const;

 private:
  void evict() const;

  std::string folder_;
  uint64_t most_bytes_;
};

// "selkie" in the user's folder for caches (XDG); empty if there is none.
std::string user_cache_folder();
// The same folder, made if it is not there; a user error if it cannot be used.
std::string usable_cache_folder(const std::string& folder);

}  // namespace selkie::driver
