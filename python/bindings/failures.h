// How errors of Selkie's become exceptions of Python's: the classes of selkie.errors, with the text that the command
// line prints.
#pragma once

#include <nanobind/nanobind.h>

#include <exception>
#include <string>

namespace selkie::python {

enum class Phase { model, input, run };

// A user error with the phase that it comes from, which says of what class its exception is.
struct Failure : std::exception {
  Failure(Phase p, std::string t) : phase(p), text(std::move(t)) {}
  const char* what() const noexcept override { return text.c_str(); }
  Phase phase;
  std::string text;
};

// Before any other function: finds the classes.
void init_failures();

// Sets Python's error to what is being thrown; within a catch block, with the interpreter's lock held.
void set_python_error() noexcept;

// What `body` throws as Selkie's user error becomes a failure of this phase; a limit that was reached stays one.
template <class Body>
auto in_phase(Phase phase, Body body);

}  // namespace selkie::python

#include "base/error.h"

namespace selkie::python {

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

}  // namespace selkie::python
