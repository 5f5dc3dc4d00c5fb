#include "base/host_value.h"

namespace selkie {

std::string HostValue::describe() const {
  if (is_absent()) return "absent";
  if (is_tensor()) return fmt::format("{}{}", name(tensor().dtype()), to_string(tensor().dims()));
  if (is_sequence()) return fmt::format("a sequence of {} items", sequence().size());
  if (is_optional()) return optional().value ? "an optional of " + optional().value->describe() : "an empty optional";
  if (is_map()) return fmt::format("a map of {} keys", map().keys.count());
  if (is_closure()) return fmt::format("a closure of @{}", closure().function);
  return record().constructor.empty() ? fmt::format("a tuple of {}", record().fields.size())
                                      : fmt::format("a value {}(…)", record().constructor);
}

}  // namespace selkie
