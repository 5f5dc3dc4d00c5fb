#include "base/host_value.h"

namespace selkie {

void HostValue::release() {
  // Set while this thread takes a value apart: what is found inside queues up here.
  static thread_local std::vector<Content>* pending = nullptr;
  if (pending != nullptr) {
    pending->push_back(std::exchange(content_, {}));
    return;
  }
  std::vector<Content> queue;
  pending = &queue;
  content_ = {};
  while (!queue.empty()) {
    Content next = std::move(queue.back());
    queue.pop_back();
  }
  pending = nullptr;
}

std::string HostValue::describe() const {
  if (is_absent()) return "absent";
  if (is_tensor()) return fmt::format("{}{}", name(tensor().dtype()), to_string(tensor().dims()));
  if (is_sequence()) return fmt::format("a sequence of {} items", sequence().size());
  if (is_optional()) {
    if (!optional().value) return "an empty optional";
    return optional().value->is_optional() ? "an optional of an optional"
                                           : "an optional of " + optional().value->describe();
  }
  if (is_map()) return fmt::format("a map of {} keys", map().keys.count());
  if (is_closure()) return fmt::format("a closure of @{}", closure().function);
  return record().constructor.empty() ? fmt::format("a tuple of {}", record().fields.size())
                                      : fmt::format("a value {}(…)", record().constructor);
}

}  // namespace selkie
