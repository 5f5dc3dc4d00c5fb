#include "ops/support/regex_scanner.h"

#include "base/error.h"
#include "ops/support/regex_tree.h"
#include "ops/support/utf8.h"

namespace selkie::ops {

RegexScanner::RegexScanner(std::string_view pattern) : shown_(pattern), text_(from_utf8(pattern)) {}

void RegexScanner::wrong(std::string_view what) const { fail("the pattern \"{}\" is wrong: {}", shown_, what); }

bool RegexScanner::accept(std::u32string_view token) {
  if (std::u32string_view(text_).substr(at_, token.size()) != token) return false;
  at_ += token.size();
  return true;
}

char32_t RegexScanner::take() {
  if (at_end()) wrong("it ends too early");
  return text_[at_++];
}

char32_t RegexScanner::escaped_code() {
  char32_t c = take();
  switch (c) {
    case 'a':
      return '\a';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'v':
      return '\v';
    case 'x':
      return hex();
    case 'p':
    case 'P':
      wrong("Unicode classes (\\p) are not supported");
    default:
      break;
  }
  if (c == '0' || (c >= '1' && c <= '7' && peek() >= '0' && peek() <= '7')) {
    char32_t code = c - '0';
    for (int i = 0; i < 2 && peek() >= '0' && peek() <= '7'; ++i) code = code * 8 + (take() - '0');
    return code;
  }
  bool alphanumeric = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  if (alphanumeric) wrong("an escape that does not exist");
  return c;
}

char32_t RegexScanner::hex() {
  bool braces = accept(U"{");
  char32_t code = 0;
  for (int i = 0; braces ? peek() != '}' : i < 2; ++i) {
    char32_t c = take();
    char32_t digit = c >= '0' && c <= '9'   ? c - '0'
                     : c >= 'a' && c <= 'f' ? c - 'a' + 10
                     : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                            : 16;
    if (digit == 16) wrong("a hexadecimal digit is missing");
    code = code * 16 + digit;
    if (code > last_code_point) wrong("a code point above 10FFFF");
  }
  if (braces) take();
  return code;
}

}  // namespace selkie::ops
