#include "program/file.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>

#include "program/checksum.h"
#include "program/fields.h"
#include "program/layout.h"
#include "program/verify.h"

namespace selkie::program {

void fields(auto& archive, Is<HostEntry> auto& entry) {
  auto& [node, captured] = entry;
  archive(node, captured);
}

namespace {

constexpr std::string_view magic = "selkie\x1a\n";
// Of what the layout below does not show: the meaning of a field, the way library kernels pack weights.
constexpr uint32_t version = 1;
constexpr uint64_t alignment = 64;     // of a constant in the file
constexpr uint64_t page_bytes = 4096;  // of a section

// Where the elements of a constant are, or the strings that it has instead.
struct TensorEntry {
  DType dtype = DType::f32;
  std::vector<int64_t> dims;
  uint64_t offset = 0;  // in the section of weights
  std::vector<std::string> strings;
};

void fields(auto& archive, Is<TensorEntry> auto& entry) {
  auto& [dtype, dims, offset, strings] = entry;
  archive(dtype, dims, offset, strings);
}

// The first section: everything but code and weights.
struct Contents {
  Program program;
  std::vector<Program> functions;
  std::vector<TensorEntry> constants;
  std::string isa;
  std::map<std::string, uint64_t, std::less<>> entries;
  std::string layout, signature;
  uint64_t nodes = 0;
  std::string host_module;
  std::vector<HostEntry> host_entries;
  std::vector<std::string> host_constant_names;
  std::vector<TensorEntry> host_constants;
};

void fields(auto& archive, Is<Contents> auto& contents) {
  auto& [program, functions, constants, isa, entries, layout, signature, nodes, host_module, host_entries,
         host_constant_names, host_constants] = contents;
  archive(program, functions, constants, isa, entries, layout, signature, nodes, host_module, host_entries,
          host_constant_names, host_constants);
}

struct Section {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t sum = 0;
};

void fields(auto& archive, Is<Section> auto& section) {
  auto& [offset, bytes, sum] = section;
  archive(offset, bytes, sum);
}

// After the magic bytes and the version, whose places never change; then the checksum of both.
struct Header {
  uint64_t layout = 0;  // of Contents
  Section contents, code, weights;
};

void fields(auto& archive, Is<Header> auto& header) {
  auto& [layout, contents, code, weights] = header;
  archive(layout, contents, code, weights);
}

constexpr size_t version_at = magic.size();
constexpr size_t header_at = version_at + sizeof(version);
constexpr size_t header_bytes = 10 * sizeof(uint64_t);
constexpr size_t sum_at = header_at + header_bytes;
constexpr size_t prefix_bytes = sum_at + sizeof(uint64_t);

std::span<const std::byte> as_bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

uint64_t contents_layout() { return checksum(as_bytes(Layout::of<Contents>())); }

uint64_t rounded_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

// Tensors one behind the other; one that two names share is written once.
class WeightPlacer {
 public:
  TensorEntry place(const Tensor& tensor) {
    TensorEntry entry{.dtype = tensor.dtype(), .dims = tensor.dims(), .offset = 0, .strings = {}};
    if (tensor.dtype() == DType::str) {
      auto values = tensor.values<std::string>();
      entry.strings.assign(values.begin(), values.end());
      return entry;
    }
    if (tensor.byte_size() == 0) return entry;
    auto [at, fresh] = offsets_.try_emplace({tensor.bytes(), tensor.byte_size()}, end_);
    entry.offset = at->second;
    if (!fresh) return entry;
    parts_.push_back({.offset = end_, .bytes = {tensor.bytes(), tensor.byte_size()}});
    end_ = rounded_up(end_ + tensor.byte_size(), alignment);
    return entry;
  }

  struct Part {
    uint64_t offset;
    std::span<const std::byte> bytes;
  };
  const std::vector<Part>& parts() const { return parts_; }
  uint64_t bytes() const { return end_; }

 private:
  std::map<std::pair<const std::byte*, size_t>, uint64_t> offsets_;
  std::vector<Part> parts_;
  uint64_t end_ = 0;
};

// The checksum of the weights is one of the checksums of the parts, so that neither side holds all of them at once.
uint64_t weights_sum(std::span<const WeightPlacer::Part> parts) {
  uint64_t sum = 0;
  for (const WeightPlacer::Part& part : parts) sum = checksum(part.bytes, sum ^ part.offset);
  return sum;
}

// A file under another name until it is complete.
class NewFile {
 public:
  explicit NewFile(const std::string& path) : path_(path), partial_(fmt::format("{}.{}.partial", path, getpid())) {
    // The complete file takes the place of what is there, which must not be a device or a pipe.
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored))
      fail("cannot write '{}': it is not a regular file", path);
    out_.open(partial_, std::ios::binary);
    if (!out_) fail("cannot write '{}'", partial_);
  }
  ~NewFile() {
    std::error_code ignored;
    if (!is_done_) std::filesystem::remove(partial_, ignored);
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void write_at(uint64_t offset, std::span<const std::byte> bytes) {
    out_.seekp(static_cast<std::streamoff>(offset));
    out_.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }

  void finish(uint64_t size) {
    out_.close();
    if (!out_) fail("cannot write '{}'", partial_);
    std::error_code error;
    std::filesystem::resize_file(partial_, size, error);  // the last part may end before its section does
    if (!error) std::filesystem::rename(partial_, path_, error);
    if (error) fail("cannot write '{}': {}", path_, error.message());
    is_done_ = true;
  }

 private:
  std::string path_, partial_;
  std::ofstream out_;
  bool is_done_ = false;
};

std::string prefix(const Header& header) {
  Writer writer;
  for (char c : magic) writer.write(static_cast<uint8_t>(c));
  writer(version, header);
  uint64_t sum = checksum(as_bytes(writer.bytes()));
  writer(sum);
  CHECK(writer.bytes().size() == prefix_bytes);
  return std::string(writer.bytes());
}

// The parts of a file that have been looked at as far as a header tells.
class File {
 public:
  explicit File(const std::string& path) : map_(MappedFile::open(path)) {
    std::span<const std::byte> bytes = map_->bytes();
    if (bytes.size() < header_at || as_text(bytes.first(magic.size())) != magic)
      fail("'{}' is not a compiled model", path);
    uint32_t found = 0;
    Reader(bytes.subspan(version_at, sizeof(found)), name()).read(found);
    if (found != version) other_version();
    if (bytes.size() < prefix_bytes) fail("{} is cut off", name());
    uint64_t sum = 0;
    Reader(bytes.subspan(sum_at, sizeof(sum)), name()).read(sum);
    if (sum != checksum(bytes.first(sum_at))) fail("{} is damaged: its header is not what was written", name());
    Reader(bytes.subspan(header_at, header_bytes), name()).read(header_);
    if (header_.layout != contents_layout()) other_version();
    uint64_t end = 0;
    for (const Section* section : {&header_.contents, &header_.code, &header_.weights}) {
      if (section->offset > bytes.size() || section->bytes > bytes.size() - section->offset)
        fail("{} is cut off", name());
      end = section->offset + section->bytes;
    }
    if (end != bytes.size()) fail("{} is damaged: it should have {} bytes, but has {}", name(), end, bytes.size());
  }

  // A section whose bytes are what was written.
  std::span<const std::byte> checked(const Section& section, std::string_view what) const {
    std::span<const std::byte> bytes = unchecked(section);
    if (checksum(bytes) != section.sum) fail("{} is damaged: its {} is not what was written", name(), what);
    return bytes;
  }
  std::span<const std::byte> unchecked(const Section& section) const {
    return map_->bytes().subspan(section.offset, section.bytes);
  }

  Contents contents() const {
    Contents contents;
    Reader reader(checked(header_.contents, "program"), name());
    reader(contents);
    reader.expect_end();
    return contents;
  }

  std::vector<std::byte> code() const {
    std::span<const std::byte> bytes = checked(header_.code, "code");
    return {bytes.begin(), bytes.end()};
  }

  Tensor tensor(const TensorEntry& entry) const {
    int64_t count = element_count(entry.dims);
    if (entry.dtype == DType::str) {
      if (static_cast<uint64_t>(count) != entry.strings.size()) fail("{} is damaged: a constant of strings", name());
      return Tensor::from<std::string>(DType::str, entry.dims, entry.strings);
    }
    std::span<const std::byte> bytes = elements(entry, count);
    return Tensor::view(entry.dtype, entry.dims, bytes.data(), map_);
  }

  const Header& header() const { return header_; }
  std::string name() const { return fmt::format("'{}'", map_->path()); }

 private:
  static std::string_view as_text(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  [[noreturn]] void other_version() const {
    fail("{} was compiled by another version of Selkie: compile the model again", name());
  }

  std::span<const std::byte> elements(const TensorEntry& entry, int64_t count) const {
    std::span<const std::byte> weights = unchecked(header_.weights);
    uint64_t size = element_size(entry.dtype);
    if (entry.offset % alignment != 0 || entry.offset > weights.size() ||
        static_cast<uint64_t>(count) > (weights.size() - entry.offset) / size)
      fail("{} is damaged: a constant lies outside", name());
    return weights.subspan(entry.offset, static_cast<uint64_t>(count) * size);
  }

  std::shared_ptr<const MappedFile> map_;
  Header header_;
};

}  // namespace

bool is_artifact(const std::string& path) {
  // Opening a pipe would wait for somebody who writes to it.
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  std::ifstream in(path, std::ios::binary);
  std::string start(magic.size(), '\0');
  return in.read(start.data(), static_cast<std::streamsize>(start.size())) && start == magic;
}

uint64_t write_artifact(const Artifact& artifact, const std::string& path) {
  WeightPlacer weights;
  auto placed = [&](const Tensor& tensor) { return weights.place(tensor); };
  Contents contents{.program = artifact.program,
                    .functions = artifact.functions,
                    .constants = {},
                    .isa = artifact.image.isa,
                    .entries = artifact.image.entries,
                    .layout = artifact.layout,
                    .signature = artifact.signature,
                    .nodes = artifact.nodes,
                    .host_module = artifact.host_module,
                    .host_entries = artifact.host_entries,
                    .host_constant_names = {},
                    .host_constants = {}};
  for (const Tensor& constant : artifact.program.constants) contents.constants.push_back(placed(constant));
  for (const NamedTensor& constant : artifact.host_constants) {
    contents.host_constant_names.push_back(constant.name);
    contents.host_constants.push_back(placed(constant.tensor));
  }
  Writer writer;
  writer(contents);
  auto text = as_bytes(writer.bytes());
  std::span<const std::byte> code(artifact.image.code);
  Header header{.layout = contents_layout(),
                .contents = {.offset = page_bytes, .bytes = text.size(), .sum = checksum(text)},
                .code = {},
                .weights = {}};
  header.code = {
      .offset = rounded_up(page_bytes + text.size(), page_bytes), .bytes = code.size(), .sum = checksum(code)};
  header.weights = {.offset = rounded_up(header.code.offset + code.size(), page_bytes),
                    .bytes = weights.bytes(),
                    .sum = weights_sum(weights.parts())};
  NewFile file(path);
  file.write_at(0, as_bytes(prefix(header)));
  file.write_at(header.contents.offset, text);
  file.write_at(header.code.offset, code);
  for (const WeightPlacer::Part& part : weights.parts()) file.write_at(header.weights.offset + part.offset, part.bytes);
  uint64_t size = header.weights.offset + header.weights.bytes;
  file.finish(size);
  return size;
}

Artifact read_artifact(const std::string& path) {
  File file(path);
  Contents contents = file.contents();
  Artifact artifact{
      .program = std::move(contents.program),
      .functions = std::move(contents.functions),
      .image = {.isa = std::move(contents.isa), .code = file.code(), .entries = std::move(contents.entries)},
      .layout = std::move(contents.layout),
      .signature = std::move(contents.signature),
      .nodes = contents.nodes,
      .host_module = std::move(contents.host_module),
      .host_entries = std::move(contents.host_entries),
      .host_constants = {}};
  for (const TensorEntry& entry : contents.constants) artifact.program.constants.push_back(file.tensor(entry));
  if (contents.host_constants.size() != contents.host_constant_names.size())
    fail("{} is damaged: {} names of {} constants", file.name(), contents.host_constant_names.size(),
         contents.host_constants.size());
  for (size_t i = 0; i < contents.host_constants.size(); ++i)
    artifact.host_constants.push_back(
        {.name = std::move(contents.host_constant_names[i]), .tensor = file.tensor(contents.host_constants[i])});
  for (const auto& [kernel, offset] : artifact.image.entries)
    if (offset >= artifact.image.code.size()) fail("{} is damaged: kernel {} lies outside", file.name(), kernel);
  for (const std::string& kernel : artifact.program.kernels)
    if (!artifact.image.entries.contains(kernel)) fail("{} is damaged: there is no kernel {}", file.name(), kernel);
  verify(artifact.program, artifact.functions);
  return artifact;
}

void check_weights(const std::string& path) {
  File file(path);
  Artifact artifact = read_artifact(path);
  WeightPlacer weights;
  for (const Tensor& constant : artifact.program.constants) weights.place(constant);
  for (const NamedTensor& constant : artifact.host_constants) weights.place(constant.tensor);
  if (weights_sum(weights.parts()) != file.header().weights.sum)
    fail("{} is damaged: its weights are not what was written", file.name());
}

}  // namespace selkie::program
