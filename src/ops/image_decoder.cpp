// ImageDecoder: the pixels of an image file that is given as bytes.
#include "ops/image/image.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

enum class PixelFormat { rgb, bgr, grayscale };

PixelFormat format_of(const std::string& name) {
  if (name == "RGB") return PixelFormat::rgb;
  if (name == "BGR") return PixelFormat::bgr;
  if (name == "Grayscale") return PixelFormat::grayscale;
  fail("pixel_format '{}' is none of RGB, BGR and Grayscale", name);
}

// Luma of ITU-R BT.601 in 16-bit fixed point, as image libraries commonly compute it.
uint8_t luma(const uint8_t* rgb) {
  return static_cast<uint8_t>((rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000u) >> 16);
}

void eval(EvalContext& e) {
  PixelFormat format = format_of(e.attr_string("pixel_format"));
  std::optional<Tensor> rgb = image::decode(e.tensor(0).values<uint8_t>());
  // ONNX: what cannot be decoded gives an empty image.
  int64_t height = rgb ? rgb->dim(0) : 0;
  int64_t width = rgb ? rgb->dim(1) : 0;
  if (rgb && format == PixelFormat::rgb) return e.set(0, *rgb);
  Tensor out(DType::u8, {height, width, format == PixelFormat::grayscale ? 1 : 3});
  const uint8_t* from = rgb ? rgb->data<uint8_t>() : nullptr;
  uint8_t* to = out.mutable_data<uint8_t>();
  for (int64_t i = 0; i < height * width; ++i, from += 3) {
    if (format == PixelFormat::grayscale)
      *to++ = luma(from);
    else
      for (int c = 2; c >= 0; --c) *to++ = from[c];
  }
  e.set(0, out);
}

std::vector<Type> forward(const ForwardContext& c) {
  bool gray = format_of(c.attr_string("pixel_format")) == PixelFormat::grayscale;
  return {Type::tensor(DType::u8, SymDims{c.unknown(0, 0), c.unknown(0, 1), c.constant(gray ? 1 : 3)})};
}

}  // namespace

OpDef image_decoder_op() {
  return {
      .name = "image_decoder",
      .onnx = {"", "ImageDecoder", {20}},
      .doc =
          "decodes a BMP, JPEG, JPEG 2000, PNG, PNM, TIFF or WebP file to pixels, channels last; empty if it cannot be "
          "decoded",
      .operands = {{"encoded_stream", {"T1", {DType::u8}}}},
      .results = {{"image", {"T2", {DType::u8}}}},
      .attrs = {string_attr("pixel_format", "RGB")},
      .dynamism = edo({"encoded_stream"}),
      .mapping = Mapping::opaque,
      .forward = forward,
      .backward = absent("any bytes may be given"),
      .value = absent("pixels do not occur in shape arithmetic"),
      .eval = eval,
      .lower = absent("a library decodes, on the host"),
      .grad = absent("bytes of a file have no derivative"),
      // "P6 1 2 255", then two pixels; "P2 2 1 100" then "0 50"; a bitmap of 2 by 1 pixels.
      .samples =
          {{"$(u8[17]{80, 54, 32, 49, 32, 50, 32, 50, 53, 53, 10, 1, 2, 3, 250, 251, 252})",
            "u8[2, 1, 3]{1, 2, 3, 250, 251, 252}"},
           {"$(u8[14]{80, 54, 32, 49, 32, 49, 32, 50, 53, 53, 10, 1, 2, 3}) {pixel_format = \"BGR\"}",
            "u8[1, 1, 3]{3, 2, 1}"},
           {"$(u8[15]{80, 50, 32, 50, 32, 49, 32, 49, 48, 48, 10, 48, 32, 53, 48}) {pixel_format = \"Grayscale\"}",
            "u8[1, 2, 1]{0, 128}"},
           {"$(u8[62]{66, 77, 62, 0, 0, 0, 0, 0, 0, 0, 54, 0, 0, 0, 40, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 0, 24, 0, "
            "0, 0, 0, 0, "
            "8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 2, 1, 6, 5, 4, 0, 0})",
            "u8[1, 2, 3]{1, 2, 3, 4, 5, 6}"},
           {"$(u8[13]{80, 54, 32, 49, 32, 49, 32, 50, 53, 53, 10, 1, 2})", "u8[0, 0, 3]"},
           {"$(u8[0])", "u8[0, 0, 3]"},
           {"$(u8[9]) {pixel_format = \"CMYK\"}", "error: is none of RGB, BGR and Grayscale"},
           {"$(u8[54]{66, 77, 0, 0, 0, 0, 0, 0, 0, 0, 54, 0, 0, 0, 40, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 0, 8, 0, 1, "
            "0, 0, 0, "
            "0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})",
            "error: an image of 65536 by 65536 pixels has more than the limit"}},
  };
}

}  // namespace selkie::ops
