#include "onnx/tensors.h"

#include <charconv>
#include <cstring>
#include <filesystem>
#include <protozero/pbf_writer.hpp>

#include "base/convert.h"

namespace selkie::onnx {
namespace {

DType dtype_of(const TensorProto& proto) {
  std::optional<DType> dtype = dtype_from_onnx(proto.data_type);
  if (!dtype) fail("tensor '{}' has the unknown element type {}", proto.name, proto.data_type);
  return *dtype;
}

// Bytes that `count` elements take in a file.
size_t stored_size(DType dtype, int64_t count) {
  return static_cast<size_t>((static_cast<__int128>(count) * info(dtype).bits + 7) / 8);
}

int64_t parse_number(Bytes text, Bytes key) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    fail("external data: '{}' is not a valid {}", text, key);
  return value;
}

// The raw bytes of a tensor, in this file or an external one, or nothing if the elements are in typed fields.
std::optional<std::span<const std::byte>> raw_bytes(const TensorProto& proto, DataSource& source,
                                                    std::shared_ptr<const MappedFile>& file) {
  if (!proto.is_external) {
    if (!proto.raw) return std::nullopt;
    file = source.file();
    return std::as_bytes(std::span(proto.raw->data(), proto.raw->size()));
  }
  Bytes location;
  int64_t offset = 0;
  std::optional<int64_t> length;
  for (const KeyValue& entry : proto.external) {
    if (entry.key == "location")
      location = entry.value;
    else if (entry.key == "offset")
      offset = parse_number(entry.value, entry.key);
    else if (entry.key == "length")
      length = parse_number(entry.value, entry.key);
  }
  if (location.empty()) fail("its external data has no location");
  file = source.external(location);
  auto size = static_cast<int64_t>(file->bytes().size());
  if (offset > size || (length && *length > size - offset))
    fail("external data file '{}' has {} bytes, too few for {} at {}", location, size, length.value_or(0), offset);
  return file->bytes().subspan(static_cast<size_t>(offset), static_cast<size_t>(length.value_or(size - offset)));
}

// Elements of typed fields. The narrow types sit in int32_data as integers or as bit patterns.
Tensor typed_elements(const TensorProto& proto, DType dtype, int64_t count) {
  auto need = [&](size_t have, int64_t want) {
    if (static_cast<int64_t>(have) != want) fail("it has {} elements, but its shape needs {}", have, want);
  };
  if (dtype == DType::str) {
    need(proto.strings.size(), count);
    Tensor out(dtype, proto.dims);
    std::copy(proto.strings.begin(), proto.strings.end(), out.mutable_data<std::string>());
    return out;
  }
  if (!proto.floats.empty() || !proto.doubles.empty()) {
    bool is_double = proto.floats.empty();
    size_t have = is_double ? proto.doubles.size() : proto.floats.size();
    need(have, is_complex(dtype) ? count * 2 : count);
    Tensor out(dtype, proto.dims);
    if (have * (is_double ? 8 : 4) != out.byte_size()) fail("its data is not of its element type {}", name(dtype));
    std::memcpy(out.mutable_bytes(), is_double ? static_cast<const void*>(proto.doubles.data()) : proto.floats.data(),
                out.byte_size());
    return out;
  }
  if (is_sub_byte(dtype)) {
    std::vector<std::byte> packed;
    for (int64_t v : proto.integers) packed.push_back(static_cast<std::byte>(v));
    return unpack_sub_byte(dtype, proto.dims, packed.data(), packed.size());
  }
  need(proto.integers.size(), count);
  if (is_integer(dtype) || dtype == DType::boolean) return narrow<int64_t>(proto.integers, dtype, proto.dims);
  Tensor out(dtype, proto.dims);
  size_t size = element_size(dtype);
  if (size > 2 && count > 0) fail("its data is not of its element type {}", name(dtype));
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    auto code = static_cast<uint16_t>(proto.integers[i]);
    std::memcpy(out.mutable_bytes() + i * size, &code, size);
  }
  return out;
}

}  // namespace

std::shared_ptr<const MappedFile> DataSource::external(Bytes location) {
  for (const auto& [name, file] : externals_)
    if (name == location) return file;
  std::filesystem::path relative{std::string(location)};
  if (relative.is_absolute()) fail("external data file '{}' must be named relative to the model", location);
  for (const auto& part : relative)
    if (part == "..") fail("external data file '{}' lies outside the model's folder", location);
  auto file = MappedFile::open((std::filesystem::path(folder_) / relative).string());
  externals_.emplace_back(std::string(location), file);
  return file;
}

void fill_constant(ir::Constant& constant, const TensorProto& proto, DataSource& source, sym::Context& symbols) {
  try {
    constant.dtype = dtype_of(proto);
    constant.dims = proto.dims;
    int64_t count = element_count(proto.dims);
    ir::SymDims dims;
    for (int64_t d : proto.dims) dims.push_back(symbols.constant(d));
    constant.value.type = ir::Type::tensor(constant.dtype, std::move(dims));
    auto raw = raw_bytes(proto, source, constant.file);
    if (!raw) {
      constant.in_memory = typed_elements(proto, constant.dtype, count);
      return;
    }
    if (constant.dtype == DType::str) fail("strings cannot be stored as raw bytes");
    size_t size = stored_size(constant.dtype, count);
    if (proto.is_external ? raw->size() < size : raw->size() != size)
      fail("it has {} bytes, but its shape {} needs {}", raw->size(), to_string(proto.dims), size);
    constant.raw = raw->first(size);
    // Bytes that are not in a file are not ours to keep.
    if (!constant.file) {
      Tensor view = constant.tensor();
      Tensor copy(view.dtype(), view.dims());
      if (view.byte_size() > 0) std::memcpy(copy.mutable_bytes(), view.bytes(), view.byte_size());
      constant.in_memory = std::move(copy);
      constant.raw = {};
    }
    if (constant.dtype == DType::boolean)
      for (std::byte b : raw->first(size))
        if (b > std::byte{1}) fail("it has a bool that is neither 0 nor 1");
  } catch (Error& error) {
    error.note(fmt::format("in tensor '{}'", proto.name));
    throw;
  }
}

Tensor to_tensor(const TensorProto& proto, DataSource& source) {
  sym::Context symbols;
  ir::Constant constant;
  fill_constant(constant, proto, source, symbols);
  return constant.tensor();
}

Tensor to_tensor(const SparseTensorProto& proto, DataSource& source) {
  Tensor values = to_tensor(proto.values, source);
  std::vector<int64_t> indices = ints_of(to_tensor(proto.indices, source));
  Tensor out(values.dtype(), proto.dims);
  size_t rank = proto.dims.size();
  auto count = static_cast<size_t>(values.count());
  // Indices are linear, one per value, or one per value and axis.
  bool linear = indices.size() == count && proto.indices.dims.size() == 1;
  if (!linear && indices.size() != count * rank)
    fail("sparse tensor '{}' has {} indices for {} values", proto.values.name, indices.size(), count);
  for (size_t i = 0; i < count; ++i) {
    int64_t at = linear ? indices[i] : 0;
    for (size_t axis = 0; !linear && axis < rank; ++axis) {
      int64_t index = indices[i * rank + axis];
      if (index < 0 || index >= proto.dims[axis])
        fail("sparse tensor '{}' has an index outside its shape", proto.values.name);
      at = at * proto.dims[axis] + index;
    }
    if (at < 0 || at >= out.count()) fail("sparse tensor '{}' has an index outside its shape", proto.values.name);
    dispatch_storage(values.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      out.mutable_data<T>()[at] = values.data<T>()[i];
    });
  }
  return out;
}

namespace {

HostValue to_value(const MapProto& proto) {
  DataSource nowhere(nullptr, "");
  std::vector<std::string> strings(proto.string_keys.begin(), proto.string_keys.end());
  auto count = static_cast<int64_t>(strings.empty() ? proto.keys.size() : strings.size());
  Tensor keys = strings.empty()
                    ? narrow<int64_t>(proto.keys, dtype_from_onnx(proto.key_type).value_or(DType::i64), {count})
                    : narrow<std::string>(strings, DType::str, {count});
  std::vector<double> values;
  DType dtype = DType::f32;
  for (const TensorProto& item : proto.values ? proto.values->tensors : std::vector<TensorProto>{}) {
    Tensor value = to_tensor(item, nowhere);
    dtype = value.dtype();
    values.push_back(double_of(value));
  }
  if (static_cast<int64_t>(values.size()) != count) fail("a map has {} keys and {} values", count, values.size());
  return Map{std::move(keys), narrow<double>(values, dtype, {count})};
}

}  // namespace

HostValue to_value(const SequenceProto& proto) {
  DataSource nowhere(nullptr, "");
  Sequence out;
  for (const TensorProto& item : proto.tensors) out.items.emplace_back(to_tensor(item, nowhere));
  for (const SequenceProto& item : proto.sequences) out.items.push_back(to_value(item));
  for (const MapProto& item : proto.maps) out.items.push_back(to_value(item));
  for (const OptionalProto& item : proto.optionals) out.items.push_back(to_value(item));
  return out;
}

HostValue to_value(const OptionalProto& proto) {
  DataSource nowhere(nullptr, "");
  Optional out;
  if (proto.tensor)
    out.value = std::make_shared<HostValue>(to_tensor(*proto.tensor, nowhere));
  else if (proto.sequence)
    out.value = std::make_shared<HostValue>(to_value(*proto.sequence));
  else if (proto.map)
    out.value = std::make_shared<HostValue>(to_value(*proto.map));
  else if (proto.optional)
    out.value = std::make_shared<HostValue>(to_value(*proto.optional));
  return out;
}

HostValue read_value_file(const std::string& path, const ir::Type& type) {
  auto file = MappedFile::open(path);
  Bytes bytes(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
  try {
    if (type.kind == ir::Type::Kind::seq) return to_value(read_sequence(bytes));
    if (type.kind == ir::Type::Kind::opt) return to_value(read_optional(bytes));
    DataSource source(file, "");
    return to_tensor(read_tensor(bytes), source);
  } catch (Error& error) {
    error.note(fmt::format("in '{}'", path));
    throw;
  }
}

std::string write_tensor(const Tensor& tensor, std::string_view name) {
  std::string out;
  protozero::pbf_writer writer(out);
  writer.add_packed_int64(1, tensor.dims().begin(), tensor.dims().end());
  writer.add_int32(2, static_cast<int32_t>(tensor.dtype()));
  writer.add_string(8, name.data(), name.size());
  if (tensor.dtype() == DType::str) {
    for (const std::string& s : tensor.values<std::string>()) writer.add_bytes(6, s);
  } else if (is_sub_byte(tensor.dtype())) {
    std::vector<std::byte> packed = pack_sub_byte(tensor);
    writer.add_bytes(9, reinterpret_cast<const char*>(packed.data()), packed.size());
  } else {
    writer.add_bytes(9, reinterpret_cast<const char*>(tensor.bytes()), tensor.byte_size());
  }
  return out;
}

}  // namespace selkie::onnx
