// Element-wise evaluation over broadcast operands, in the wide type of the operands' dtype.
#pragma once

#include "base/convert.h"
#include "ops/support/shape.h"

namespace selkie::ops {

// y[i] = f(x[i]), computed in W and stored as `dtype`.
template <class W, class F>
Tensor map_elements(const Tensor& x, DType dtype, F&& f) {
  std::vector<W> values = widen<W>(x);
  using R = std::decay_t<decltype(f(values[0]))>;
  if constexpr (std::is_same_v<R, W>) {
    for (W& v : values) v = f(v);
    return narrow<W>(values, dtype, x.dims());
  } else {
    std::vector<R> results(values.size());
    std::transform(values.begin(), values.end(), results.begin(), f);
    return narrow<R>(results, dtype, x.dims());
  }
}

// y = f(a, b) over the broadcast shape, computed in W and stored as `dtype`. R = bool is stored through uint8_t.
template <class W, class F>
Tensor map_pairs(const Tensor& a, const Tensor& b, DType dtype, F&& f) {
  std::vector<W> x = widen<W>(a);
  std::vector<W> y = widen<W>(b);
  Dims dims = broadcast(a.dims(), b.dims());
  using Raw = std::decay_t<decltype(f(x[0], y[0]))>;
  using R = std::conditional_t<std::is_same_v<Raw, bool>, uint8_t, Raw>;
  std::vector<R> results;
  results.reserve(static_cast<size_t>(element_count(dims)));
  if (a.dims() == b.dims()) {
    for (size_t i = 0; i < x.size(); ++i) results.push_back(static_cast<R>(f(x[i], y[i])));
  } else {
    Walk<2> walk(dims, {broadcast_strides(a.dims(), dims), broadcast_strides(b.dims(), dims)});
    for (; !walk.done(); walk.next())
      results.push_back(
          static_cast<R>(f(x[static_cast<size_t>(walk.offset(0))], y[static_cast<size_t>(walk.offset(1))])));
  }
  return narrow<R>(results, dtype, std::move(dims));
}

}  // namespace selkie::ops
