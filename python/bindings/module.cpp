// selkie._core: the module that the package `selkie` is written on.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "api/reports.h"
#include "driver/cache.h"
#include "failures.h"
#include "header.h"
#include "model.h"
#include "program/file.h"

namespace nb = nanobind;

namespace selkie::python {
namespace {

// model(…) by the type's own slot: nothing is looked up, and no arguments are taken apart twice.
PyObject* call(PyObject* self, PyObject* arguments, PyObject* keywords) {
  try {
    return nb::inst_ptr<Model>(nb::handle(self))->call(arguments, keywords).release().ptr();
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}
const PyType_Slot model_slots[] = {{Py_tp_call, reinterpret_cast<void*>(call)}, {0, nullptr}};

driver::Options options_of(const nb::dict& given) {
  auto number = [&](const char* name) { return nb::cast<int64_t>(given[name]); };
  driver::Options options;
  options.compiler.exact = nb::cast<bool>(given["exact"]);
  options.compiler.without = nb::cast<std::vector<std::string>>(given["without"]);
  options.threads = static_cast<int>(number("compile_threads"));
  options.host.seed = static_cast<uint64_t>(number("seed"));
  options.host.memory_limit = number("memory_limit");
  if (number("trip_limit") > 0) options.host.limits.loop_trips = number("trip_limit");
  if (number("item_limit") > 0) options.host.limits.sequence_items = number("item_limit");
  options.host.limits.seconds = nb::cast<double>(given["time_limit"]);
  options.cache_bytes = static_cast<uint64_t>(number("cache_bytes"));
  if (options.cache_bytes == 0) return options;
  if (std::string folder = nb::cast<std::string>(given["cache_dir"]); !folder.empty())
    options.cache_folder = driver::usable_cache_folder(folder);
  else
    options.cache_folder = driver::user_cache_folder();
  return options;
}

void make_model(Model* self, const std::string& path, const nb::object& bytes, const std::vector<std::string>& facts,
                const nb::dict& options) {
  api::Source source{
      .path = path, .folder = nb::cast<std::string>(options["folder"]), .facts = facts, .options = options_of(options)};
  new (self) Model(std::move(source), bytes, nb::cast<int>(options["threads"]), nb::cast<size_t>(options["contexts"]),
                   nb::cast<bool>(options["keep_source"]));
}

// Reports are made without the interpreter's lock.
template <class Report>
auto without_lock(Report report) {
  nb::gil_scoped_release unlocked;
  return report();
}

nb::tuple explain(const Model& model, const driver::Sizes& sizes) {
  api::Explanation made = without_lock([&] { return api::explain(model.source(), sizes); });
  return nb::make_tuple(made.text, made.json);
}

std::string explain_node(const Model& model, const std::string& node) {
  return without_lock([&] { return api::explain_node(model.source(), node); });
}

std::string explain_page(const Model& model, const std::string& title) {
  return without_lock([&] { return api::explain_page(model.source(), title); });
}

nb::tuple plan(const Model& model, const driver::Sizes& sizes, const std::string& title) {
  api::Plan made = without_lock([&] { return api::plan(model.source(), sizes, title); });
  return nb::make_tuple(made.text, made.json, made.svg);
}

nb::dict counts(const Model& model) {
  nb::dict out;
  out["nodes"] = model.built().nodes;
  out["kernels"] = model.built().kernels;
  out["host_calls"] = model.built().host_calls;
  out["code_bytes"] = model.built().image.code.size();
  out["code_is_cached"] = model.built().code_is_cached;
  return out;
}

}  // namespace
}  // namespace selkie::python

NB_MODULE(_core, m) {
  using namespace selkie;
  using namespace selkie::python;
  init_failures();
  init_arrays();
  m.attr("__version__") = SELKIE_VERSION;
  m.def("forget_contexts", &Contexts::begin_child);
  m.def("is_artifact", [](const std::string& path) { return program::is_artifact(path); }, nb::arg("path"));
  m.def("header", &header, nb::arg("path"), nb::arg("bytes").none());
  nb::class_<Model>(m, "Model", nb::type_slots(model_slots))
      .def("__init__", &make_model, nb::arg("path"), nb::arg("bytes").none(), nb::arg("facts"), nb::arg("options"))
      .def("_run", &Model::run_named, nb::arg("feeds"), nb::arg("names").none())
      .def("_profile", &Model::profile, nb::arg("inputs"), nb::arg("named"), nb::arg("runs"))
      .def("_record", &Model::record)
      .def("_recorded", &Model::recorded)
      .def("_save", &Model::save, nb::arg("path"))
      .def("_ports", &Model::ports, nb::arg("outputs"))
      .def("_counts", &counts)
      .def("_explain", &explain, nb::arg("sizes"))
      .def("_explain_node", &explain_node, nb::arg("node"))
      .def("_explain_page", &explain_page, nb::arg("title"))
      .def("_plan", &plan, nb::arg("sizes"), nb::arg("title"));
}
