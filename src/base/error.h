// User errors and bug reports. A user error is thrown as selkie::Error with a chain of notes; a bug stops the process.
#pragma once

#include <fmt/core.h>

#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace selkie {

// Something the user gave us is wrong: a model, a shape, a file, an option.
// The message says what; notes say where, innermost first.
class Error : public std::exception {
 public:
  explicit Error(std::string message) : message_(std::move(message)), full_(message_) {}

  // Of a long chain, as recursion makes it, only the innermost notes are kept.
  Error& note(const std::string& text) {
    constexpr int most = 20;
    if (notes_ < most) full_ += "\n  " + text;
    if (notes_ == most) full_ += "\n  …";
    ++notes_;
    return *this;
  }
  const char* what() const noexcept override { return full_.c_str(); }
  const std::string& message() const { return message_; }

 private:
  std::string message_;
  std::string full_;
  int notes_ = 0;
};

// A limit of ours was reached, such as the size of a symbolic expression or 64 bits. Where a weaker answer serves, the
// caller catches this one and goes on with that.
class LimitError : public Error {
 public:
  using Error::Error;
};

template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
[[noreturn]] void fail_limit(fmt::format_string<Args...> format, Args&&... args) {
  throw LimitError(fmt::format(format, std::forward<Args>(args)...));
}

// The exit code of a process that found a bug of its own.
inline constexpr int bug_exit_code = 70;

[[noreturn]] void report_bug(const char* file, int line, const char* condition, const std::string& detail);

}  // namespace selkie

// An invariant of ours: if it does not hold, Selkie has a bug, whatever the input was.
#define CHECK(condition, ...)                                                                              \
  do {                                                                                                     \
    if (!(condition)) ::selkie::report_bug(__FILE__, __LINE__, #condition, ::fmt::format("" __VA_ARGS__)); \
  } while (false)
