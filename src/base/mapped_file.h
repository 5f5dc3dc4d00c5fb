// A file mapped read-only into memory, shared by everything that points into it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace selkie {

class MappedFile {
 public:
  // Fails with the system's reason if the file cannot be mapped.
  static std::shared_ptr<const MappedFile> open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }
  // These bytes will be read at once: they are brought in together.
  void expect(std::span<const std::byte> bytes) const;
  // They will hardly be read again: the memory that holds them is given back.
  void release(std::span<const std::byte> bytes) const;

 private:
  MappedFile() = default;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  std::string path_;
};

}  // namespace selkie
