#include "arrays.h"

#include <nanobind/ndarray.h>

#define NPY_NO_DEPRECATED_API NPY_1_22_API_VERSION
#include <numpy/arrayobject.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "api/overlap.h"
#include "failures.h"

namespace nb = nanobind;

namespace selkie::python {
namespace {

struct NumpyType {
  DType dtype;
  int number;        // NumPy's; none where it has none
  const char* name;  // of ml_dtypes
};
constexpr int no_number = -1;
constexpr NumpyType numpy_types[] = {
    {DType::f32, NPY_FLOAT32, ""},
    {DType::u8, NPY_UINT8, ""},
    {DType::i8, NPY_INT8, ""},
    {DType::u16, NPY_UINT16, ""},
    {DType::i16, NPY_INT16, ""},
    {DType::i32, NPY_INT32, ""},
    {DType::i64, NPY_INT64, ""},
    {DType::str, NPY_OBJECT, ""},
    {DType::boolean, NPY_BOOL, ""},
    {DType::f16, NPY_FLOAT16, ""},
    {DType::f64, NPY_FLOAT64, ""},
    {DType::u32, NPY_UINT32, ""},
    {DType::u64, NPY_UINT64, ""},
    {DType::c64, NPY_COMPLEX64, ""},
    {DType::c128, NPY_COMPLEX128, ""},
    {DType::bf16, no_number, "bfloat16"},
    {DType::f8e4m3fn, no_number, "float8_e4m3fn"},
    {DType::f8e4m3fnuz, no_number, "float8_e4m3fnuz"},
    {DType::f8e5m2, no_number, "float8_e5m2"},
    {DType::f8e5m2fnuz, no_number, "float8_e5m2fnuz"},
    {DType::u4, no_number, "uint4"},
    {DType::i4, no_number, "int4"},
    {DType::f4e2m1, no_number, "float4_e2m1fn"},
    {DType::f8e8m0, no_number, "float8_e8m0fnu"},
    {DType::u2, no_number, "uint2"},
    {DType::i2, no_number, "int2"},
};

const NumpyType& numpy_type(DType dtype) { return numpy_types[static_cast<size_t>(dtype) - 1]; }

// Python's error becomes a failure of the input, so that all that is wrong with inputs is of one class.
[[noreturn]] void fail_as_python(const std::string& name) {
  nb::python_error error;
  fail_input("input '{}' cannot be read: {}", name, nb::str(error.value()).c_str());
}

std::optional<DType> signed_by_size(npy_intp size) {
  constexpr DType by_size[] = {DType::i8, DType::i16, DType::i32, DType::i64};
  for (size_t i = 0; i < 4; ++i)
    if (size == npy_intp{1} << i) return by_size[i];
  return std::nullopt;
}

std::optional<DType> unsigned_by_size(npy_intp size) {
  constexpr DType by_size[] = {DType::u8, DType::u16, DType::u32, DType::u64};
  for (size_t i = 0; i < 4; ++i)
    if (size == npy_intp{1} << i) return by_size[i];
  return std::nullopt;
}

// Of ml_dtypes, whose types have kinds of NumPy's that say less.
std::optional<DType> dtype_of_name(std::string_view name) {
  name = name.substr(name.rfind('.') + 1);
  for (const NumpyType& row : numpy_types)
    if (row.number == no_number && name == row.name) return row.dtype;
  return std::nullopt;
}

std::optional<DType> dtype_of(PyArray_Descr* descr) {
  if (PyTypeNum_ISUSERDEF(descr->type_num)) return dtype_of_name(descr->typeobj->tp_name);
  npy_intp size = PyDataType_ELSIZE(descr);
  switch (descr->kind) {
    case 'b':
      return DType::boolean;
    case 'i':
      return signed_by_size(size);
    case 'u':
      return unsigned_by_size(size);
    case 'f':
      if (size == 4) return DType::f32;
      if (size == 8) return DType::f64;
      return size == 2 ? std::optional(DType::f16) : std::nullopt;
    case 'c':
      if (size == 8) return DType::c64;
      return size == 16 ? std::optional(DType::c128) : std::nullopt;
    case 'U':
    case 'S':
    case 'O':
    case 'T':
      return DType::str;
    default:
      return std::nullopt;
  }
}

// Bits that stand for elements that NumPy has no type for.
bool stands_for(DType given, DType declared) {
  return given != declared && numpy_type(declared).number == no_number && is_unsigned_integer(given) &&
         numpy_type(given).number != no_number && element_size(given) == element_size(declared);
}

Dims dims_of(PyArrayObject* array) {
  const npy_intp* dims = PyArray_DIMS(array);
  return {dims, dims + PyArray_NDIM(array)};
}

Tensor string_tensor(PyArrayObject* array, const std::string& name) {
  nb::object objects =
      nb::steal(PyArray_FROMANY(reinterpret_cast<PyObject*>(array), NPY_OBJECT, 0, 0, NPY_ARRAY_CARRAY));
  if (!objects.is_valid()) fail_as_python(name);
  auto* from = reinterpret_cast<PyArrayObject*>(objects.ptr());
  Tensor tensor(DType::str, dims_of(from));
  auto* items = static_cast<PyObject**>(PyArray_DATA(from));
  auto* to = tensor.mutable_data<std::string>();
  for (int64_t i = 0; i < tensor.count(); ++i) {
    Py_ssize_t size = 0;
    if (PyUnicode_Check(items[i])) {
      const char* text = PyUnicode_AsUTF8AndSize(items[i], &size);
      if (text == nullptr) fail_as_python(name);
      to[i].assign(text, static_cast<size_t>(size));
    } else if (PyBytes_Check(items[i])) {
      to[i].assign(PyBytes_AS_STRING(items[i]), static_cast<size_t>(PyBytes_GET_SIZE(items[i])));
    } else {
      fail_input("input '{}' has an element of Python's type {}, which is not a string", name,
                 Py_TYPE(items[i])->tp_name);
    }
  }
  return tensor;
}

// NumPy's small elements have a byte each, of which only the low bits count; ours are extended to the whole byte.
Tensor small_tensor(DType dtype, PyArrayObject* array) {
  Tensor tensor(dtype, dims_of(array));
  const auto* from = static_cast<const uint8_t*>(PyArray_DATA(array));
  auto* to = reinterpret_cast<uint8_t*>(tensor.mutable_bytes());
  int unused = 8 - info(dtype).bits;
  for (int64_t i = 0; i < tensor.count(); ++i) {
    auto high = static_cast<uint8_t>(from[i] << unused);
    to[i] = is_signed_integer(dtype) ? static_cast<uint8_t>(static_cast<int8_t>(high) >> unused)
                                     : static_cast<uint8_t>(high >> unused);
  }
  return tensor;
}

// The array is the caller's, or in `kept`.
Tensor array_tensor(PyArrayObject* array, const ir::Type& type, const std::string& name, Kept& kept) {
  std::optional<DType> dtype = dtype_of(PyArray_DESCR(array));
  if (!dtype) {
    nb::str text(nb::borrow(reinterpret_cast<PyObject*>(PyArray_DESCR(array))));
    fail_input("input '{}' has elements of NumPy's type {}, which no model takes", name, text.c_str());
  }
  if (*dtype == DType::str) return string_tensor(array, name);
  if (type.is_tensor() && stands_for(*dtype, type.dtype)) dtype = type.dtype;
  if (!PyArray_ISCARRAY_RO(array)) {
    PyObject* plain = PyArray_FROM_OF(reinterpret_cast<PyObject*>(array), NPY_ARRAY_CARRAY_RO | NPY_ARRAY_NOTSWAPPED);
    if (plain == nullptr) fail_as_python(name);
    kept.push_back(nb::steal(plain));
    array = reinterpret_cast<PyArrayObject*>(plain);
  }
  if (is_sub_byte(*dtype)) return small_tensor(*dtype, array);
  return Tensor::view(*dtype, dims_of(array), static_cast<const std::byte*>(PyArray_DATA(array)), nullptr);
}

std::optional<DType> dtype_of(nb::dlpack::dtype given) {
  if (given.lanes != 1) return std::nullopt;
  using Code = nb::dlpack::dtype_code;
  switch (static_cast<Code>(given.code)) {
    case Code::Int:
      return signed_by_size(given.bits / 8);
    case Code::UInt:
      return unsigned_by_size(given.bits / 8);
    case Code::Bool:
      return DType::boolean;
    case Code::Bfloat:
      return DType::bf16;
    case Code::Float:
      if (given.bits == 16) return DType::f16;
      if (given.bits == 32) return DType::f32;
      return given.bits == 64 ? std::optional(DType::f64) : std::nullopt;
    case Code::Complex:
      return given.bits == 64 ? DType::c64 : DType::c128;
    default:
      return std::nullopt;
  }
}

// A view that NumPy makes of another library's array, dense or not; nothing if it cannot.
nb::object numpy_view(PyObject* given) {
  try {
    return nb::module_::import_("numpy").attr("from_dlpack")(nb::borrow(given));
  } catch (const nb::python_error&) {
    return {};
  }
}

// Of another library, such as torch.
Tensor dlpack_tensor(PyObject* given, const ir::Type& type, const std::string& name, Kept& kept) {
  nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu> array;
  if (!nb::try_cast(nb::borrow(given), array)) {
    nb::object view = numpy_view(given);
    if (!view.is_valid())
      fail_input("input '{}' is a {}, whose elements cannot be read as those of a dense array in main memory", name,
                 Py_TYPE(given)->tp_name);
    kept.push_back(view);
    return array_tensor(reinterpret_cast<PyArrayObject*>(view.ptr()), type, name, kept);
  }
  std::optional<DType> dtype = dtype_of(array.dtype());
  if (!dtype) fail_input("input '{}' has elements of a type that no model takes", name);
  Dims dims;
  for (size_t i = 0; i < array.ndim(); ++i) dims.push_back(static_cast<int64_t>(array.shape(i)));
  Tensor tensor = Tensor::view(*dtype, std::move(dims), static_cast<const std::byte*>(array.data()), nullptr);
  kept.push_back(nb::cast(std::move(array)));
  return tensor;
}

// Numbers, lists of numbers, texts: what is declared, if nothing is lost by it.
Tensor converted_tensor(PyObject* given, const ir::Type& type, const std::string& name, Kept& kept) {
  PyObject* array = PyArray_FROM_O(given);
  if (array == nullptr) fail_as_python(name);
  kept.push_back(nb::steal(array));
  if (type.is_tensor() && type.dtype != DType::str) {
    nb::object wanted = numpy_dtype(type.dtype);
    auto* descr = reinterpret_cast<PyArray_Descr*>(wanted.ptr());
    if (!PyArray_CanCastArrayTo(reinterpret_cast<PyArrayObject*>(array), descr, NPY_SAME_KIND_CASTING))
      fail_input("input '{}' must be of type {}, but the given {} is not", name, selkie::name(type.dtype),
                 Py_TYPE(given)->tp_name);
    Py_INCREF(descr);
    array = PyArray_FromArray(reinterpret_cast<PyArrayObject*>(array), descr, NPY_ARRAY_CARRAY | NPY_ARRAY_FORCECAST);
    if (array == nullptr) fail_as_python(name);
    kept.push_back(nb::steal(array));
  }
  return array_tensor(reinterpret_cast<PyArrayObject*>(array), type, name, kept);
}

HostValue to_sequence(PyObject* given, const ir::Type& type, const std::string& name, Kept& kept) {
  if (!PyList_Check(given) && !PyTuple_Check(given))
    fail_input("input '{}' must be {}, that is a list, but is a {}", name, to_string(type), Py_TYPE(given)->tp_name);
  Sequence sequence;
  for (nb::handle item : nb::borrow(given)) sequence.items.push_back(to_value(item.ptr(), type.parts[0], name, kept));
  return sequence;
}

HostValue to_map(PyObject* given, const ir::Type& type, const std::string& name, Kept& kept) {
  if (!PyDict_Check(given))
    fail_input("input '{}' must be {}, that is a dict, but is a {}", name, to_string(type), Py_TYPE(given)->tp_name);
  nb::object keys = nb::steal(PyDict_Keys(given));
  if (keys.is_valid() && PyList_Sort(keys.ptr()) != 0) fail_as_python(name);
  nb::list values;
  for (nb::handle key : keys) values.append(nb::borrow<nb::dict>(given)[key]);
  return Map{.keys = converted_tensor(keys.ptr(), ir::Type::tensor(type.dtype), name, kept),
             .values = converted_tensor(values.ptr(), type.parts[0], name, kept)};
}

nb::object string_array(const Tensor& tensor) {
  std::vector<npy_intp> dims(tensor.dims().begin(), tensor.dims().end());
  nb::object array = nb::steal(PyArray_SimpleNew(static_cast<int>(dims.size()), dims.data(), NPY_OBJECT));
  if (!array.is_valid()) throw nb::python_error();
  auto** to = static_cast<PyObject**>(PyArray_DATA(reinterpret_cast<PyArrayObject*>(array.ptr())));
  for (const std::string& text : tensor.values<std::string>()) {
    PyObject* item = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape");
    if (item == nullptr) throw nb::python_error();
    Py_XDECREF(*to);
    *to++ = item;
  }
  return array;
}

PyArray_Descr* new_descr(DType dtype) {
  int number = numpy_type(dtype).number;
  if (number != no_number) return PyArray_DescrFromType(number);
  return reinterpret_cast<PyArray_Descr*>(numpy_dtype(dtype).release().ptr());
}

void let_go(PyObject* capsule) { delete static_cast<Tensor*>(PyCapsule_GetPointer(capsule, nullptr)); }

nb::object array_of(const Tensor& tensor, bool copies) {
  if (tensor.dtype() == DType::str) return string_array(tensor);
  constexpr size_t most_axes = 64;
  if (tensor.dims().size() > most_axes) fail("a result has {} axes, more than NumPy's arrays can", tensor.rank());
  npy_intp dims[most_axes];
  std::ranges::copy(tensor.dims(), dims);
  void* data = copies ? nullptr : const_cast<std::byte*>(tensor.bytes());
  nb::object array =
      nb::steal(PyArray_NewFromDescr(&PyArray_Type, new_descr(tensor.dtype()), static_cast<int>(tensor.rank()), dims,
                                     nullptr, data, data == nullptr ? 0 : NPY_ARRAY_CARRAY, nullptr));
  if (!array.is_valid()) throw nb::python_error();
  auto* made = reinterpret_cast<PyArrayObject*>(array.ptr());
  if (data == nullptr) {
    if (tensor.byte_size() > 0) std::memcpy(PyArray_DATA(made), tensor.bytes(), tensor.byte_size());
    return array;
  }
  PyObject* owner = PyCapsule_New(new Tensor(tensor), nullptr, let_go);
  if (owner == nullptr || PyArray_SetBaseObject(made, owner) != 0) throw nb::python_error();
  return array;
}

}  // namespace

void init_arrays() {
  if (_import_array() < 0) throw nb::python_error();
}

HostValue to_value(PyObject* given, const ir::Type& type, const std::string& name, Kept& kept) {
  using Kind = ir::Type::Kind;
  if (type.kind == Kind::opt) {
    if (given == Py_None) return Optional{};
    return Optional{std::make_shared<const HostValue>(to_value(given, type.parts[0], name, kept))};
  }
  if (type.kind == Kind::seq) return to_sequence(given, type, name, kept);
  if (type.kind == Kind::map) return to_map(given, type, name, kept);
  if (PyArray_Check(given)) return array_tensor(reinterpret_cast<PyArrayObject*>(given), type, name, kept);
  if (given == Py_None) fail_input("input '{}' ({}) is None, but must be an array", name, to_string(type));
  if (!PyArray_CheckScalar(given) && nb::ndarray_check(nb::handle(given)) &&
      PyObject_HasAttrString(given, "__dlpack__"))
    return dlpack_tensor(given, type, name, kept);
  return converted_tensor(given, type, name, kept);
}

Foreign::Foreign(std::span<const Tensor> constants) {
  for (const Tensor& tensor : constants)
    if (tensor.dtype() != DType::str && tensor.byte_size() > 0)
      ranges_.emplace_back(tensor.bytes(), tensor.bytes() + tensor.byte_size());
  std::ranges::sort(ranges_);
}

bool Foreign::holds(const std::byte* at) const {
  auto after = std::ranges::upper_bound(ranges_, at, {}, [](const auto& range) { return range.first; });
  return after != ranges_.begin() && at < std::prev(after)->second;
}

nb::object to_python(const HostValue& value, std::span<const HostValue> inputs, const Foreign& foreign,
                     std::vector<const std::byte*>& handed_out) {
  auto inside = [&](const HostValue& part) { return to_python(part, inputs, foreign, handed_out); };
  if (value.is_tensor()) {
    const Tensor& tensor = value.tensor();
    const std::byte* at = tensor.bytes();
    bool copies = tensor.byte_size() == 0 || foreign.holds(at) || api::contains(inputs, at) ||
                  std::ranges::find(handed_out, at) != handed_out.end();
    handed_out.push_back(at);
    return array_of(tensor, copies);
  }
  if (value.is_sequence()) {
    nb::list items;
    for (const HostValue& item : value.sequence()) items.append(inside(item));
    return items;
  }
  if (value.is_optional()) return value.optional().value ? inside(*value.optional().value) : nb::none();
  if (value.is_map()) {
    nb::object keys = array_of(value.map().keys, true).attr("tolist")();
    nb::object values = array_of(value.map().values, true).attr("tolist")();
    nb::dict out;
    for (size_t i = 0; i < nb::len(keys); ++i) out[keys[i]] = values[i];
    return out;
  }
  if (value.is_record()) {
    nb::list fields;
    for (const HostValue& field : value.record().fields) fields.append(inside(field));
    return nb::tuple(fields);
  }
  if (value.is_absent()) return nb::none();
  fail("a result is {}, which Python has no value for", value.describe());
}

void copy_into(const HostValue& value, PyObject* array, const std::string& name) {
  if (!PyArray_Check(array))
    fail_input("out for '{}' must be a NumPy array, but is a {}", name, Py_TYPE(array)->tp_name);
  auto* to = reinterpret_cast<PyArrayObject*>(array);
  std::optional<DType> dtype = dtype_of(PyArray_DESCR(to));
  const Tensor& tensor = value.tensor();
  if (tensor.dtype() == DType::str) fail_input("output '{}' has strings, which out does not take", name);
  bool fits = dtype && (*dtype == tensor.dtype() || stands_for(*dtype, tensor.dtype())) &&
              std::ranges::equal(std::span(PyArray_DIMS(to), static_cast<size_t>(PyArray_NDIM(to))), tensor.dims());
  if (!fits) {
    Dims dims = dims_of(to);
    fail_input("out for '{}' is {}{}, but the output is {}", name, dtype ? selkie::name(*dtype) : "?", to_string(dims),
               value.describe());
  }
  if (!PyArray_ISCARRAY(to)) fail_input("out for '{}' must be contiguous and writable", name);
  if (tensor.byte_size() > 0) std::memcpy(PyArray_DATA(to), tensor.bytes(), tensor.byte_size());
}

nb::object numpy_dtype(DType dtype) {
  const NumpyType& row = numpy_type(dtype);
  if (row.number != no_number) return nb::steal(reinterpret_cast<PyObject*>(PyArray_DescrFromType(row.number)));
  PyObject* module = PyImport_ImportModule("ml_dtypes");
  if (module != nullptr) {
    nb::object types = nb::steal(module);
    if (nb::hasattr(types, row.name)) return nb::module_::import_("numpy").attr("dtype")(types.attr(row.name));
  }
  PyErr_Clear();
  return nb::steal(
      reinterpret_cast<PyObject*>(PyArray_DescrFromType(element_size(dtype) == 2 ? NPY_UINT16 : NPY_UINT8)));
}

}  // namespace selkie::python
