// A compiled model as Python holds it.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "api/checked_run.h"
#include "api/source.h"
#include "arrays.h"
#include "contexts.h"
#include "runtime/profile.h"

namespace selkie::python {

class Model {
 public:
  // Imports and compiles, or loads. `keeps_source`: bytes are held for reports.
  Model(api::Source source, nanobind::object bytes, int threads, size_t contexts, bool keeps_source);

  // model(x, y), model({"a": x, "b": y}), model(a=x, b=y), each also with out=. One output is returned as it is,
  // several as a tuple.
  nanobind::object call(PyObject* arguments, PyObject* keywords);
  // All outputs, or those that are named, in a list.
  nanobind::object run_named(const nanobind::dict& feeds, const nanobind::object& names);
  // What each kernel took, as a table, and as Chrome's trace events.
  nanobind::object profile(const nanobind::tuple& arguments, const nanobind::dict& keywords, int runs);
  // From now on runs are recorded; `recorded` ends it and gives rows of (begin and end in nanoseconds of the steady
  // clock, kind, node, shape, operations, bytes), one for each kernel of each run.
  void record();
  nanobind::list recorded();
  void save(const std::string& path);

  const driver::Built& built() const { return built_; }
  const api::Source& source() const { return source_; }
  // (name, type's text, kind, dtype's name, dims or None) of each.
  nanobind::list ports(bool outputs) const;

 private:
  struct Port {
    std::string name;
    ir::Type type;
    nanobind::object key;  // the name, interned
  };
  std::vector<HostValue> bind(PyObject* arguments, PyObject* keywords, PyObject* ignored, Kept& kept);
  void bind_names(PyObject* feeds, std::vector<PyObject*>& given, PyObject* ignored) const;
  size_t find_input(PyObject* name) const;
  std::vector<HostValue> run(std::span<const HostValue> inputs);
  std::vector<HostValue> recorded_run(runtime::Context& context, std::span<const HostValue> inputs);
  nanobind::object write_outputs(const std::vector<HostValue>& outputs, PyObject* out) const;

  api::Source source_;
  nanobind::object bytes_;  // that the source points into
  driver::Built built_;
  std::vector<Port> inputs_, outputs_;
  std::unique_ptr<Foreign> foreign_;
  std::unique_ptr<Contexts> contexts_;
  std::unique_ptr<api::DeclaredInputs> declared_;
  std::atomic<bool> records_ = false;
  std::mutex recording_;
  runtime::Profile recorded_;  // by several threads
};

}  // namespace selkie::python
