#include "api/overlap.h"

#include <algorithm>

namespace selkie::api {
namespace {

bool contains(const Tensor& tensor, const std::byte* at) {
  return tensor.dtype() != DType::str && at >= tensor.bytes() && at < tensor.bytes() + tensor.byte_size();
}

bool contains(const HostValue& value, const std::byte* at) {
  if (value.is_tensor()) return contains(value.tensor(), at);
  if (value.is_sequence()) return api::contains(value.sequence(), at);
  if (value.is_optional()) return value.optional().value && contains(*value.optional().value, at);
  return value.is_map() && (contains(value.map().keys, at) || contains(value.map().values, at));
}

}  // namespace

bool contains(std::span<const HostValue> values, const std::byte* at) {
  return std::ranges::any_of(values, [&](const HostValue& value) { return contains(value, at); });
}

}  // namespace selkie::api
