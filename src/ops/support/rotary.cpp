#include "ops/support/rotary.h"

#include "base/convert.h"

namespace selkie::ops {

void rotate_heads(Heads& x, const std::vector<int64_t>& rows, const Tensor& cosines, const Tensor& sines,
                  bool interleaved) {
  auto half = static_cast<size_t>(cosines.dims().back());
  CHECK(2 * half <= static_cast<size_t>(x.size));
  std::vector<double> c = widen<double>(cosines);
  std::vector<double> s = widen<double>(sines);
  for_each_row(x, [&](int64_t b, int64_t, int64_t t, std::span<double> head) {
    size_t row = static_cast<size_t>(rows[static_cast<size_t>(b * x.length + t)]) * half;
    for (size_t i = 0; i < half; ++i) {
      double& first = head[interleaved ? 2 * i : i];
      double& second = head[interleaved ? 2 * i + 1 : i + half];
      double real = c[row + i] * first - s[row + i] * second;
      second = s[row + i] * first + c[row + i] * second;
      first = real;
    }
  });
}

}  // namespace selkie::ops
