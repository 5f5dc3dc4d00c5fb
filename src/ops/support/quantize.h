// Linear quantisation, shared by its operators: q = saturate(round(x / scale) + zero point).
#pragma once

#include "base/float_formats.h"
#include "base/tensor.h"

namespace selkie::ops {

// Which element of a scale or zero point belongs to an element of the quantised tensor: one for all, one per index of
// an axis, or one per block along an axis.
class Granularity {
 public:
  // Fails where the shapes do not fit. A block size of 0 means no blocks.
  Granularity(const Dims& dims, const Dims& scale, int64_t axis, int64_t block_size);
  size_t operator()(int64_t element) const {
    int64_t along = element / inner_ % extent_;
    int64_t before = element / inner_ / extent_;
    return static_cast<size_t>(before * before_stride_ + along / block_ * along_stride_ +
                               element % inner_ * inner_stride_);
  }

 private:
  int64_t inner_ = 1;
  int64_t extent_ = 1;
  int64_t block_ = 1;
  int64_t before_stride_ = 0;
  int64_t along_stride_ = 0;
  int64_t inner_stride_ = 0;
};

// Quantised values from x / scale: integers round to even, add the zero point and saturate; floats only add it.
double add_zero_point(double scaled, double zero_point, DType dtype);
// Stores what `add_zero_point` gave.
Tensor store_quantized(const std::vector<double>& values, DType dtype, Dims dims,
                       Overflow overflow = Overflow::saturate);

// Wide copies of a quantised tensor, less its zero point: i64 for integers, f64 for floats.
// The zero point broadcasts to x; `per_row` reads a vector of several elements as one per row of a matrix.
Tensor centered(const Tensor& x, const Tensor* zero_point, bool per_row = false);
// A vector of parameters per row as a column, so that it broadcasts over a matrix's rows.
Tensor as_column(const Tensor& parameter, int64_t rank);
// (x − zero point) · scale as f64, where both broadcast to x.
Tensor dequantized(const Tensor& x, const Tensor& scale, const Tensor* zero_point, bool per_row = false);

// What DynamicQuantizeLinear gives: x as u8 over the range of its values, which is widened to hold 0.
struct DynamicallyQuantized {
  Tensor values;
  float scale;
  uint8_t zero_point;
};
DynamicallyQuantized quantize_dynamically(const Tensor& x);

}  // namespace selkie::ops
