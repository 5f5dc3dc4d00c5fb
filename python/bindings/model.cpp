#include "model.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <algorithm>
#include <iterator>

#include "driver/artifact.h"
#include "failures.h"
#include "kernels/roofs.h"

namespace nb = nanobind;

namespace selkie::python {
namespace {

nb::object interned(const std::string& text) {
  nb::str made(text.c_str(), text.size());
  PyObject* object = made.release().ptr();
  PyUnicode_InternInPlace(&object);
  return nb::steal(object);
}

std::string text_of(PyObject* object) { return nb::str(nb::borrow(object)).c_str(); }

// While it lives, runs of the context are recorded.
class Recording {
 public:
  Recording(runtime::Context& context, runtime::Profile& profile) : context_(context) { context.record_to(&profile); }
  ~Recording() { context_.record_to(nullptr); }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

 private:
  runtime::Context& context_;
};

}  // namespace

Model::Model(api::Source source, nb::object bytes, int threads, size_t contexts, bool keeps_source)
    : source_(std::move(source)), bytes_(std::move(bytes)) {
  if (!bytes_.is_none())
    source_.bytes = {PyBytes_AS_STRING(bytes_.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(bytes_.ptr()))};
  {
    nb::gil_scoped_release unlocked;
    built_ = in_phase(Phase::model, [&] { return api::build(source_); });
    foreign_ = std::make_unique<Foreign>(built_.executable->program.constants);
    contexts_ = std::make_unique<Contexts>(built_.executable, threads, contexts);
    declared_ = std::make_unique<api::DeclaredInputs>(built_.declared);
  }
  const ir::Function& main = built_.declared->main();
  for (const auto& parameter : main.body.parameters)
    inputs_.push_back({.name = parameter->name, .type = parameter->type, .key = interned(parameter->name)});
  for (size_t i = 0; i < main.result_names.size(); ++i)
    outputs_.push_back(
        {.name = main.result_names[i], .type = main.result_types[i], .key = interned(main.result_names[i])});
  if (keeps_source) return;
  source_.bytes = {};
  bytes_ = nb::none();
}

size_t Model::find_input(PyObject* name) const {
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (inputs_[i].key.ptr() == name) return i;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    int is_same = PyObject_RichCompareBool(inputs_[i].key.ptr(), name, Py_EQ);
    if (is_same < 0) throw nb::python_error();
    if (is_same == 1) return i;
  }
  std::string known;
  for (const Port& port : inputs_) known += (known.empty() ? "'" : "', '") + port.name;
  fail_input("the model has no input '{}'; its inputs are {}", text_of(name), known.empty() ? "none" : known + "'");
}

void Model::bind_names(PyObject* feeds, std::vector<PyObject*>& given, PyObject* ignored) const {
  PyObject* key = nullptr;
  PyObject* value = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(feeds, &at, &key, &value) != 0;) {
    if (key == ignored) continue;
    size_t i = find_input(key);
    if (given[i] != nullptr) fail_input("input '{}' is given twice", inputs_[i].name);
    given[i] = value;
  }
}

namespace {

PyObject* out_key() {
  static PyObject* key = PyUnicode_InternFromString("out");
  return key;
}

}  // namespace

std::vector<HostValue> Model::bind(PyObject* arguments, PyObject* keywords, PyObject* ignored, Kept& kept) {
  std::vector<PyObject*> given(inputs_.size(), nullptr);
  Py_ssize_t count = PyTuple_GET_SIZE(arguments);
  PyObject* first = count == 1 ? PyTuple_GET_ITEM(arguments, 0) : nullptr;
  bool takes_map = inputs_.size() == 1 && inputs_[0].type.kind == ir::Type::Kind::map;
  if (first != nullptr && PyDict_Check(first) && !takes_map) {
    bind_names(first, given, nullptr);
  } else {
    if (static_cast<size_t>(count) > inputs_.size())
      fail_input("the model takes {} inputs, but {} are given", inputs_.size(), count);
    for (Py_ssize_t i = 0; i < count; ++i) given[static_cast<size_t>(i)] = PyTuple_GET_ITEM(arguments, i);
  }
  if (keywords != nullptr) bind_names(keywords, given, ignored);
  std::vector<HostValue> values;
  values.reserve(inputs_.size());
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Port& port = inputs_[i];
    bool may_be_absent = port.type.kind == ir::Type::Kind::opt;
    if (given[i] == nullptr && !may_be_absent)
      fail_input("input '{}' ({}) is missing", port.name, to_string(port.type));
    values.push_back(given[i] == nullptr ? HostValue(Optional{}) : to_value(given[i], port.type, port.name, kept));
  }
  return values;
}

std::vector<HostValue> Model::run(std::span<const HostValue> inputs) {
  declared_->check_before_run(inputs);
  Contexts::Lease context(*contexts_);
  if (records_) return recorded_run(*context, inputs);
  return api::run(*context, *declared_, inputs);
}

std::vector<HostValue> Model::recorded_run(runtime::Context& context, std::span<const HostValue> inputs) {
  runtime::Profile profile;
  Recording recording(context, profile);
  std::vector<HostValue> outputs = api::run(context, *declared_, inputs);
  std::scoped_lock lock(recording_);
  size_t room = runtime::Profile::most_events - recorded_.events.size();
  std::move(profile.events.begin(),
            profile.events.begin() + static_cast<int64_t>(std::min(room, profile.events.size())),
            std::back_inserter(recorded_.events));
  return outputs;
}

nb::object Model::call(PyObject* arguments, PyObject* keywords) {
  Kept kept;
  std::vector<HostValue> inputs = bind(arguments, keywords, out_key(), kept);
  PyObject* out = keywords == nullptr ? nullptr : PyDict_GetItem(keywords, out_key());
  std::vector<HostValue> outputs;
  {
    nb::gil_scoped_release unlocked;
    outputs = run(inputs);
  }
  if (out != nullptr && out != Py_None) return write_outputs(outputs, out);
  std::vector<const std::byte*> handed_out;
  handed_out.reserve(outputs.size());
  if (outputs.size() == 1) return to_python(outputs[0], inputs, *foreign_, handed_out);
  nb::object results = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(outputs.size())));
  for (size_t i = 0; i < outputs.size(); ++i)
    PyTuple_SET_ITEM(results.ptr(), static_cast<Py_ssize_t>(i),
                     to_python(outputs[i], inputs, *foreign_, handed_out).release().ptr());
  return results;
}

nb::object Model::write_outputs(const std::vector<HostValue>& outputs, PyObject* out) const {
  if (outputs.size() == 1 && !PyTuple_Check(out) && !PyList_Check(out)) {
    copy_into(outputs[0], out, outputs_[0].name);
    return nb::borrow(out);
  }
  nb::object all = nb::steal(PySequence_Tuple(out));
  if (!all.is_valid()) throw nb::python_error();
  if (static_cast<size_t>(PyTuple_GET_SIZE(all.ptr())) != outputs.size())
    fail_input("out has {} arrays, but the model has {} outputs", PyTuple_GET_SIZE(all.ptr()), outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i)
    copy_into(outputs[i], PyTuple_GET_ITEM(all.ptr(), static_cast<Py_ssize_t>(i)), outputs_[i].name);
  return outputs.size() == 1 ? nb::borrow(PyTuple_GET_ITEM(all.ptr(), 0)) : all;
}

nb::object Model::run_named(const nb::dict& feeds, const nb::object& names) {
  std::vector<size_t> wanted;
  if (names.is_none()) {
    for (size_t i = 0; i < outputs_.size(); ++i) wanted.push_back(i);
  } else {
    for (nb::handle name : names) {
      auto is_named = [&](const Port& port) {
        return PyObject_RichCompareBool(port.key.ptr(), name.ptr(), Py_EQ) == 1;
      };
      auto at = std::ranges::find_if(outputs_, is_named);
      if (at == outputs_.end()) fail_input("the model has no output '{}'", text_of(name.ptr()));
      wanted.push_back(static_cast<size_t>(at - outputs_.begin()));
    }
  }
  Kept kept;
  nb::object none = nb::steal(PyTuple_New(0));
  std::vector<HostValue> inputs = bind(none.ptr(), feeds.ptr(), nullptr, kept);
  std::vector<HostValue> outputs;
  {
    nb::gil_scoped_release unlocked;
    outputs = run(inputs);
  }
  std::vector<const std::byte*> handed_out;
  nb::object results = nb::steal(PyList_New(static_cast<Py_ssize_t>(wanted.size())));
  for (size_t i = 0; i < wanted.size(); ++i)
    PyList_SET_ITEM(results.ptr(), static_cast<Py_ssize_t>(i),
                    to_python(outputs[wanted[i]], inputs, *foreign_, handed_out).release().ptr());
  return results;
}

nb::object Model::profile(const nb::tuple& arguments, const nb::dict& keywords, int runs) {
  Kept kept;
  std::vector<HostValue> inputs = bind(arguments.ptr(), keywords.ptr(), nullptr, kept);
  std::string table, trace;
  {
    nb::gil_scoped_release unlocked;
    run(inputs);  // the first one makes plans and memory
    runtime::Profile profile;
    Contexts::Lease context(*contexts_);
    Recording recording(*context, profile);
    for (int i = 0; i < runs; ++i) context->run(inputs);
    double roof = kernels::fma_roof(kernels::best_isa());
    table = fmt::format("{}roof: {:.1f} GFLOP/s of one core\n", runtime::profile_table(profile, roof * 1e9), roof);
    trace = runtime::chrome_trace(profile);
  }
  return nb::make_tuple(table, trace);
}

void Model::record() { records_ = true; }

nb::list Model::recorded() {
  records_ = false;
  runtime::Profile profile;
  {
    nb::gil_scoped_release unlocked;
    std::scoped_lock lock(recording_);
    std::swap(profile, recorded_);
  }
  nb::list rows;
  for (const runtime::Profile::Event& e : profile.events)
    rows.append(
        nb::make_tuple(e.begin_ns, e.end_ns, e.work.kind, e.work.node, e.work.shape, e.work.operations, e.work.bytes));
  return rows;
}

void Model::save(const std::string& path) {
  nb::gil_scoped_release unlocked;
  driver::save(built_, path);
}

nb::list Model::ports(bool outputs) const {
  nb::list rows;
  for (const Port& port : outputs ? outputs_ : inputs_) {
    const ir::Type& type = port.type;
    nb::object dims = nb::none();
    if (type.is_tensor() && type.dims) {
      nb::list list;
      for (sym::Expr dim : *type.dims) {
        if (std::optional<int64_t> number = dim.constant())
          list.append(nb::int_(*number));
        else
          list.append(nb::str(sym::to_string(dim).c_str()));
      }
      dims = nb::tuple(list);
    }
    nb::object dtype = type.is_tensor() ? numpy_dtype(type.dtype) : nb::none();
    rows.append(nb::make_tuple(port.key, nb::str(to_string(type).c_str()), dtype, dims));
  }
  return rows;
}

}  // namespace selkie::python
