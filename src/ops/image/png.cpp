#include "ops/image/image.h"

#ifdef SELKIE_WITH_PNG
#include <png.h>

#include <cstring>
#include <vector>

namespace selkie::ops::image {
namespace {

struct Source {
  const uint8_t* at;
  size_t left;
};

void read_bytes(png_structp png, png_bytep out, size_t count) {
  auto* source = static_cast<Source*>(png_get_io_ptr(png));
  if (count > source->left) png_error(png, "the data ends early");
  std::memcpy(out, source->at, count);
  source->at += count;
  source->left -= count;
}

void jump_on_error(png_structp png, png_const_charp) { png_longjmp(png, 1); }
void ignore(png_structp, png_const_charp) {}

// The two functions that libpng jumps back into hold nothing that needs a destructor.
bool read_header(png_structp png, png_infop info, Source* source) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_set_read_fn(png, source, read_bytes);
  png_read_info(png, info);
  png_set_expand(png);
  png_set_scale_16(png);
  png_set_strip_alpha(png);
  png_set_gray_to_rgb(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  return true;
}

bool read_pixels(png_structp png, png_bytep* rows) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_read_image(png, rows);
  png_read_end(png, nullptr);
  return true;
}

struct Reader {
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, nullptr, jump_on_error, ignore);
  png_infop info = png != nullptr ? png_create_info_struct(png) : nullptr;
  ~Reader() { png_destroy_read_struct(&png, &info, nullptr); }
};

}  // namespace

std::optional<Tensor> decode_png(Bytes bytes) {
  Reader reader;
  Source source{bytes.data(), bytes.size()};
  if (reader.info == nullptr || !read_header(reader.png, reader.info, &source)) return std::nullopt;
  std::optional<Tensor> image =
      blank(png_get_image_width(reader.png, reader.info), png_get_image_height(reader.png, reader.info));
  if (!image || png_get_rowbytes(reader.png, reader.info) != static_cast<size_t>(image->dim(1)) * 3)
    return std::nullopt;
  std::vector<png_bytep> rows(static_cast<size_t>(image->dim(0)));
  for (size_t y = 0; y < rows.size(); ++y)
    rows[y] = image->mutable_data<uint8_t>() + y * static_cast<size_t>(image->dim(1)) * 3;
  return read_pixels(reader.png, rows.data()) ? image : std::nullopt;
}

}  // namespace selkie::ops::image

#else
namespace selkie::ops::image {
std::optional<Tensor> decode_png(Bytes) { not_in_this_build("PNG"); }
}  // namespace selkie::ops::image
#endif
