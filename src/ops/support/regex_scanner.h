// A cursor over a regular expression, and the escapes that stand for one code point.
#pragma once

#include <string>
#include <string_view>

namespace selkie::ops {

class RegexScanner {
 protected:
  explicit RegexScanner(std::string_view pattern);

  [[noreturn]] void wrong(std::string_view what) const;
  bool at_end() const { return at_ >= text_.size(); }
  char32_t peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : 0; }
  bool accept(std::u32string_view token);
  char32_t take();
  // After a backslash: the code point that the escape stands for.
  char32_t escaped_code();

  size_t place() const { return at_; }
  void go_back(size_t place) { at_ = place; }

 private:
  char32_t hex();

  std::string_view shown_;
  std::u32string text_;
  size_t at_ = 0;
};

}  // namespace selkie::ops
