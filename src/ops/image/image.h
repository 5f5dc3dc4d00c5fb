// Decoders of image files: bytes to u8[height, width, 3] in RGB order. What the bytes are is not trusted.
#pragma once

#include <optional>
#include <span>

#include "base/tensor.h"

namespace selkie::ops::image {

using Bytes = std::span<const uint8_t>;

// Each gives nothing if the bytes are no complete image of its kind, and is a user error if this build lacks the
// library that it needs or the image is too large.
std::optional<Tensor> decode_bmp(Bytes bytes);
std::optional<Tensor> decode_jpeg(Bytes bytes);
std::optional<Tensor> decode_jpeg2000(Bytes bytes);
std::optional<Tensor> decode_png(Bytes bytes);
std::optional<Tensor> decode_pnm(Bytes bytes);
std::optional<Tensor> decode_tiff(Bytes bytes);
std::optional<Tensor> decode_webp(Bytes bytes);

// Finds the decoder by the first bytes.
std::optional<Tensor> decode(Bytes bytes);

// A black image; a user error if it has more pixels than a decoder may ask for. Nothing if it has none.
std::optional<Tensor> blank(uint64_t width, uint64_t height);

[[noreturn]] void not_in_this_build(std::string_view format);

}  // namespace selkie::ops::image
