#include "compare.h"

#include <cmath>

#include "base/convert.h"

namespace selkie::cli {
namespace {

bool close(double a, double e, Tolerance t) {
  if (std::isnan(a) || std::isnan(e)) return std::isnan(a) && std::isnan(e);
  if (std::isinf(a) || std::isinf(e)) return a == e;
  return std::fabs(a - e) <= t.atol + t.rtol * std::fabs(e);
}

template <class W>
bool agrees(const W& a, const W& e, Tolerance t) {
  if constexpr (std::is_same_v<W, std::complex<double>>)
    return close(a.real(), e.real(), t) && close(a.imag(), e.imag(), t);
  else if constexpr (std::is_same_v<W, double>)
    return close(a, e, t);
  else
    return a == e;
}

template <class W>
std::string show(const W& value) {
  if constexpr (std::is_same_v<W, std::complex<double>>)
    return fmt::format("{}+{}i", value.real(), value.imag());
  else
    return fmt::format("{}", value);
}

std::string tensor_difference(const Tensor& actual, const Tensor& expected, Tolerance tolerance) {
  if (actual.dtype() != expected.dtype())
    return fmt::format("type is {}, expected {}", name(actual.dtype()), name(expected.dtype()));
  if (actual.dims() != expected.dims())
    return fmt::format("shape is {}, expected {}", to_string(actual.dims()), to_string(expected.dims()));
  return dispatch_wide(actual.dtype(), [&](auto tag) -> std::string {
    using W = typename decltype(tag)::type;
    std::vector<W> a = widen<W>(actual);
    std::vector<W> e = widen<W>(expected);
    size_t wrong = 0;
    size_t first = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      if (agrees(a[i], e[i], tolerance)) continue;
      if (wrong++ == 0) first = i;
    }
    if (wrong == 0) return "";
    return fmt::format("{} of {} elements differ, the first at {}: {}, expected {}", wrong, a.size(), first,
                       show(a[first]), show(e[first]));
  });
}

}  // namespace

std::string difference(const HostValue& actual, const HostValue& expected, Tolerance tolerance) {
  if (actual.is_tensor() && expected.is_tensor())
    return tensor_difference(actual.tensor(), expected.tensor(), tolerance);
  if (actual.is_optional() && expected.is_optional()) {
    bool empty = !actual.optional().value;
    if (empty != !expected.optional().value)
      return fmt::format("is {}, expected {}", actual.describe(), expected.describe());
    return empty ? "" : difference(*actual.optional().value, *expected.optional().value, tolerance);
  }
  // A value stands for an optional that holds it.
  if (expected.is_optional() && expected.optional().value)
    return difference(actual, *expected.optional().value, tolerance);
  if (actual.is_optional() && actual.optional().value) return difference(*actual.optional().value, expected, tolerance);
  if (actual.is_map() && expected.is_map()) {
    std::string keys = tensor_difference(actual.map().keys, expected.map().keys, tolerance);
    return keys.empty() ? tensor_difference(actual.map().values, expected.map().values, tolerance) : "keys: " + keys;
  }
  if (!actual.is_sequence() || !expected.is_sequence() || actual.sequence().size() != expected.sequence().size())
    return fmt::format("is {}, expected {}", actual.describe(), expected.describe());
  for (size_t i = 0; i < actual.sequence().size(); ++i) {
    std::string item = difference(actual.sequence()[i], expected.sequence()[i], tolerance);
    if (!item.empty()) return fmt::format("item {}: {}", i, item);
  }
  return "";
}

}  // namespace selkie::cli
