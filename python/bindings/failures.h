// How errors of Selkie's become exceptions of Python's: the classes of selkie.errors, with the text that the command
// line prints.
#pragma once

#include <nanobind/nanobind.h>

#include "api/failure.h"

namespace selkie::python {

// The phase says of what class an exception is.
using api::fail_input;
using api::Failure;
using api::in_phase;
using api::Phase;

// Before any other function: finds the classes.
void init_failures();

// Sets Python's error to what is being thrown; within a catch block, with the interpreter's lock held.
void set_python_error() noexcept;
}  // namespace selkie::python
