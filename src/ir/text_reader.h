// Reads the pieces that Selkie's text forms are made of: names, numbers, strings, types and tensor literals.
#pragma once

#include <string>
#include <string_view>

#include "base/tensor.h"
#include "ir/type.h"

namespace selkie::ir {

// A cursor over text. Every failure is a user error with line and column.
class TextReader {
 public:
  TextReader(std::string_view text, std::string file) : text_(text), file_(std::move(file)) {}

  bool at_end();
  // Whether the next token starts with `token`, which is consumed if so. Words match as wholes.
  bool accept(std::string_view token);
  void expect(std::string_view token);
  bool peek(std::string_view token);

  bool at_identifier();
  std::string identifier();
  std::string name();    // an identifier-like name, or any text in quotes
  std::string string();  // in double quotes, with escapes
  int64_t integer();
  // A number in the text's own spelling: digits, sign, point, exponent, inf, nan.
  std::string number();
  bool at_number();

  // The text up to one of `stops` outside brackets and quotes, trimmed; the stop is not consumed.
  std::string_view until(std::string_view stops);

  Type type(sym::Context& symbols);
  // Elements after a tensor type: {1, 2} or hex("…").
  Tensor elements(DType dtype, Dims dims);

  [[noreturn]] void fail_here(const std::string& message);

 private:
  void skip_space();
  std::vector<Type> types_until(std::string_view close, sym::Context& symbols);

  std::string_view text_;
  std::string file_;
  size_t at_ = 0;
  int type_depth_ = 0;
};

// Dims that are all numbers; an error names the first that is not.
Dims fixed_dims(const Type& type);

// The inverse of `name`, `string` and `elements`.
std::string quote(std::string_view text);
std::string spell_name(std::string_view name);
std::string spell_float(float value);
std::string spell_elements(const Tensor& tensor);

}  // namespace selkie::ir
