#include "ops/image/image.h"

#ifdef SELKIE_WITH_TIFF
#include <tiffio.h>

#include <algorithm>
#include <cstring>
#include <memory>

namespace selkie::ops::image {
namespace {

constexpr tmsize_t max_allocation = tmsize_t{1} << 30;

// A file in memory, as libtiff's callbacks see it.
struct Source {
  Bytes bytes;
  uint64_t at = 0;
};

tmsize_t read_bytes(thandle_t handle, void* out, tmsize_t count) {
  auto* source = static_cast<Source*>(handle);
  if (source->at >= source->bytes.size() || count <= 0) return 0;
  size_t n = std::min(static_cast<size_t>(count), source->bytes.size() - source->at);
  std::memcpy(out, source->bytes.data() + source->at, n);
  source->at += n;
  return static_cast<tmsize_t>(n);
}

tmsize_t refuse_write(thandle_t, void*, tmsize_t) { return 0; }

toff_t seek(thandle_t handle, toff_t offset, int whence) {
  auto* source = static_cast<Source*>(handle);
  uint64_t base = whence == SEEK_CUR ? source->at : whence == SEEK_END ? source->bytes.size() : 0;
  source->at = base + offset;
  return source->at;
}

int close_nothing(thandle_t) { return 0; }
toff_t size_of(thandle_t handle) { return static_cast<Source*>(handle)->bytes.size(); }
int be_quiet(TIFF*, void*, const char*, const char*, va_list) { return 1; }

std::shared_ptr<TIFF> open(Source& source) {
  std::unique_ptr<TIFFOpenOptions, void (*)(TIFFOpenOptions*)> options(TIFFOpenOptionsAlloc(), TIFFOpenOptionsFree);
  if (!options) return nullptr;
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), max_allocation);
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), be_quiet, nullptr);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), be_quiet, nullptr);
  TIFF* tiff = TIFFClientOpenExt("image", "rm", &source, read_bytes, refuse_write, seek, close_nothing, size_of,
                                 nullptr, nullptr, options.get());
  return tiff == nullptr ? nullptr : std::shared_ptr<TIFF>(tiff, TIFFClose);
}

}  // namespace

std::optional<Tensor> decode_tiff(Bytes bytes) {
  Source source{bytes};
  std::shared_ptr<TIFF> tiff = open(source);
  uint32_t width = 0;
  uint32_t height = 0;
  if (!tiff || TIFFGetField(tiff.get(), TIFFTAG_IMAGEWIDTH, &width) == 0 ||
      TIFFGetField(tiff.get(), TIFFTAG_IMAGELENGTH, &height) == 0)
    return std::nullopt;
  std::optional<Tensor> image = blank(width, height);
  if (!image) return std::nullopt;
  Tensor raster(DType::u32, {image->dim(0), image->dim(1)});
  if (TIFFReadRGBAImageOriented(tiff.get(), width, height, raster.mutable_data<uint32_t>(), ORIENTATION_TOPLEFT, 1) ==
      0)
    return std::nullopt;
  uint8_t* rgb = image->mutable_data<uint8_t>();
  for (uint32_t pixel : raster.values<uint32_t>()) {
    *rgb++ = static_cast<uint8_t>(TIFFGetR(pixel));
    *rgb++ = static_cast<uint8_t>(TIFFGetG(pixel));
    *rgb++ = static_cast<uint8_t>(TIFFGetB(pixel));
  }
  return image;
}

}  // namespace selkie::ops::image

#else
namespace selkie::ops::image {
std::optional<Tensor> decode_tiff(Bytes) { not_in_this_build("TIFF"); }
}  // namespace selkie::ops::image
#endif
