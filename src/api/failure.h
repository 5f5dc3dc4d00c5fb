// User errors with the phase that they come from: embedders tell these apart.
#pragma once

#include <exception>
#include <string>

#include "base/error.h"

namespace selkie::api {

enum class Phase { model, input, run };

struct Failure : std::exception {
  Failure(Phase p, std::string t) : phase(p), text(std::move(t)) {}
  const char* what() const noexcept override { return text.c_str(); }
  Phase phase;
  std::string text;
};

template <class... Args>
[[noreturn]] void fail_input(fmt::format_string<Args...> format, Args&&... args) {
  throw Failure(Phase::input, fmt::format(format, std::forward<Args>(args)...));
}

// What `body` throws as Selkie's user error becomes a failure of this phase; a limit that was reached stays one.
template <class Body>
auto in_phase(Phase phase, Body body) {
  try {
    return body();
  } catch (const LimitError&) {
    throw;
  } catch (const Error& error) {
    throw Failure(phase, error.what());
  }
}

}  // namespace selkie::api
