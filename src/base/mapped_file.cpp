#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
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

namespace {

// Advice cannot fail: without it things are slower or larger.
void advise(std::span<const std::byte> bytes, int advice, bool whole_pages) {
  auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  auto begin = reinterpret_cast<uintptr_t>(bytes.data());
  uintptr_t end = begin + bytes.size();
  begin = whole_pages ? (begin + page - 1) / page * page : begin / page * page;
  end = whole_pages ? end / page * page : end;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, advice);
}

}  // namespace

void MappedFile::expect(std::span<const std::byte> bytes) const {
#ifdef MADV_POPULATE_READ
  advise(bytes, MADV_POPULATE_READ, false);
#else
  advise(bytes, MADV_WILLNEED, false);
#endif
}

void MappedFile::release(std::span<const std::byte> bytes) const { advise(bytes, MADV_DONTNEED, true); }

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace selkie
