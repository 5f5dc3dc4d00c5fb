#include "ops/image/image.h"

#ifdef SELKIE_WITH_JPEG
#include <csetjmp>
#include <cstdio>  // jpeglib.h needs FILE
#include <vector>

#include <jpeglib.h>

namespace selkie::ops::image {
namespace {

// A few bytes of a progressive file can ask for thousands of passes over a large image.
constexpr int max_scans = 500;

struct Reader {
  jpeg_decompress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  jmp_buf on_error;
  ~Reader() { jpeg_destroy_decompress(&jpeg); }
};

void jump_on_error(j_common_ptr jpeg) { longjmp(static_cast<Reader*>(jpeg->client_data)->on_error, 1); }
void ignore(j_common_ptr) {}
void ignore_message(j_common_ptr, int) {}
void count_scans(j_common_ptr jpeg) {
  if (reinterpret_cast<j_decompress_ptr>(jpeg)->input_scan_number > max_scans) jump_on_error(jpeg);
}

// The two functions that libjpeg jumps back into hold nothing that needs a destructor.
bool read_header(Reader* reader, const uint8_t* data, size_t size) {
  jpeg_decompress_struct* jpeg = &reader->jpeg;
  jpeg->err = jpeg_std_error(&reader->errors);
  reader->errors.error_exit = jump_on_error;
  reader->errors.emit_message = ignore_message;
  reader->errors.output_message = ignore;
  if (setjmp(reader->on_error) != 0) return false;
  jpeg->client_data = reader;
  jpeg_create_decompress(jpeg);
  jpeg->client_data = reader;
  jpeg->progress = &reader->progress;
  reader->progress.progress_monitor = count_scans;
  jpeg_mem_src(jpeg, data, size);
  jpeg_read_header(jpeg, TRUE);
  bool four = jpeg->jpeg_color_space == JCS_CMYK || jpeg->jpeg_color_space == JCS_YCCK;
  jpeg->out_color_space = four ? JCS_CMYK : JCS_RGB;
  return true;
}

bool read_pixels(Reader* reader, uint8_t* pixels, size_t row_size) {
  if (setjmp(reader->on_error) != 0) return false;
  jpeg_start_decompress(&reader->jpeg);
  while (reader->jpeg.output_scanline < reader->jpeg.output_height) {
    JSAMPROW row = pixels + reader->jpeg.output_scanline * row_size;
    jpeg_read_scanlines(&reader->jpeg, &row, 1);
  }
  jpeg_finish_decompress(&reader->jpeg);
  return true;
}

}  // namespace

std::optional<Tensor> decode_jpeg(Bytes bytes) {
  Reader reader;
  if (!read_header(&reader, bytes.data(), bytes.size())) return std::nullopt;
  std::optional<Tensor> image = blank(reader.jpeg.image_width, reader.jpeg.image_height);
  if (!image) return std::nullopt;
  auto width = static_cast<size_t>(image->dim(1));
  uint8_t* rgb = image->mutable_data<uint8_t>();
  if (reader.jpeg.out_color_space == JCS_RGB) return read_pixels(&reader, rgb, width * 3) ? image : std::nullopt;
  Tensor cmyk(DType::u8, {image->dim(0), image->dim(1), 4});
  if (!read_pixels(&reader, cmyk.mutable_data<uint8_t>(), width * 4)) return std::nullopt;
  // Adobe stores ink inverted, so that 255 is none of it.
  bool inverted = reader.jpeg.saw_Adobe_marker;
  const auto* ink = cmyk.data<uint8_t>();
  for (size_t i = 0; i < static_cast<size_t>(cmyk.count()) / 4; ++i)
    for (size_t c = 0; c < 3; ++c) {
      int colour = inverted ? ink[4 * i + c] : 255 - ink[4 * i + c];
      int black = inverted ? ink[4 * i + 3] : 255 - ink[4 * i + 3];
      rgb[3 * i + c] = static_cast<uint8_t>((colour * black + 127) / 255);
    }
  return image;
}

}  // namespace selkie::ops::image

#else
namespace selkie::ops::image {
std::optional<Tensor> decode_jpeg(Bytes) { not_in_this_build("JPEG"); }
}  // namespace selkie::ops::image
#endif
