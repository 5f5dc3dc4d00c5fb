// Values of the C API: tensors over the caller's memory or their own, strings, sequences, optionals, maps and buffers.
#include <algorithm>
#include <numeric>

#include "api/handles.h"

namespace selkie::api {
namespace {

constexpr size_t most_axes = 64;
constexpr int most_nesting = 64;

DType require_dtype(selkie_dtype dtype) {
  std::optional<DType> known = dtype_from_onnx(dtype);
  if (!known) misuse("there is no type of elements {}", dtype);
  return *known;
}

Dims require_dims(const int64_t* dims, size_t rank) {
  if (rank > most_axes) misuse("rank {} is more than {}", rank, most_axes);
  if (dims == nullptr && rank > 0) misuse("dims is NULL, but the rank is {}", rank);
  return {dims, dims + rank};
}

// Dims whose elements the caller's memory holds.
Dims require_numbers(DType dtype, const int64_t* dims, size_t rank, const void* data, size_t bytes) {
  if (dtype == DType::str) misuse("strings are made by selkie_value_strings");
  Dims known = require_dims(dims, rank);
  int64_t count = element_count(known);
  auto needed = static_cast<unsigned __int128>(count) * element_size(dtype);
  if (needed > bytes)
    misuse("a tensor {}{} has {} elements of {} bytes each, but only {} bytes are given", name(dtype), to_string(known),
           count, element_size(dtype), bytes);
  if (data == nullptr && count > 0)
    misuse("data is NULL, but a tensor {}{} has elements", name(dtype), to_string(known));
  return known;
}

Tensor view_of(DType dtype, Dims dims, const void* data) {
  size_t alignment = std::min<size_t>(element_size(dtype), 8);
  if (reinterpret_cast<uintptr_t>(data) % alignment != 0)
    misuse("data is not aligned to {} bytes, as elements {} must be", alignment, name(dtype));
  return Tensor::view(dtype, std::move(dims), static_cast<const std::byte*>(data), nullptr);
}

Tensor copy_of(DType dtype, Dims dims, const void* data) {
  Tensor tensor(dtype, std::move(dims));
  if (tensor.byte_size() > 0) std::memcpy(tensor.mutable_bytes(), data, tensor.byte_size());
  return tensor;
}

const Tensor* tensor_of(const selkie_value* value) {
  return is_live(value) && value->value.is_tensor() ? &value->value.tensor() : nullptr;
}

const Tensor& require_tensor(const selkie_value* value, const char* argument) {
  const HostValue& content = require_content(value, argument);
  if (!content.is_tensor()) misuse("{} is {}, but must be a tensor", argument, content.describe());
  return content.tensor();
}

int nesting_around(int inner) {
  if (inner >= most_nesting) misuse("values are nested more than {} deep", most_nesting);
  return inner + 1;
}

// Elements in another order.
Tensor permuted(const Tensor& from, std::span<const size_t> order) {
  Tensor to(from.dtype(), from.dims());
  if (from.dtype() == DType::str) {
    std::ranges::transform(order, to.mutable_data<std::string>(),
                           [&](size_t at) { return from.values<std::string>()[at]; });
    return to;
  }
  size_t size = element_size(from.dtype());
  for (size_t i = 0; i < order.size(); ++i)
    std::memcpy(to.mutable_bytes() + i * size, from.bytes() + order[i] * size, size);
  return to;
}

template <class Key>
std::vector<size_t> sorted_order(std::span<const Key> keys) {
  std::vector<size_t> order(keys.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t at) { return keys[at]; });
  auto is_same = [&](size_t a, size_t b) { return keys[a] == keys[b]; };
  if (std::ranges::adjacent_find(order, is_same) != order.end()) misuse("a map has a key twice");
  return order;
}

Map make_map(const Tensor& keys, const Tensor& values) {
  if (keys.dtype() != DType::i64 && keys.dtype() != DType::str)
    misuse("keys are {}, but must be i64 or strings", name(keys.dtype()));
  if (keys.rank() != 1 || values.dims() != keys.dims())
    misuse("keys are {} and values {}, but both must be of rank 1 and equally many", to_string(keys.dims()),
           to_string(values.dims()));
  std::vector<size_t> order =
      keys.dtype() == DType::str ? sorted_order(keys.values<std::string>()) : sorted_order(keys.values<int64_t>());
  return {.keys = permuted(keys, order), .values = permuted(values, order)};
}

const HostValue& item_of(const HostValue& value, size_t index, HostValue& made) {
  auto one_of = [&](const std::vector<HostValue>& items) -> const HostValue& {
    if (index >= items.size()) misuse("there is no item {}: the value has {}", index, items.size());
    return items[index];
  };
  if (value.is_sequence()) return one_of(value.sequence());
  if (value.is_record()) return one_of(value.record().fields);
  if (value.is_optional()) {
    if (index > 0 || !value.optional().value) misuse("the optional has no item {}", index);
    return *value.optional().value;
  }
  if (!value.is_map()) misuse("{} has no items", value.describe());
  if (index > 1) misuse("a map has keys (0) and values (1), but no item {}", index);
  return made = index == 0 ? value.map().keys : value.map().values;
}

}  // namespace

const HostValue& require_content(const selkie_value* value, const char* argument) {
  const selkie_value& handle = require(value, argument);
  const HostValue& content = handle.value;
  if (content.is_absent()) misuse("{} is a buffer that no run has written", argument);
  if (handle.is_buffer && content.tensor().bytes() == nullptr)
    misuse("{} is a buffer that was not written, since a result did not fit", argument);
  return content;
}

}  // namespace selkie::api

using namespace selkie;
using namespace selkie::api;

selkie_status selkie_value_view(selkie_dtype dtype, const int64_t* dims, size_t rank, const void* data, size_t bytes,
                                selkie_value** value) {
  return guarded(SELKIE_INVALID_ARGUMENT, [&] {
    selkie_value*& made = require_result(value, "value");
    DType known = require_dtype(dtype);
    Dims sizes = require_numbers(known, dims, rank, data, bytes);
    // Nobody reads what is empty, but its address must be one.
    bool is_empty = element_count(sizes) == 0;
    made = new selkie_value(is_empty ? Tensor(known, std::move(sizes)) : view_of(known, std::move(sizes), data));
  });
}

selkie_status selkie_value_copy(selkie_dtype dtype, const int64_t* dims, size_t rank, const void* data, size_t bytes,
                                selkie_value** value) {
  return guarded(SELKIE_INVALID_ARGUMENT, [&] {
    selkie_value*& made = require_result(value, "value");
    DType known = require_dtype(dtype);
    made = new selkie_value(copy_of(known, require_numbers(known, dims, rank, data, bytes), data));
  });
}

selkie_status selkie_value_strings(const int64_t* dims, size_t rank, const char* const* texts, const size_t* lengths,
                                   size_t count, selkie_value** value) {
  return guarded(SELKIE_INVALID_ARGUMENT, [&] {
    selkie_value*& made = require_result(value, "value");
    Dims sizes = require_dims(dims, rank);
    std::span<const char* const> given = require_list(texts, count, "texts");
    if (element_count(sizes) != static_cast<int64_t>(count))
      misuse("a tensor {} has {} elements, but {} texts are given", to_string(sizes), element_count(sizes), count);
    Tensor tensor(DType::str, std::move(sizes));
    auto* to = tensor.mutable_data<std::string>();
    for (size_t i = 0; i < count; ++i) {
      if (given[i] == nullptr) misuse("text {} is NULL", i);
      to[i] = lengths == nullptr ? std::string(given[i]) : std::string(given[i], lengths[i]);
    }
    made = new selkie_value(std::move(tensor));
  });
}

selkie_status selkie_value_sequence(const selkie_value* const* items, size_t count, selkie_value** value) {
  return guarded(SELKIE_INVALID_ARGUMENT, [&] {
    selkie_value*& made = require_result(value, "value");
    Sequence sequence;
    int nesting = 0;
    for (const selkie_value* item : require_list(items, count, "items")) {
      sequence.items.push_back(require_content(item, "an item"));
      nesting = std::max(nesting, item->nesting);
    }
    made = new selkie_value(std::move(sequence), nesting_around(nesting));
  });
}

selkie_status selkie_value_optional(const selkie_value* item, selkie_value** value) {
  return guarded(SELKIE_INVALID_ARGUMENT, [&] {
    selkie_value*& made = require_result(value, "value");
    if (item == nullptr) {
      made = new selkie_value(Optional{});
      return;
    }
    auto content = std::make_shared<const HostValue>(require_content(item, "item"));
    made = new selkie_value(Optional{std::move(content)}, nesting_around(item->nesting));
  });
}

selkie_status selkie_value_map(const selkie_value* keys, const selkie_value* values, selkie_value** value) {
  return guarded(SELKIE_INVALID_ARGUMENT, [&] {
    selkie_value*& made = require_result(value, "value");
    made = new selkie_value(make_map(require_tensor(keys, "keys"), require_tensor(values, "values")));
  });
}

selkie_status selkie_value_buffer(void* data, size_t bytes, selkie_value** value) {
  return guarded(SELKIE_INVALID_ARGUMENT, [&] {
    selkie_value*& made = require_result(value, "value");
    if (data == nullptr && bytes > 0) misuse("data is NULL, but is to have {} bytes", bytes);
    made = new selkie_value(data, bytes);
  });
}

void selkie_value_free(selkie_value* value) {
  if (is_live(value)) delete value;
}

selkie_kind selkie_value_kind(const selkie_value* value) {
  if (!is_live(value)) return SELKIE_NONE;
  const HostValue& content = value->value;
  if (content.is_tensor()) return SELKIE_TENSOR;
  if (content.is_sequence()) return SELKIE_SEQUENCE;
  if (content.is_optional()) return SELKIE_OPTIONAL;
  if (content.is_map()) return SELKIE_MAP;
  return content.is_record() ? SELKIE_TUPLE : SELKIE_NONE;
}

selkie_dtype selkie_value_dtype(const selkie_value* value) {
  const Tensor* tensor = tensor_of(value);
  return tensor == nullptr ? 0 : static_cast<selkie_dtype>(tensor->dtype());
}

size_t selkie_value_rank(const selkie_value* value) {
  const Tensor* tensor = tensor_of(value);
  return tensor == nullptr ? 0 : tensor->dims().size();
}

const int64_t* selkie_value_dims(const selkie_value* value) {
  static const int64_t none = 0;  // what the dims of a scalar point to
  const Tensor* tensor = tensor_of(value);
  if (tensor == nullptr) return nullptr;
  return tensor->dims().empty() ? &none : tensor->dims().data();
}

size_t selkie_value_count(const selkie_value* value) {
  if (!is_live(value)) return 0;
  const HostValue& content = value->value;
  if (content.is_tensor()) return static_cast<size_t>(content.tensor().count());
  if (content.is_sequence()) return content.sequence().size();
  if (content.is_optional()) return content.optional().value ? 1 : 0;
  if (content.is_map()) return static_cast<size_t>(content.map().keys.count());
  return content.is_record() ? content.record().fields.size() : 0;
}

size_t selkie_value_bytes(const selkie_value* value) {
  const Tensor* tensor = tensor_of(value);
  return tensor == nullptr || tensor->dtype() == DType::str ? 0 : tensor->byte_size();
}

const void* selkie_value_data(const selkie_value* value) {
  const Tensor* tensor = tensor_of(value);
  return tensor == nullptr || tensor->dtype() == DType::str ? nullptr : tensor->bytes();
}

selkie_status selkie_value_read(const selkie_value* value, void* data, size_t bytes) {
  return guarded(SELKIE_INVALID_ARGUMENT, [&] {
    const Tensor& tensor = require_tensor(value, "value");
    if (tensor.dtype() == DType::str) misuse("strings are read by selkie_value_string");
    if (tensor.byte_size() > bytes)
      throw Refusal(SELKIE_BUFFER_TOO_SMALL,
                    fmt::format("a tensor {}{} has {} bytes, but there is room for {}", name(tensor.dtype()),
                                to_string(tensor.dims()), tensor.byte_size(), bytes));
    if (data == nullptr && tensor.byte_size() > 0) misuse("data is NULL");
    if (tensor.byte_size() > 0) std::memmove(data, tensor.bytes(), tensor.byte_size());
  });
}

selkie_status selkie_value_string(const selkie_value* value, size_t index, const char** text, size_t* length) {
  return guarded(SELKIE_INVALID_ARGUMENT, [&] {
    const char*& found = require_result(text, "text");
    if (length == nullptr) misuse("length is NULL");
    *length = 0;
    const Tensor& tensor = require_tensor(value, "value");
    if (tensor.dtype() != DType::str) misuse("the elements are {}, and no strings", name(tensor.dtype()));
    std::span<const std::string> texts = tensor.values<std::string>();
    if (index >= texts.size()) misuse("there is no string {}: the tensor has {}", index, texts.size());
    found = texts[index].c_str();
    *length = texts[index].size();
  });
}

selkie_status selkie_value_item(const selkie_value* value, size_t index, selkie_value** item) {
  return guarded(SELKIE_INVALID_ARGUMENT, [&] {
    selkie_value*& made = require_result(item, "item");
    HostValue part;
    const HostValue& found = item_of(require_content(value, "value"), index, part);
    made = new selkie_value(found, value->nesting);
  });
}
