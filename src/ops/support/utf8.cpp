#include "ops/support/utf8.h"

#include <clocale>
#include <cstdint>
#include <cwctype>
#include <memory>

namespace selkie::ops {
namespace {

constexpr char32_t stray_byte = 0xDC00;

// The code point that starts at `at` and its length in bytes; length 0: no valid UTF-8.
std::pair<char32_t, size_t> decode(std::string_view text, size_t at) {
  auto lead = static_cast<uint8_t>(text[at]);
  if (lead < 0x80) return {lead, 1};
  size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || at + length > text.size()) return {0, 0};
  char32_t code = lead & (0x7Fu >> length);
  for (size_t i = 1; i < length; ++i) {
    auto next = static_cast<uint8_t>(text[at + i]);
    if ((next & 0xC0) != 0x80) return {0, 0};
    code = (code << 6) | (next & 0x3F);
  }
  constexpr char32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < least[length] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return {0, 0};
  return {code, length};
}

template <class F>
std::string map_code_points(std::string_view text, F&& f) {
  std::u32string codes = from_utf8(text);
  for (char32_t& c : codes)
    if (c < 0xD800 || c >= 0xE000) c = f(c);
  return to_utf8(codes);
}

// The mappings of Unicode itself, whatever language the process is set to.
locale_t unicode_locale() {
  static const locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  return locale;
}

}  // namespace

std::u32string from_utf8(std::string_view text) {
  std::u32string out;
  for (size_t at = 0; at < text.size();) {
    auto [code, length] = decode(text, at);
    out.push_back(length == 0 ? stray_byte + static_cast<uint8_t>(text[at]) : code);
    at += length == 0 ? 1 : length;
  }
  return out;
}

std::string to_utf8(std::u32string_view text) {
  std::string out;
  auto put = [&](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  for (char32_t c : text) {
    if (c < 0x80)
      put(c);
    else if (c >= stray_byte + 0x80 && c <= stray_byte + 0xFF)
      put(c - stray_byte);
    else if (c < 0x800)
      put(0xC0 | c >> 6), put(0x80 | (c & 0x3F));
    else if (c < 0x10000)
      put(0xE0 | c >> 12), put(0x80 | (c >> 6 & 0x3F)), put(0x80 | (c & 0x3F));
    else
      put(0xF0 | c >> 18), put(0x80 | (c >> 12 & 0x3F)), put(0x80 | (c >> 6 & 0x3F)), put(0x80 | (c & 0x3F));
  }
  return out;
}

std::string to_lower(std::string_view text) {
  return map_code_points(text, [](char32_t c) {
    return unicode_locale() ? static_cast<char32_t>(towlower_l(static_cast<wint_t>(c), unicode_locale()))
                            : static_cast<char32_t>(std::towlower(static_cast<wint_t>(c)));
  });
}

std::string to_upper(std::string_view text) {
  return map_code_points(text, [](char32_t c) {
    return unicode_locale() ? static_cast<char32_t>(towupper_l(static_cast<wint_t>(c), unicode_locale()))
                            : static_cast<char32_t>(std::towupper(static_cast<wint_t>(c)));
  });
}

}  // namespace selkie::ops
