// The reader of symbolic text, shared by parse() and by the fact language. Private to sym/.
#pragma once

#include <string>
#include <string_view>

#include "sym/expr.h"

namespace selkie::sym {

class Reader {
 public:
  Reader(Context& context, std::string_view text) : context_(context), text_(text) {}

  Expr expression();
  int64_t integer();
  bool accept(std::string_view token);
  bool accept_word(std::string_view word);
  void expect(std::string_view token);
  bool at_end();
  void finish();
  [[noreturn]] void fail_here(std::string_view what) const;

 private:
  void skip_space();
  Expr term(bool negative);
  Expr factor(bool negative);
  Expr named();
  int64_t literal(bool negative);
  std::string quoted_name();

  Context& context_;
  std::string_view text_;
  size_t position_ = 0;
  int nesting_ = 0;
};

}  // namespace selkie::sym
