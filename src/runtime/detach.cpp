#include "runtime/detach.h"

#include <algorithm>

namespace selkie::runtime {

bool is_attached(const HostValue& value, const ArenaMemory& arena) {
  if (value.is_sequence())
    return std::ranges::any_of(value.sequence(), [&](const HostValue& item) { return is_attached(item, arena); });
  if (value.is_optional()) return value.optional().value && is_attached(*value.optional().value, arena);
  if (!value.is_tensor()) return false;
  return arena.holds(value.tensor().bytes());
}

HostValue detached(HostValue value, const ArenaMemory& arena, Buffers& buffers) {
  if (!is_attached(value, arena)) return value;
  if (value.is_tensor()) {
    const Tensor& tensor = value.tensor();
    const std::byte* at = tensor.bytes();
    Tensor copy = buffers.tensor(tensor.dtype(), tensor.dims());
    std::copy(at, at + tensor.byte_size(), copy.mutable_bytes());
    return copy;
  }
  if (value.is_sequence()) {
    Sequence items;
    for (const HostValue& item : value.sequence()) items.items.push_back(detached(item, arena, buffers));
    return items;
  }
  return Optional{std::make_shared<const HostValue>(detached(*value.optional().value, arena, buffers))};
}

}  // namespace selkie::runtime
