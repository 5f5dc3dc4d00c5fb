#include "failures.h"

#include <array>
#include <new>

namespace nb = nanobind;

namespace selkie::python {
namespace {

// Classes live as long as the interpreter.
struct Classes {
  PyObject* base = nullptr;
  PyObject* limit = nullptr;
  std::array<PyObject*, 3> phases{};
};
Classes classes;

}  // namespace

void init_failures() {
  nb::module_ module = nb::module_::import_("selkie.errors");
  auto find = [&](const char* name) { return nb::object(module.attr(name)).release().ptr(); };
  classes = {.base = find("Error"),
             .limit = find("LimitError"),
             .phases = {find("ModelError"), find("InputError"), find("RunError")}};
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Failure&) {
      set_python_error();
    } catch (const Error&) {
      set_python_error();
    }
  });
}

void set_python_error() noexcept {
  try {
    throw;
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const Failure& failure) {
    PyErr_SetString(classes.phases[static_cast<size_t>(failure.phase)], failure.what());
  } catch (const LimitError& error) {
    PyErr_SetString(classes.limit, error.what());
  } catch (const Error& error) {
    PyErr_SetString(classes.base, error.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_Format(PyExc_SystemError, "internal error: %s. This is a bug in Selkie. Please report it.", error.what());
  }
}

}  // namespace selkie::python
