// Small text helpers that several outputs share.
#pragma once

#include <string>
#include <string_view>

namespace selkie {

// A JSON string literal.
std::string json_quote(std::string_view text);

}  // namespace selkie
