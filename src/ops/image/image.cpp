#include "ops/image/image.h"

#include <algorithm>
#include <string_view>

namespace selkie::ops::image {
namespace {

// Libraries allocate a few times the size of the image by themselves, outside the run's memory budget.
constexpr uint64_t max_pixels = uint64_t{1} << 27;

struct Format {
  size_t offset;
  std::string_view magic;
  std::optional<Tensor> (*decode)(Bytes);
};

using namespace std::string_view_literals;
constexpr Format formats[] = {
    {0, "\x89PNG\r\n\x1a\n"sv, decode_png},
    {0, "\xff\xd8\xff"sv, decode_jpeg},
    {0, "\0\0\0\x0cjP  \r\n\x87\n"sv, decode_jpeg2000},
    {0, "\xff\x4f\xff\x51"sv, decode_jpeg2000},
    {0, "II*\0"sv, decode_tiff},
    {0, "MM\0*"sv, decode_tiff},
    {0, "II+\0"sv, decode_tiff},
    {0, "MM\0+"sv, decode_tiff},
    {8, "WEBP"sv, decode_webp},
    {0, "BM"sv, decode_bmp},
    {0, "P1"sv, decode_pnm},
    {0, "P2"sv, decode_pnm},
    {0, "P3"sv, decode_pnm},
    {0, "P4"sv, decode_pnm},
    {0, "P5"sv, decode_pnm},
    {0, "P6"sv, decode_pnm},
};

}  // namespace

std::optional<Tensor> decode(Bytes bytes) {
  for (const Format& format : formats) {
    if (bytes.size() < format.offset + format.magic.size()) continue;
    Bytes start = bytes.subspan(format.offset, format.magic.size());
    bool same = std::equal(start.begin(), start.end(), format.magic.begin(),
                           [](uint8_t a, char b) { return a == static_cast<uint8_t>(b); });
    if (same) return format.decode(bytes);
  }
  return std::nullopt;
}

std::optional<Tensor> blank(uint64_t width, uint64_t height) {
  if (width == 0 || height == 0) return std::nullopt;
  if (width > max_pixels || height > max_pixels / width)
    fail("an image of {} by {} pixels has more than the limit of {} pixels", width, height, max_pixels);
  return Tensor(DType::u8, {static_cast<int64_t>(height), static_cast<int64_t>(width), 3});
}

void not_in_this_build(std::string_view format) {
  fail("this build of Selkie cannot decode {} images: it was built without that library", format);
}

}  // namespace selkie::ops::image
