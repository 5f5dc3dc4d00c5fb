#include "runtime/versions.h"

#include "runtime/profile.h"

namespace selkie::runtime {

kernels::ConvolutionVersion Versions::of(const program::Convolution& c, const kernels::ConvolutionShape& shape) {
  Chosen& last = chosen_[static_cast<size_t>(&c - program_.convolutions.data())];
  if (!last.is_known || last.shape != shape)
    last = {.is_known = true,
            .shape = shape,
            .version = kernels::convolution_version(kernels::table(kernels::best_isa()), shape, packed_for(c))};
  return last.version;
}

}  // namespace selkie::runtime
