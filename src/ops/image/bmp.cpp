// Windows bitmaps: 1 to 32 bits per pixel, palettes, bit fields and run-length coding.
#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "ops/image/image.h"

namespace selkie::ops::image {
namespace {

enum Compression : uint32_t { rgb = 0, rle8 = 1, rle4 = 2, bit_fields = 3, alpha_bit_fields = 6 };

struct Header {
  uint32_t data_offset, size, compression = rgb, colours = 0;
  int64_t width, height;
  unsigned bits;
  bool bottom_up = true;
  size_t palette_entry = 4;
  std::array<uint32_t, 3> masks{};
};

using Colour = std::array<uint8_t, 3>;

uint32_t read(Bytes bytes, size_t at, size_t size) {
  uint32_t value = 0;
  for (size_t i = 0; i < size && at + i < bytes.size(); ++i) value |= static_cast<uint32_t>(bytes[at + i]) << (8 * i);
  return value;
}

std::optional<Header> read_header(Bytes bytes) {
  if (bytes.size() < 26) return std::nullopt;
  Header h{.data_offset = read(bytes, 10, 4), .size = read(bytes, 14, 4)};
  if (h.size == 12) {
    h.width = read(bytes, 18, 2);
    h.height = read(bytes, 20, 2);
    h.bits = read(bytes, 24, 2);
    h.palette_entry = 3;
  } else {
    if (h.size < 40 || bytes.size() < 54) return std::nullopt;
    h.width = static_cast<int32_t>(read(bytes, 18, 4));
    h.height = static_cast<int32_t>(read(bytes, 22, 4));
    h.bits = read(bytes, 28, 2);
    h.compression = read(bytes, 30, 4);
    h.colours = read(bytes, 46, 4);
  }
  h.bottom_up = h.height > 0;
  h.height = std::abs(h.height);
  bool known = h.bits == 1 || h.bits == 4 || h.bits == 8 || h.bits == 16 || h.bits == 24 || h.bits == 32;
  bool fields = h.compression == bit_fields || h.compression == alpha_bit_fields;
  bool runs = (h.compression == rle8 && h.bits == 8) || (h.compression == rle4 && h.bits == 4);
  if (!known || h.width <= 0 || h.height == 0 || h.data_offset > bytes.size()) return std::nullopt;
  if (h.compression != rgb && !runs && !(fields && h.bits >= 16 && h.bits != 24)) return std::nullopt;
  if (fields)
    h.masks = {read(bytes, 54, 4), read(bytes, 58, 4), read(bytes, 62, 4)};
  else if (h.bits == 16)
    h.masks = {0x7c00, 0x03e0, 0x001f};
  else
    h.masks = {0xff0000, 0xff00, 0xff};
  return h;
}

std::vector<Colour> read_palette(Bytes bytes, const Header& h) {
  size_t most = size_t{1} << h.bits;
  std::vector<Colour> palette(most, Colour{});
  size_t count = h.colours == 0 ? most : std::min<size_t>(h.colours, most);
  size_t at = size_t{14} + h.size;
  for (size_t i = 0; i < count && at + 3 <= bytes.size(); ++i, at += h.palette_entry)
    palette[i] = {bytes[at + 2], bytes[at + 1], bytes[at]};
  return palette;
}

uint8_t field(uint32_t pixel, uint32_t mask) {
  if (mask == 0) return 0;
  uint64_t largest = mask >> std::countr_zero(mask);
  return static_cast<uint8_t>((uint64_t{pixel & mask} >> std::countr_zero(mask)) * 255 / largest);
}

// Writes pixels by the file's own order of rows.
struct Canvas {
  uint8_t* pixels;
  const Header& header;

  void set(int64_t x, int64_t y, Colour colour) {
    if (x >= header.width || y >= header.height) return;
    int64_t row = header.bottom_up ? header.height - 1 - y : y;
    std::copy(colour.begin(), colour.end(), pixels + (row * header.width + x) * 3);
  }
};

bool decode_rows(Bytes data, const Header& h, const std::vector<Colour>& palette, Canvas canvas) {
  uint64_t stride = (static_cast<uint64_t>(h.width) * h.bits + 31) / 32 * 4;
  for (int64_t y = 0; y < h.height; ++y) {
    Bytes row = data.subspan(std::min<uint64_t>(static_cast<uint64_t>(y) * stride, data.size()));
    if (row.size() * 8 < static_cast<uint64_t>(h.width) * h.bits) return false;
    for (int64_t x = 0; x < h.width; ++x) {
      size_t bit = static_cast<size_t>(x) * h.bits;
      if (h.bits <= 8) {
        canvas.set(x, y, palette[row[bit / 8] >> (8 - h.bits - bit % 8) & ((1u << h.bits) - 1)]);
        continue;
      }
      uint32_t pixel = read(row, bit / 8, h.bits / 8);
      canvas.set(x, y, {field(pixel, h.masks[0]), field(pixel, h.masks[1]), field(pixel, h.masks[2])});
    }
  }
  return true;
}

// Pairs of bytes: a run of one value, or after a zero an escape (end of row, end of image, a jump, literal values).
bool decode_runs(Bytes data, const Header& h, const std::vector<Colour>& palette, Canvas canvas) {
  auto value = [&](uint8_t byte, unsigned i) {
    return palette[h.bits == 8 ? byte : i % 2 == 0 ? byte >> 4 : byte & 15];
  };
  int64_t x = 0;
  int64_t y = 0;
  for (size_t at = 0; at + 1 < data.size() && y < h.height;) {
    unsigned count = data[at];
    uint8_t code = data[at + 1];
    at += 2;
    if (count > 0) {
      for (unsigned i = 0; i < count; ++i) canvas.set(x++, y, value(code, i));
    } else if (code == 0) {
      x = 0;
      ++y;
    } else if (code == 1) {
      return true;
    } else if (code == 2) {
      if (at + 1 >= data.size()) return false;
      x += data[at];
      y += data[at + 1];
      at += 2;
    } else {
      size_t size = h.bits == 8 ? code : (code + 1u) / 2;
      if (size > data.size() - at) return false;
      for (unsigned i = 0; i < code; ++i) canvas.set(x++, y, value(data[at + (h.bits == 8 ? i : i / 2)], i));
      at += size + size % 2;
      at = std::min(at, data.size());
    }
  }
  return y >= h.height;
}

}  // namespace

std::optional<Tensor> decode_bmp(Bytes bytes) {
  std::optional<Header> header = read_header(bytes);
  if (!header) return std::nullopt;
  Bytes data = bytes.subspan(header->data_offset);
  bool runs = header->compression == rle8 || header->compression == rle4;
  // A short file cannot ask for a large image.
  if (!runs &&
      data.size() / static_cast<uint64_t>(header->height) < static_cast<uint64_t>(header->width) * header->bits / 8)
    return std::nullopt;
  std::optional<Tensor> image = blank(static_cast<uint64_t>(header->width), static_cast<uint64_t>(header->height));
  if (!image) return std::nullopt;
  std::vector<Colour> palette = header->bits <= 8 ? read_palette(bytes, *header) : std::vector<Colour>{};
  Canvas canvas{image->mutable_data<uint8_t>(), *header};
  bool complete = runs ? decode_runs(data, *header, palette, canvas) : decode_rows(data, *header, palette, canvas);
  return complete ? image : std::nullopt;
}

}  // namespace selkie::ops::image
