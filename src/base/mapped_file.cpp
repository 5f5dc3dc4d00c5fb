#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace selkie {

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) fail("cannot open '{}': {}", path, std::strerror(errno));
  struct stat status{};
  bool regular = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
  void* memory = nullptr;
  if (regular && status.st_size > 0)
    memory = mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
  int error = errno;
  close(fd);
  if (!regular) fail("cannot read '{}': not a regular file", path);
  if (memory == MAP_FAILED) fail("cannot map '{}': {}", path, std::strerror(error));
  auto file = std::shared_ptr<MappedFile>(new MappedFile);
  file->data_ = static_cast<const std::byte*>(memory);
  file->size_ = static_cast<size_t>(status.st_size);
  file->path_ = path;
  return file;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace selkie
