#include "ops/support/resize.h"

#include "ops/support/interpolate.h"
#include "ops/support/shape.h"
#include "ops/support/zeros.h"

namespace selkie::ops {
namespace {

// Where output index i lies in the input, as a real coordinate.
double coordinate(const ResizeOptions& o, const ResizeAxis& a, int64_t i) {
  auto x = static_cast<double>(i);
  auto last = static_cast<double>(a.input - 1);
  double width = a.scale * static_cast<double>(a.input);
  if (o.coordinates == "asymmetric") return x / a.scale;
  if (o.coordinates == "tf_half_pixel_for_nn") return (x + 0.5) / a.scale;
  if (o.coordinates == "align_corners") return width == 1 ? 0 : x * last / (width - 1);
  if (o.coordinates == "pytorch_half_pixel" && a.output <= 1) return 0;
  if (o.coordinates == "tf_crop_and_resize") {
    double span = (a.roi_end - a.roi_begin) * last;
    return a.roi_begin * last + (a.output > 1 ? x * span / (width - 1) : span / 2);
  }
  double shift = 0;
  if (o.coordinates == "half_pixel_symmetric")
    shift = static_cast<double>(a.input) / 2 * (1 - static_cast<double>(a.output) / width);
  return shift + (x + 0.5) / a.scale - 0.5;
}

int64_t nearest_index(const ResizeOptions& o, double x) {
  if (o.nearest == "floor") return static_cast<int64_t>(std::floor(x));
  if (o.nearest == "ceil") return static_cast<int64_t>(std::ceil(x));
  return static_cast<int64_t>(o.nearest == "round_prefer_ceil" ? std::floor(x + 0.5) : std::ceil(x - 0.5));
}

// The input elements that output index i is made of.
std::vector<Weighted> neighbours(const ResizeOptions& o, const ResizeAxis& a, double x) {
  auto clamp = [&](int64_t index) { return std::clamp<int64_t>(index, 0, a.input - 1); };
  if (o.mode == "nearest") return {{clamp(nearest_index(o, x)), 1}};
  double radius = o.mode == "linear" ? 1 : 2;
  double stretch = o.antialias ? std::min(a.scale, 1.0) : 1;
  auto base = static_cast<int64_t>(std::ceil(x)) - 1;
  double ratio = x - static_cast<double>(base);
  auto begin = static_cast<int64_t>(std::floor(-radius / stretch)) + 1;
  std::vector<Weighted> out;
  double sum = 0;
  for (int64_t i = begin; i < 2 - begin; ++i) {
    double at = stretch * (static_cast<double>(i) - ratio);
    double weight = o.mode == "linear" ? linear_kernel(at) : cubic_kernel(at, o.cubic_a);
    bool inside = base + i >= 0 && base + i < a.input;
    if (o.exclude_outside && !inside) continue;
    sum += weight;
    out.push_back({clamp(base + i), weight});
  }
  if (o.exclude_outside || o.antialias)
    for (Weighted& w : out) w.weight /= sum == 0 ? 1 : sum;
  return out;
}

// Per output index: its neighbours, or none where the result is the value for outside.
std::vector<std::vector<Weighted>> plan(const ResizeOptions& o, const ResizeAxis& a) {
  std::vector<std::vector<Weighted>> out;
  out.reserve(affordable({a.output}, sizeof(out[0]) + 4 * sizeof(Weighted)));
  for (int64_t i = 0; i < a.output; ++i) {
    double x = coordinate(o, a, i);
    if (!(std::fabs(x) < 0x1p52))
      fail("axis {} cannot be resized from {} to {} with scale {}", a.axis, a.input, a.output, a.scale);
    bool beyond = o.coordinates == "tf_crop_and_resize" && (x < 0 || x > static_cast<double>(a.input - 1));
    out.push_back(beyond ? std::vector<Weighted>{} : neighbours(o, a, x));
  }
  return out;
}

template <class T>
std::vector<T> apply(const std::vector<T>& x, Dims& dims, const ResizeAxis& a,
                     const std::vector<std::vector<Weighted>>& taps, T outside) {
  int64_t outer = product(dims, 0, a.axis);
  int64_t inner = product(dims, a.axis + 1, static_cast<int64_t>(dims.size()));
  dims[static_cast<size_t>(a.axis)] = a.output;
  std::vector<T> out = zeros<T>(dims);
  T* to = out.data();
  for (int64_t i = 0; i < outer && inner > 0; ++i)
    for (const std::vector<Weighted>& row : taps) {
      const T* from = x.data() + i * a.input * inner;
      for (int64_t j = 0; j < inner; ++j, ++to) {
        if constexpr (std::is_same_v<T, std::string>) {
          *to = row.empty() ? outside : from[row[0].index * inner + j];
        } else {
          if (row.empty()) *to = outside;
          for (const Weighted& w : row)
            *to += w.weight == 1 ? from[w.index * inner + j] : from[w.index * inner + j] * w.weight;
        }
      }
    }
  return out;
}

}  // namespace

Tensor resize(const Tensor& input, const ResizeOptions& o, const std::vector<ResizeAxis>& axes) {
  if (o.mode != "nearest" && o.mode != "linear" && o.mode != "cubic") fail("there is no mode '{}'", o.mode);
  if (input.dtype() == DType::str && o.mode != "nearest") fail("strings can only be resized in mode nearest");
  if (o.antialias && o.mode == "nearest") fail("mode nearest has no antialiasing");
  Dims dims = input.dims();
  auto run = [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<T> x = widen<T>(input);
    T outside{};
    if constexpr (!std::is_same_v<T, std::string>) outside = o.outside;
    for (const ResizeAxis& a : axes) {
      if (a.input == 0 && a.output > 0) fail("axis {} has no elements to resize to {}", a.axis, a.output);
      bool same = a.scale == 1 && a.output == a.input && a.roi_begin == 0 && a.roi_end == 1;
      if (!same) x = apply<T>(x, dims, a, plan(o, a), outside);
    }
    if constexpr (std::is_same_v<T, std::string>)
      return narrow<T>(x, input.dtype(), dims);
    else
      return from_reals(x, input.dtype(), dims);
  };
  if (input.dtype() == DType::str) return run(TypeTag<std::string>{});
  return is_complex(input.dtype()) ? run(TypeTag<std::complex<double>>{}) : run(TypeTag<double>{});
}

}  // namespace selkie::ops
