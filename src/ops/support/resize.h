// Resampling of a tensor along axes: where output elements lie in the input, and what they are made of.
#pragma once

#include <string>
#include <vector>

#include "base/tensor.h"

namespace selkie::ops {

struct ResizeOptions {
  std::string mode = "nearest";
  std::string coordinates = "half_pixel";
  std::string nearest = "round_prefer_floor";
  double cubic_a = -0.75;
  double outside = 0;  // what tf_crop_and_resize gives beyond the input
  bool antialias = false;
  bool exclude_outside = false;
};

struct ResizeAxis {
  int64_t axis;
  int64_t input;
  int64_t output;
  double scale;
  double roi_begin = 0;
  double roi_end = 1;
};

// The input resampled along each of the axes, one after the other.
Tensor resize(const Tensor& input, const ResizeOptions& options, const std::vector<ResizeAxis>& axes);

}  // namespace selkie::ops
