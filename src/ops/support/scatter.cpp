#include "ops/support/scatter.h"

#include <algorithm>

#include "base/convert.h"

namespace selkie::ops {

Tensor scatter(const Tensor& data, const std::vector<int64_t>& targets, const Tensor& updates,
               const std::string& reduction) {
  if (updates.count() != static_cast<int64_t>(targets.size()))
    fail("{} updates are given for {} places", updates.count(), targets.size());
  if (reduction == "none") {
    Tensor out(data.dtype(), data.dims());
    dispatch_storage(data.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      std::copy_n(data.data<T>(), data.count(), out.mutable_data<T>());
      for (size_t i = 0; i < targets.size(); ++i) out.mutable_data<T>()[targets[i]] = updates.data<T>()[i];
    });
    return out;
  }
  if (reduction != "add" && reduction != "mul" && reduction != "max" && reduction != "min")
    fail("reduction is '{}', but must be none, add, mul, max or min", reduction);
  return dispatch_number(data.dtype(), [&](auto tag) {
    using W = typename decltype(tag)::type;
    using A = std::conditional_t<std::is_same_v<W, int64_t>, uint64_t, W>;  // sums and products of integers wrap
    std::vector<W> values = widen<W>(data);
    std::vector<W> news = widen<W>(updates);
    for (size_t i = 0; i < targets.size(); ++i) {
      W& at = values[static_cast<size_t>(targets[i])];
      if (reduction == "add")
        at = static_cast<W>(static_cast<A>(at) + static_cast<A>(news[i]));
      else if (reduction == "mul")
        at = static_cast<W>(static_cast<A>(at) * static_cast<A>(news[i]));
      else
        at = reduction == "max" ? std::max(at, news[i]) : std::min(at, news[i]);
    }
    return narrow<W>(values, data.dtype(), data.dims());
  });
}

}  // namespace selkie::ops
