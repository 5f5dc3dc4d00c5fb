// What every function of the C API does the same way: handles and structs of the caller's are checked, and no exception
// leaves.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>
#include <string>

#include "base/error.h"
#include "selkie/selkie.h"

namespace selkie::api {

// A call that ends with a status of its own.
struct Refusal : std::exception {
  Refusal(selkie_status s, std::string t) : status(s), text(std::move(t)) {}
  const char* what() const noexcept override { return text.c_str(); }
  selkie_status status;
  std::string text;
};

// The API was not used as its header says.

template <class... Args>
[[noreturn]] void misuse(fmt::format_string<Args...> format, Args&&... args) {
  throw Refusal(SELKIE_INVALID_ARGUMENT, fmt::format(format, std::forward<Args>(args)...));
}

// The status of what is being thrown, whose text becomes the thread's last error; within a catch block.
// `of_error` is that of a user error that does not say where it comes from.
selkie_status status_of_thrown(selkie_status of_error) noexcept;

template <class Body>
selkie_status guarded(selkie_status of_error, Body body) noexcept {
  try {
    body();
    return SELKIE_OK;
  } catch (...) {
    return status_of_thrown(of_error);
  }
}

// What handles begin with, so that one of another type, and often a freed one, is noticed.
struct Handle {
  explicit Handle(uint64_t kind) : tag(kind) {}
  ~Handle() { *const_cast<volatile uint64_t*>(&tag) = 0; }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  uint64_t tag;
};

template <class H>
bool is_live(const H* handle) {
  return handle != nullptr && handle->tag == H::kind;
}

template <class H>
H& require(H* handle, const char* argument) {
  if (handle == nullptr) misuse("{} is NULL", argument);
  if (!is_live(handle)) misuse("{} is no {}, or was freed", argument, H::name);
  return *handle;
}

// Where a result goes; it is NULL until there is one.
template <class T>
T*& require_result(T** result, const char* argument) {
  if (result == nullptr) misuse("{} is NULL", argument);
  *result = nullptr;
  return *result;
}

// Counts that no caller means are those of memory that was never set.
inline constexpr size_t most_listed = 1'000'000;

template <class T>
std::span<const T> require_list(const T* items, size_t count, const char* argument) {
  if (items == nullptr && count > 0) misuse("{} is NULL, but is to have {} items", argument, count);
  if (count > most_listed) misuse("{} has {} items, more than {}", argument, count, most_listed);
  return {items, count};
}

inline std::string require_text(const char* text, const char* argument) {
  if (text == nullptr) misuse("{} is NULL", argument);
  return text;
}

template <class S>
size_t size_of_struct(const S* given, const char* type) {
  constexpr size_t most = 4096;
  if (given->size < sizeof(size_t) || given->size % sizeof(size_t) != 0 || given->size > most)
    misuse("the size of {} is {}, but must be sizeof({})", type, given->size, type);
  return given->size;
}

// A caller's struct of this version of the header, or of an older or newer one; defaults if it is NULL.
template <class S>
S read_struct(const S* given, const char* type) {
  S read{};
  if (given == nullptr) return read;
  size_t size = size_of_struct(given, type);
  std::memcpy(&read, given, std::min(size, sizeof(S)));
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  for (size_t i = sizeof(S); i < size; ++i)
    if (bytes[i] != 0) misuse("{} has fields that version {} of the library does not know", type, selkie_version());
  return read;
}

// Fills as much of a caller's struct as it has; what only a newer version has is 0.
template <class S>
void write_struct(S made, S* to, const char* type) {
  if (to == nullptr) misuse("there is no {} to fill", type);
  made.size = size_of_struct(to, type);
  if (made.size > sizeof(S)) std::memset(reinterpret_cast<unsigned char*>(to) + sizeof(S), 0, made.size - sizeof(S));
  std::memcpy(to, &made, std::min(made.size, sizeof(S)));
}

}  // namespace selkie::api
