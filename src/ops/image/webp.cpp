#include "ops/image/image.h"

#ifdef SELKIE_WITH_WEBP
#include <webp/decode.h>

namespace selkie::ops::image {

std::optional<Tensor> decode_webp(Bytes bytes) {
  int width = 0;
  int height = 0;
  if (WebPGetInfo(bytes.data(), bytes.size(), &width, &height) == 0) return std::nullopt;
  std::optional<Tensor> image = blank(static_cast<uint64_t>(width), static_cast<uint64_t>(height));
  if (!image) return std::nullopt;
  uint8_t* done =
      WebPDecodeRGBInto(bytes.data(), bytes.size(), image->mutable_data<uint8_t>(), image->byte_size(), width * 3);
  return done != nullptr ? image : std::nullopt;
}

}  // namespace selkie::ops::image

#else
namespace selkie::ops::image {
std::optional<Tensor> decode_webp(Bytes) { not_in_this_build("WebP"); }
}  // namespace selkie::ops::image
#endif
