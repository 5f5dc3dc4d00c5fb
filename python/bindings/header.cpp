#include "header.h"

#include <memory>
#include <set>

#include "base/mapped_file.h"
#include "failures.h"
#include "onnx/proto.h"

namespace nb = nanobind;

namespace selkie::python {
namespace {

// By ONNX's numbers.
constexpr const char* element_types[] = {
    "undefined", "float",      "uint8",      "int8",         "uint16",         "int16",      "int32",
    "int64",     "string",     "bool",       "float16",      "double",         "uint32",     "uint64",
    "complex64", "complex128", "bfloat16",   "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz",
    "uint4",     "int4",       "float4e2m1", "float8e8m0",   "uint2",          "int2"};

std::string element_type(int64_t code) {
  return code >= 0 && code < static_cast<int64_t>(std::size(element_types)) ? element_types[code] : "undefined";
}

std::string type_text(const onnx::TypeProto& type) {
  using Kind = onnx::TypeProto::Kind;
  std::string inner = type.element ? type_text(*type.element) : "";
  switch (type.kind) {
    case Kind::tensor:
      return fmt::format("tensor({})", element_type(type.elem_type));
    case Kind::sparse_tensor:
      return fmt::format("sparse_tensor({})", element_type(type.elem_type));
    case Kind::sequence:
      return fmt::format("seq({})", inner);
    case Kind::optional:
      return fmt::format("optional({})", inner);
    case Kind::map:
      return fmt::format("map({},{})", element_type(type.elem_type), inner);
    default:
      return "";
  }
}

nb::str text(onnx::Bytes bytes) {
  PyObject* decoded = PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "replace");
  if (decoded == nullptr) throw nb::python_error();
  return nb::steal<nb::str>(decoded);
}

nb::tuple port(const onnx::ValueInfo& info) {
  nb::list shape;
  if (info.type && info.type->shape)
    for (const onnx::Dimension& dim : *info.type->shape) {
      if (dim.value && *dim.value >= 0)
        shape.append(nb::int_(*dim.value));
      else if (dim.value || dim.param.empty())
        shape.append(nb::none());
      else
        shape.append(text(dim.param));
    }
  return nb::make_tuple(text(info.name), nb::str(info.type ? type_text(*info.type).c_str() : ""), shape);
}

nb::dict to_dict(const onnx::ModelProto& model) {
  nb::dict out, metadata;
  for (const onnx::KeyValue& entry : model.metadata) metadata[text(entry.key)] = text(entry.value);
  out["producer_name"] = text(model.producer_name);
  out["producer_version"] = text(model.producer_version);
  out["domain"] = text(model.domain);
  out["version"] = model.model_version;
  out["description"] = text(model.doc_string);
  out["custom_metadata_map"] = metadata;
  onnx::GraphProto none;
  const onnx::GraphProto& graph = model.graph ? *model.graph : none;
  out["graph_name"] = text(graph.name);
  out["graph_description"] = text(graph.doc_string);
  std::set<onnx::Bytes> initializers;
  for (const onnx::TensorProto& tensor : graph.initializers) initializers.insert(tensor.name);
  nb::list inputs, outputs, overridable;
  for (const onnx::ValueInfo& info : graph.inputs)
    (initializers.contains(info.name) ? overridable : inputs).append(port(info));
  for (const onnx::ValueInfo& info : graph.outputs) outputs.append(port(info));
  out["inputs"] = inputs;
  out["outputs"] = outputs;
  out["overridable"] = overridable;
  return out;
}

}  // namespace

nb::dict header(const std::string& path, const nb::object& bytes) {
  return in_phase(Phase::model, [&] {
    if (!bytes.is_none()) {
      const char* data = PyBytes_AsString(bytes.ptr());
      if (data == nullptr) throw nb::python_error();
      return to_dict(onnx::read_model({data, static_cast<size_t>(PyBytes_GET_SIZE(bytes.ptr()))}));
    }
    std::shared_ptr<const MappedFile> file = MappedFile::open(path);
    return to_dict(onnx::read_model({reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()}));
  });
}

}  // namespace selkie::python
