#include "inputs.h"

#include <charconv>
#include <cstring>

#include "base/convert.h"
#include "onnx/tensors.h"

namespace selkie::cli {
namespace {

struct NpyType {
  DType dtype;
  std::string_view code;
};
constexpr NpyType npy_types[] = {
    {DType::f32, "<f4"}, {DType::f64, "<f8"},     {DType::f16, "<f2"}, {DType::i8, "|i1"},   {DType::u8, "|u1"},
    {DType::i16, "<i2"}, {DType::u16, "<u2"},     {DType::i32, "<i4"}, {DType::u32, "<u4"},  {DType::i64, "<i8"},
    {DType::u64, "<u8"}, {DType::boolean, "|b1"}, {DType::c64, "<c8"}, {DType::c128, "<c16"}};

Dims parse_dims(std::string_view text, const std::string& spec) {
  Dims dims;
  while (!text.empty()) {
    int64_t dim = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), dim);
    size_t used = static_cast<size_t>(end - text.data());
    if (error != std::errc() || dim < 0 || (used < text.size() && text[used] != 'x'))
      fail("'{}' is not a shape such as 1x3x224x224", spec);
    dims.push_back(dim);
    text.remove_prefix(std::min(used + 1, text.size()));
  }
  return dims;
}

// value:3 fills the declared shape (dims that are not numbers count as 1); value:1,2,3 is a vector.
Tensor from_values(std::string_view text, DType dtype, const ir::Type& type) {
  std::vector<std::string> words;
  while (!text.empty()) {
    size_t comma = std::min(text.find(','), text.size());
    words.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  if (words.empty()) fail("value: needs at least one number");
  Dims dims;
  if (words.size() > 1)
    dims = {static_cast<int64_t>(words.size())};
  else if (type.is_tensor() && type.dims)
    for (sym::Expr d : *type.dims) dims.push_back(d.constant().value_or(1));
  size_t count = static_cast<size_t>(element_count(dims));
  if (dtype == DType::str) {
    if (words.size() == 1) words.resize(count, words[0]);
    return narrow<std::string>(words, dtype, dims);
  }
  std::vector<double> values;
  for (const std::string& word : words) {
    char* end = nullptr;
    values.push_back(std::strtod(word.c_str(), &end));
    if (word.empty() || end != word.c_str() + word.size()) fail("'{}' is not a number", word);
  }
  if (values.size() == 1) values.resize(count, values[0]);
  return narrow<double>(values, dtype, dims);
}

}  // namespace

Tensor random_tensor(DType dtype, Dims dims, std::mt19937_64& random) {
  size_t count = static_cast<size_t>(element_count(dims));
  if (dtype == DType::str) {
    std::vector<std::string> values(count);
    for (std::string& v : values) v = fmt::format("s{}", random() % 10);
    return narrow<std::string>(values, dtype, std::move(dims));
  }
  std::vector<double> values(count);
  std::normal_distribution<double> normal;
  for (double& v : values) {
    if (is_float(dtype) || is_complex(dtype))
      v = normal(random);
    else
      v = static_cast<double>(random() % (dtype == DType::boolean ? 2 : 10));
  }
  return narrow<double>(values, dtype, std::move(dims));
}

HostValue make_input(const std::string& spec, const ir::Type& type, std::mt19937_64& random) {
  if (spec.ends_with(".npy")) return read_npy(spec);
  if (spec.ends_with(".pb")) return onnx::read_value_file(spec, type);
  size_t colon = spec.find(':');
  std::string kind = spec.substr(0, colon);
  std::string rest = colon == std::string::npos ? "" : spec.substr(colon + 1);
  if (kind != "random" && kind != "zeros" && kind != "ones" && kind != "value")
    fail("'{}' is not an input: FILE.npy, FILE.pb, random:SHAPE, zeros:SHAPE, ones:SHAPE or value:NUMBER", spec);
  if (!type.is_tensor() && !type.is_unknown())
    fail("an input of type {} can only come from a .pb file", to_string(type));
  DType dtype = type.is_tensor() ? type.dtype : DType::f32;
  if (kind == "value") return from_values(rest, dtype, type);
  Dims dims = parse_dims(rest, spec);
  if (kind == "random") return random_tensor(dtype, std::move(dims), random);
  if (kind == "zeros") return Tensor(dtype, std::move(dims));
  std::vector<double> ones(static_cast<size_t>(element_count(dims)), 1.0);
  return narrow<double>(ones, dtype, std::move(dims));
}

bool has_npy_type(DType dtype) {
  for (const NpyType& row : npy_types)
    if (row.dtype == dtype) return true;
  return false;
}

Tensor read_npy(const std::string& path) {
  auto file = MappedFile::open(path);
  std::string_view bytes(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
  auto bad = [&](std::string_view why) { fail("'{}' is not an array file of NumPy: {}", path, why); };
  if (!bytes.starts_with("\x93NUMPY") || bytes.size() < 12) bad("no NumPy header");
  bool wide = bytes[6] >= 2;
  size_t start = wide ? 12 : 10;
  uint32_t length = 0;
  std::memcpy(&length, bytes.data() + 8, wide ? 4 : 2);
  if (length > bytes.size() - start) bad("the header is cut off");
  std::string_view header = bytes.substr(start, length);
  auto field = [&](std::string_view key) {
    size_t at = header.find(key);
    if (at == std::string_view::npos) bad(fmt::format("no {} in the header", key));
    return header.substr(header.find(':', at) + 1);
  };
  std::optional<DType> dtype;
  std::string_view descr = field("'descr'");
  for (const NpyType& row : npy_types)
    if (descr.substr(descr.find('\'') + 1).starts_with(fmt::format("{}'", row.code))) dtype = row.dtype;
  if (!dtype) bad("its element type is not supported");
  if (field("'fortran_order'").substr(0, 6).find("True") != std::string_view::npos)
    bad("column-major order is not supported");
  std::string_view shape = field("'shape'");
  shape = shape.substr(shape.find('(') + 1);
  shape = shape.substr(0, shape.find(')'));
  Dims dims;
  while (!shape.empty()) {
    while (!shape.empty() && (shape[0] == ' ' || shape[0] == ',')) shape.remove_prefix(1);
    if (shape.empty()) break;
    int64_t dim = 0;
    auto [end, error] = std::from_chars(shape.data(), shape.data() + shape.size(), dim);
    if (error != std::errc()) bad("its shape cannot be read");
    dims.push_back(dim);
    shape.remove_prefix(static_cast<size_t>(end - shape.data()));
  }
  Tensor out(*dtype, std::move(dims));
  if (bytes.size() - start - length != out.byte_size()) bad("its data does not fit its shape");
  if (out.byte_size() > 0) std::memcpy(out.mutable_bytes(), bytes.data() + start + length, out.byte_size());
  return out;
}

std::string to_npy(const Tensor& tensor) {
  std::string_view code;
  for (const NpyType& row : npy_types)
    if (row.dtype == tensor.dtype()) code = row.code;
  CHECK(!code.empty());
  std::string shape;
  for (int64_t d : tensor.dims()) shape += fmt::format("{}, ", d);
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", code, shape);
  header.append(64 - (10 + header.size() + 1) % 64, ' ');
  header += '\n';
  std::string out("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(header.size() & 0xff);
  out += static_cast<char>(header.size() >> 8);
  out += header;
  out.append(reinterpret_cast<const char*>(tensor.bytes()), tensor.byte_size());
  return out;
}

std::vector<HostValue> make_inputs(const std::vector<std::string>& specifications, const ir::Function& main,
                                   uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto& parameters = main.body.parameters;
  std::vector<HostValue> values(parameters.size());
  for (const std::string& given : specifications) {
    size_t equals = given.find('=');
    bool named = equals != std::string::npos;
    if (!named && parameters.size() != 1)
      fail("--input '{}' must be NAME=VALUE, since the model has {} inputs", given, parameters.size());
    std::string name = named ? given.substr(0, equals) : parameters[0]->name;
    size_t at = 0;
    while (at < parameters.size() && parameters[at]->name != name) ++at;
    if (at == parameters.size()) {
      std::string known;
      for (const auto& p : parameters) known += (known.empty() ? "'" : "', '") + p->name;
      fail("the model has no input '{}'; its inputs are {}'", name, known);
    }
    if (!values[at].is_absent()) fail("input '{}' is given twice", name);
    values[at] = make_input(named ? given.substr(equals + 1) : given, parameters[at]->type, random);
  }
  return values;
}

}  // namespace selkie::cli
