#include "ops/support/cast.h"

#include <cmath>
#include <cstdlib>

#include "base/convert.h"

namespace selkie::ops {
namespace {

// As C++ streams would read it, plus the spellings of NaN and infinity that numpy takes.
double parse_number(const std::string& text) {
  char* end = nullptr;
  double value = std::strtod(text.c_str(), &end);
  while (*end == ' ') ++end;
  if (text.empty() || *end != '\0') fail("the string '{}' is not a number", text);
  return value;
}

int64_t parse_integer(const std::string& text) {
  char* end = nullptr;
  errno = 0;
  int64_t value = std::strtoll(text.c_str(), &end, 10);
  if (!text.empty() && *end == '\0' && errno == 0) return value;
  return static_cast<int64_t>(parse_number(text));
}

Tensor from_strings(const Tensor& input, DType dtype, CastRules rules) {
  if (is_integer(dtype)) {
    std::vector<int64_t> values;
    for (const std::string& s : input.values<std::string>()) values.push_back(parse_integer(s));
    return narrow<int64_t>(values, dtype, input.dims());
  }
  std::vector<double> values;
  for (const std::string& s : input.values<std::string>()) values.push_back(parse_number(s));
  return cast(narrow<double>(values, DType::f64, input.dims()), dtype, rules);
}

std::string spell(double value, DType dtype) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "INF" : "-INF";
  return dtype == DType::f64 ? fmt::format("{}", value) : fmt::format("{}", static_cast<float>(value));
}

Tensor to_strings(const Tensor& input) {
  std::vector<std::string> out;
  dispatch_number(input.dtype(), [&](auto tag) {
    using W = typename decltype(tag)::type;
    for (W value : widen<W>(input)) {
      if constexpr (std::is_same_v<W, double>)
        out.push_back(spell(value, input.dtype()));
      else
        out.push_back(fmt::format("{}", value));
    }
  });
  return narrow<std::string>(out, DType::str, input.dims());
}

Tensor to_narrow_float(const Tensor& input, DType dtype, CastRules rules) {
  std::vector<double> values = widen<double>(input);
  Tensor out(dtype, input.dims());
  for (size_t i = 0; i < values.size(); ++i)
    out.mutable_data<uint8_t>()[i] =
        static_cast<uint8_t>(dtype == DType::f8e8m0 ? encode_e8m0(values[i], rules.overflow, rules.rounding)
                                                    : encode_float(dtype, values[i], rules.overflow));
  return out;
}

}  // namespace

Tensor cast(const Tensor& input, DType dtype, CastRules rules) {
  if (input.dtype() == dtype) return input;
  if (input.dtype() == DType::str) return from_strings(input, dtype, rules);
  if (dtype == DType::str) return to_strings(input);
  if (is_complex(input.dtype()) || is_complex(dtype))
    return narrow<std::complex<double>>(widen<std::complex<double>>(input), dtype, input.dims());
  if (is_float(dtype) && element_size(dtype) == 1) return to_narrow_float(input, dtype, rules);
  return dispatch_number(input.dtype(), [&](auto tag) {
    using W = typename decltype(tag)::type;
    return narrow<W>(widen<W>(input), dtype, input.dims());
  });
}

}  // namespace selkie::ops
