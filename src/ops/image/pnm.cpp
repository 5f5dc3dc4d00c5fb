// The portable any-map formats of Netpbm: P1 to P6.
#include "ops/image/image.h"

namespace selkie::ops::image {
namespace {

class Reader {
 public:
  explicit Reader(Bytes bytes) : bytes_(bytes) {}

  // A decimal number after white space and comments; nothing at the end of the data or where there is no number.
  std::optional<uint32_t> number() {
    skip_space();
    uint64_t value = 0;
    size_t begin = at_;
    for (; at_ < bytes_.size() && is_digit(bytes_[at_]); ++at_) {
      value = value * 10 + (bytes_[at_] - '0');
      if (value > 0xffffffffu) return std::nullopt;
    }
    return at_ == begin ? std::nullopt : std::optional(static_cast<uint32_t>(value));
  }

  // One digit of P1, which need not be set apart.
  std::optional<uint32_t> bit() {
    skip_space();
    if (at_ >= bytes_.size() || (bytes_[at_] != '0' && bytes_[at_] != '1')) return std::nullopt;
    return bytes_[at_++] - '0';
  }

  std::optional<uint32_t> byte() { return at_ < bytes_.size() ? std::optional<uint32_t>(bytes_[at_++]) : std::nullopt; }
  size_t left() const { return bytes_.size() - at_; }

 private:
  static bool is_digit(uint8_t c) { return c >= '0' && c <= '9'; }
  static bool is_space(uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

  void skip_space() {
    for (; at_ < bytes_.size(); ++at_) {
      if (bytes_[at_] == '#') {
        while (at_ + 1 < bytes_.size() && bytes_[at_] != '\n') ++at_;
      } else if (!is_space(bytes_[at_])) {
        return;
      }
    }
  }

  Bytes bytes_;
  size_t at_ = 2;
};

// One sample of a row, in the order of the file.
std::optional<uint32_t> next_sample(Reader& in, int kind, uint32_t max, size_t column, uint32_t& packed) {
  switch (kind) {
    case 1:
      return in.bit();
    case 2:
    case 3:
      return in.number();
    case 4: {
      if (column % 8 == 0) {
        std::optional<uint32_t> byte = in.byte();
        if (!byte) return std::nullopt;
        packed = *byte;
      }
      return packed >> (7 - column % 8) & 1;
    }
    default: {
      std::optional<uint32_t> high = in.byte();
      if (!high || max < 256) return high;
      std::optional<uint32_t> low = in.byte();
      return low ? std::optional(*high << 8 | *low) : std::nullopt;
    }
  }
}

}  // namespace

std::optional<Tensor> decode_pnm(Bytes bytes) {
  int kind = bytes[1] - '0';
  bool bits = kind == 1 || kind == 4;
  size_t channels = kind == 3 || kind == 6 ? 3 : 1;
  Reader in(bytes);
  std::optional<uint32_t> width = in.number();
  std::optional<uint32_t> height = in.number();
  std::optional<uint32_t> max = bits ? 1 : in.number();
  if (!width || !height || !max || *max == 0 || *max > 65535) return std::nullopt;
  if (kind >= 4) in.byte();  // the one white space before binary data
  // Every row takes at least a bit of data per pixel, so a short file cannot ask for a large image.
  if (static_cast<uint64_t>(*width) * *height / 8 > in.left()) return std::nullopt;
  std::optional<Tensor> image = blank(*width, *height);
  if (!image) return std::nullopt;
  uint8_t* rgb = image->mutable_data<uint8_t>();
  uint32_t packed = 0;
  for (uint64_t y = 0; y < *height; ++y) {
    for (size_t x = 0; x < *width; ++x, rgb += 3) {
      for (size_t c = 0; c < channels; ++c) {
        std::optional<uint32_t> sample = next_sample(in, kind, *max, x, packed);
        if (!sample || *sample > *max) return std::nullopt;
        // In bit maps 1 is black.
        rgb[c] = static_cast<uint8_t>(bits ? 255 - 255 * *sample : (*sample * 255 + *max / 2) / *max);
      }
      if (channels == 1) rgb[1] = rgb[2] = rgb[0];
    }
  }
  return image;
}

}  // namespace selkie::ops::image
