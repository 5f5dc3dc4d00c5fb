#include "ops/image/image.h"

#ifdef SELKIE_WITH_JPEG2000
#include <openjpeg.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

namespace selkie::ops::image {
namespace {

struct Source {
  Bytes bytes;
  size_t at = 0;
};

constexpr auto end_of_data = static_cast<OPJ_SIZE_T>(-1);

OPJ_SIZE_T read_bytes(void* out, OPJ_SIZE_T count, void* user) {
  auto* source = static_cast<Source*>(user);
  size_t n = std::min<size_t>(count, source->bytes.size() - source->at);
  if (n == 0) return end_of_data;
  std::memcpy(out, source->bytes.data() + source->at, n);
  source->at += n;
  return n;
}

OPJ_OFF_T skip_bytes(OPJ_OFF_T count, void* user) {
  auto* source = static_cast<Source*>(user);
  if (count < 0) return -1;
  size_t n = std::min(static_cast<size_t>(count), source->bytes.size() - source->at);
  source->at += n;
  return static_cast<OPJ_OFF_T>(n);
}

OPJ_BOOL seek(OPJ_OFF_T offset, void* user) {
  auto* source = static_cast<Source*>(user);
  if (offset < 0 || static_cast<size_t>(offset) > source->bytes.size()) return OPJ_FALSE;
  source->at = static_cast<size_t>(offset);
  return OPJ_TRUE;
}

std::shared_ptr<opj_stream_t> open(Source& source) {
  std::shared_ptr<opj_stream_t> stream(opj_stream_default_create(OPJ_TRUE), opj_stream_destroy);
  if (!stream) return nullptr;
  opj_stream_set_user_data(stream.get(), &source, nullptr);
  opj_stream_set_user_data_length(stream.get(), source.bytes.size());
  opj_stream_set_read_function(stream.get(), read_bytes);
  opj_stream_set_skip_function(stream.get(), skip_bytes);
  opj_stream_set_seek_function(stream.get(), seek);
  return stream;
}

// A component at a pixel of the whole image, in 8 bits. Components may have a coarser grid and any precision.
int sample(const opj_image_comp_t& component, uint64_t x, uint64_t y) {
  uint64_t column = std::min<uint64_t>(x / std::max(component.dx, 1u), component.w - 1);
  uint64_t row = std::min<uint64_t>(y / std::max(component.dy, 1u), component.h - 1);
  int64_t value = component.data[row * component.w + column];
  if (component.sgnd != 0) value += int64_t{1} << (component.prec - 1);
  value = component.prec > 8   ? value >> (component.prec - 8)
          : component.prec < 8 ? value * 255 / ((1 << component.prec) - 1)
                               : value;
  return static_cast<int>(std::clamp<int64_t>(value, 0, 255));
}

bool usable(const opj_image_t& image) {
  if (image.numcomps == 0) return false;
  for (uint32_t i = 0; i < std::min(image.numcomps, 3u); ++i) {
    const opj_image_comp_t& c = image.comps[i];
    if (c.data == nullptr || c.w == 0 || c.h == 0 || c.prec == 0 || c.prec > 31) return false;
  }
  return true;
}

uint8_t byte(double value) { return static_cast<uint8_t>(std::clamp(std::nearbyint(value), 0.0, 255.0)); }

void to_rgb(const opj_image_t& source, Tensor& image) {
  uint8_t* rgb = image.mutable_data<uint8_t>();
  bool colour = source.numcomps >= 3;
  for (int64_t y = 0; y < image.dim(0); ++y) {
    for (int64_t x = 0; x < image.dim(1); ++x, rgb += 3) {
      int v[3];
      for (int c = 0; c < 3; ++c)
        v[c] = sample(source.comps[colour ? c : 0], static_cast<uint64_t>(x), static_cast<uint64_t>(y));
      for (int c = 0; c < 3; ++c) rgb[c] = static_cast<uint8_t>(v[c]);
      if (!colour || source.color_space != OPJ_CLRSPC_SYCC) continue;
      rgb[0] = byte(v[0] + 1.402 * (v[2] - 128));
      rgb[1] = byte(v[0] - 0.344136 * (v[1] - 128) - 0.714136 * (v[2] - 128));
      rgb[2] = byte(v[0] + 1.772 * (v[1] - 128));
    }
  }
}

}  // namespace

std::optional<Tensor> decode_jpeg2000(Bytes bytes) {
  Source source{bytes};
  std::shared_ptr<opj_stream_t> stream = open(source);
  bool boxed = bytes[0] == 0;
  std::shared_ptr<opj_codec_t> codec(opj_create_decompress(boxed ? OPJ_CODEC_JP2 : OPJ_CODEC_J2K), opj_destroy_codec);
  opj_dparameters_t parameters;
  opj_set_default_decoder_parameters(&parameters);
  if (!stream || !codec || opj_setup_decoder(codec.get(), &parameters) == OPJ_FALSE) return std::nullopt;
  opj_image_t* header = nullptr;
  bool read = opj_read_header(stream.get(), codec.get(), &header) != OPJ_FALSE;
  std::shared_ptr<opj_image_t> decoded(header, opj_image_destroy);
  if (!read || !decoded || decoded->x1 <= decoded->x0 || decoded->y1 <= decoded->y0 || decoded->numcomps > 4)
    return std::nullopt;
  std::optional<Tensor> image = blank(decoded->x1 - decoded->x0, decoded->y1 - decoded->y0);
  if (opj_decode(codec.get(), stream.get(), decoded.get()) == OPJ_FALSE || !usable(*decoded)) return std::nullopt;
  to_rgb(*decoded, *image);
  return image;
}

}  // namespace selkie::ops::image

#else
namespace selkie::ops::image {
std::optional<Tensor> decode_jpeg2000(Bytes) { not_in_this_build("JPEG 2000"); }
}  // namespace selkie::ops::image
#endif
