#include "ops/support/moments_lower.h"

#include "ops/support/dims.h"

namespace selkie::ops {

MomentValues moments_over(const LowerContext& c, const SymDims& extents, DType dtype,
                          const std::function<kir::Value(const Index&)>& element) {
  kir::Builder& b = c.builder();
  auto mean_of = [&](const std::function<kir::Value(const Index&)>& f) {
    if (extents.empty()) return f({});
    kir::Value sum = b.reduce(kir::Op::add, b.number(dtype, 0), extents, f);
    return b.hoist(sum / cast(c.size(product(c, extents)), dtype));
  };
  kir::Value mean = mean_of(element);
  kir::Value variance = mean_of([&](const Index& k) {
    kir::Value difference = element(k) - mean;
    return difference * difference;
  });
  return {.mean = mean, .variance = variance};
}

kir::Value inverse_deviation(const LowerContext& c, kir::Value variance, double epsilon) {
  return c.builder().hoist(1.0 / unary(kir::Op::sqrt, variance + epsilon));
}

}  // namespace selkie::ops
