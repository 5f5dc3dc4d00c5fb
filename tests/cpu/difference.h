// How results of kernels differ from those of the reference evaluator, in words; nothing where they agree.
#pragma once

#include <cmath>
#include <string>

#include "base/convert.h"
#include "base/host_value.h"

namespace selkie::tests {

inline std::string difference(const Tensor& actual, const Tensor& expected) {
  if (actual.dtype() != expected.dtype() || actual.dims() != expected.dims())
    return fmt::format("{} is not {}", HostValue(actual).describe(), HostValue(expected).describe());
  if (actual.dtype() == DType::str || is_complex(actual.dtype())) return {};
  std::vector<double> a = widen<double>(actual);
  std::vector<double> e = widen<double>(expected);
  double scale = 1;
  for (double v : e)
    if (std::isfinite(v)) scale = std::max(scale, std::fabs(v));
  double tolerance = is_float(actual.dtype()) ? scale * (info(actual.dtype()).bits < 32 ? 1e-2 : 1e-4) : 0;
  for (size_t i = 0; i < a.size(); ++i) {
    bool same = a[i] == e[i] || (std::isnan(a[i]) && std::isnan(e[i])) || std::fabs(a[i] - e[i]) <= tolerance;
    if (!same) return fmt::format("element {} is {}, not {}", i, a[i], e[i]);
  }
  return {};
}

inline std::string difference(const HostValue& actual, const HostValue& expected) {
  if (actual.is_tensor() && expected.is_tensor()) return difference(actual.tensor(), expected.tensor());
  if (actual.is_sequence() && expected.is_sequence() && actual.sequence().size() == expected.sequence().size()) {
    for (size_t i = 0; i < actual.sequence().size(); ++i)
      if (std::string text = difference(actual.sequence()[i], expected.sequence()[i]); !text.empty()) return text;
    return {};
  }
  return actual.describe() == expected.describe() ? "" : actual.describe() + " is not " + expected.describe();
}

}  // namespace selkie::tests
