#include "ops/support/quantize.h"

#include <algorithm>
#include <cmath>

#include "ops/support/elementwise.h"

namespace selkie::ops {

Granularity::Granularity(const Dims& dims, const Dims& scale, int64_t axis, int64_t block_size) {
  if (block_size < 0) fail("attribute 'block_size' is {}, but must not be negative", block_size);
  if (block_size == 0 && element_count(scale) == 1) return;
  auto rank = static_cast<int64_t>(dims.size());
  axis = rank == 1 ? 0 : normalize_axis(axis, rank);
  auto at = static_cast<size_t>(axis);
  inner_ = std::max<int64_t>(product(dims, axis + 1, rank), 1);
  extent_ = std::max<int64_t>(dims[at], 1);
  if (block_size == 0) {
    if (scale.size() != 1 || scale[0] != dims[at])
      fail("a scale of shape {} is neither one element nor a vector along axis {} of shape {}", to_string(scale), axis,
           to_string(dims));
    along_stride_ = 1;
    return;
  }
  Dims blocks = dims;
  blocks[at] = dims[at] / block_size + (dims[at] % block_size != 0);
  if (scale != blocks)
    fail("a scale of shape {} does not fit blocks of {} along axis {} of shape {}, which need {}", to_string(scale),
         block_size, axis, to_string(dims), to_string(blocks));
  block_ = block_size;
  inner_stride_ = 1;
  along_stride_ = inner_;
  before_stride_ = inner_ * blocks[at];
}

double add_zero_point(double scaled, double zero_point, DType dtype) {
  if (is_float(dtype)) return scaled + zero_point;
  int bits = info(dtype).bits;
  double low = is_signed_integer(dtype) ? -std::ldexp(1.0, bits - 1) : 0;
  double high = low + std::ldexp(1.0, bits) - 1;
  if (std::isnan(scaled)) return std::clamp(zero_point, low, high);
  return std::clamp(std::nearbyint(scaled) + zero_point, low, high);
}

Tensor store_quantized(const std::vector<double>& values, DType dtype, Dims dims, Overflow overflow) {
  if (overflow == Overflow::saturate || !is_float(dtype)) return narrow<double>(values, dtype, std::move(dims));
  Tensor out(dtype, std::move(dims));
  std::transform(values.begin(), values.end(), out.mutable_data<uint8_t>(),
                 [&](double v) { return static_cast<uint8_t>(encode_float(dtype, v, overflow)); });
  return out;
}

Tensor as_column(const Tensor& parameter, int64_t rank) {
  return rank >= 2 && parameter.rank() == 1 && parameter.count() != 1 ? parameter.reshaped({parameter.dim(0), 1})
                                                                      : parameter;
}

Tensor centered(const Tensor& x, const Tensor* zero_point, bool per_row) {
  auto run = [&](auto tag, DType wide) {
    using W = typename decltype(tag)::type;
    if (zero_point == nullptr) return narrow<W>(widen<W>(x), wide, x.dims());
    Tensor zero = broadcast_to(per_row                    ? as_column(*zero_point, x.rank())
                               : zero_point->count() == 1 ? zero_point->reshaped({})
                                                          : *zero_point,
                               x.dims());
    return map_pairs<W>(x, zero, wide, [](W a, W b) { return a - b; });
  };
  return is_float(x.dtype()) ? run(TypeTag<double>{}, DType::f64) : run(TypeTag<int64_t>{}, DType::i64);
}

Tensor dequantized(const Tensor& x, const Tensor& scale, const Tensor* zero_point, bool per_row) {
  Tensor factor = broadcast_to(per_row              ? as_column(scale, x.rank())
                               : scale.count() == 1 ? scale.reshaped({})
                                                    : scale,
                               x.dims());
  return map_pairs<double>(centered(x, zero_point, per_row), factor, DType::f64,
                           [](double a, double b) { return a * b; });
}

DynamicallyQuantized quantize_dynamically(const Tensor& x) {
  std::vector<float> values = widen<float>(x);
  float low = 0;
  float high = 0;
  for (float v : values) {
    low = std::min(low, v);
    high = std::max(high, v);
  }
  float scale = (high == low ? 1.0f : high - low) / 255.0f;
  auto zero = static_cast<float>(add_zero_point(-low / scale, 0, DType::u8));
  std::vector<double> quantized;
  for (float v : values) quantized.push_back(add_zero_point(v / scale, zero, DType::u8));
  return {store_quantized(quantized, DType::u8, x.dims()), scale, static_cast<uint8_t>(zero)};
}

}  // namespace selkie::ops
