#include "ops/support/nd_index.h"

#include "base/convert.h"
#include "ops/support/shape.h"

namespace selkie::ops {

NdIndex nd_index(const Tensor& data, const Tensor& indices, int64_t batch) {
  if (data.rank() == 0 || indices.rank() == 0) fail("data and indices must not be scalars");
  int64_t width = indices.dim(indices.rank() - 1);
  if (batch < 0 || batch >= std::min(data.rank(), indices.rank()))
    fail("batch_dims {} is outside 0..{}", batch, std::min(data.rank(), indices.rank()) - 1);
  if (width > data.rank() - batch)
    fail("indices {} address {} dims, but data {} has only {}", to_string(indices.dims()), width,
         to_string(data.dims()), data.rank() - batch);
  for (int64_t i = 0; i < batch; ++i)
    if (data.dim(i) != indices.dim(i))
      fail("data {} and indices {} differ in batch dim {}", to_string(data.dims()), to_string(indices.dims()), i);
  std::vector<int64_t> values = ints_of(indices);
  std::vector<int64_t> strides = strides_of(data.dims());
  NdIndex out;
  out.slice = product(data.dims(), batch + width, data.rank());
  int64_t batches = product(data.dims(), 0, batch);
  int64_t tuples = batches == 0 ? 0 : product(indices.dims(), 0, indices.rank() - 1) / batches;
  int64_t batch_size = product(data.dims(), batch, data.rank());
  const int64_t* at = values.data();
  for (int64_t b = 0; b < batches; ++b)
    for (int64_t t = 0; t < tuples; ++t) {
      int64_t offset = b * batch_size;
      for (int64_t k = 0; k < width; ++k) {
        int64_t extent = data.dim(batch + k);
        int64_t index = *at++;
        if (index < -extent || index >= extent)
          fail("index {} is outside -{}..{} of axis {}", index, extent, extent - 1, batch + k);
        offset += (index < 0 ? index + extent : index) * strides[static_cast<size_t>(batch + k)];
      }
      out.offsets.push_back(offset);
    }
  return out;
}

}  // namespace selkie::ops
