// UTF-8 text as code points and back.
#pragma once

#include <string>
#include <string_view>

namespace selkie::ops {

// Bytes that are no UTF-8 become code points of the range U+DC80…U+DCFF, which `to_utf8` turns back into those bytes.
std::u32string from_utf8(std::string_view text);
std::string to_utf8(std::u32string_view text);

// Each code point's simple mapping, independent of the machine's locale.
std::string to_lower(std::string_view text);
std::string to_upper(std::string_view text);

}  // namespace selkie::ops
