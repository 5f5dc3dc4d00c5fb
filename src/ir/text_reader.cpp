#include "ir/text_reader.h"

#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/convert.h"

namespace selkie::ir {
namespace {

constexpr int max_type_depth = 64;
// Literals of more elements, and those that decimals do not bring back exactly, are printed as bytes.
constexpr int64_t max_spelled_elements = 64;

bool is_name_start(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }
bool is_name_char(char c) { return is_name_start(c) || c == '-' || c == '$'; }
bool is_word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

}  // namespace

void TextReader::fail_here(const std::string& message) {
  size_t line = 1;
  size_t column = 1;
  for (size_t i = 0; i < at_ && i < text_.size(); ++i) {
    column = text_[i] == '\n' ? 1 : column + 1;
    line += text_[i] == '\n';
  }
  fail("{}:{}:{}: {}", file_, line, column, message);
}

void TextReader::skip_space() {
  while (at_ < text_.size()) {
    if (std::isspace(static_cast<unsigned char>(text_[at_])))
      ++at_;
    else if (text_.substr(at_, 2) == "//")
      at_ = std::min(text_.find('\n', at_), text_.size());
    else
      break;
  }
}

bool TextReader::at_end() {
  skip_space();
  return at_ >= text_.size();
}

bool TextReader::peek(std::string_view token) {
  skip_space();
  if (text_.substr(at_, token.size()) != token) return false;
  size_t end = at_ + token.size();
  return !(is_word_char(token.back()) && end < text_.size() && is_word_char(text_[end]));
}

bool TextReader::accept(std::string_view token) {
  if (!peek(token)) return false;
  at_ += token.size();
  return true;
}

void TextReader::expect(std::string_view token) {
  if (!accept(token)) fail_here(fmt::format("'{}' expected", token));
}

bool TextReader::at_identifier() {
  skip_space();
  return at_ < text_.size() && (std::isalpha(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_');
}

std::string TextReader::identifier() {
  if (!at_identifier()) fail_here("a name expected");
  size_t begin = at_;
  while (at_ < text_.size() && is_word_char(text_[at_])) ++at_;
  return std::string(text_.substr(begin, at_ - begin));
}

std::string TextReader::name() {
  skip_space();
  if (at_ < text_.size() && text_[at_] == '"') return string();
  size_t begin = at_;
  if (at_ < text_.size() && is_name_start(text_[at_]))
    while (at_ < text_.size() && is_name_char(text_[at_])) ++at_;
  if (at_ == begin) fail_here("a name expected");
  return std::string(text_.substr(begin, at_ - begin));
}

std::string TextReader::string() {
  expect("\"");
  std::string out;
  while (at_ < text_.size() && text_[at_] != '"') {
    char c = text_[at_++];
    if (c != '\\') {
      out += c;
      continue;
    }
    char escaped = at_ < text_.size() ? text_[at_++] : '\0';
    if (escaped == 'n')
      out += '\n';
    else if (escaped == '\\' || escaped == '"')
      out += escaped;
    else if (escaped == 'x') {
      unsigned code = 0;
      auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + std::min(at_ + 2, text_.size()), code, 16);
      if (error != std::errc() || end != text_.data() + at_ + 2) fail_here("two hexadecimal digits expected");
      out += static_cast<char>(code);
      at_ += 2;
    } else {
      fail_here("unknown escape in a string");
    }
  }
  if (at_ >= text_.size()) fail_here("a string is not closed");
  ++at_;
  return out;
}

bool TextReader::at_number() {
  skip_space();
  if (at_ >= text_.size()) return false;
  char c = text_[at_];
  return std::isdigit(static_cast<unsigned char>(c)) || c == '-' || peek("inf") || peek("nan");
}

std::string TextReader::number() {
  skip_space();
  size_t begin = at_;
  auto accepted = [](char c) { return is_word_char(c) || c == '.' || c == '-' || c == '+'; };
  while (at_ < text_.size() && accepted(text_[at_])) {
    bool sign = text_[at_] == '-' || text_[at_] == '+';
    if (sign && at_ > begin && text_[at_ - 1] != 'e') break;
    ++at_;
  }
  if (at_ == begin) fail_here("a number expected");
  return std::string(text_.substr(begin, at_ - begin));
}

int64_t TextReader::integer() {
  std::string digits = number();
  int64_t value = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size())
    fail_here(fmt::format("'{}' is not a 64-bit integer", digits));
  return value;
}

std::string_view TextReader::until(std::string_view stops) {
  skip_space();
  size_t begin = at_;
  int depth = 0;
  while (at_ < text_.size()) {
    char c = text_[at_];
    if (depth == 0 && stops.find(c) != std::string_view::npos) break;
    if (c == '\'') {
      for (++at_; at_ < text_.size() && text_[at_] != '\''; ++at_)
        if (text_[at_] == '\\') ++at_;
    }
    depth += c == '(' || c == '[';
    depth -= c == ')' || c == ']';
    ++at_;
  }
  at_ = std::min(at_, text_.size());
  std::string_view found = text_.substr(begin, at_ - begin);
  while (!found.empty() && std::isspace(static_cast<unsigned char>(found.back()))) found.remove_suffix(1);
  return found;
}

std::vector<Type> TextReader::types_until(std::string_view close, sym::Context& symbols) {
  std::vector<Type> types;
  while (!accept(close)) {
    if (!types.empty()) expect(",");
    types.push_back(type(symbols));
  }
  return types;
}

Type TextReader::type(sym::Context& symbols) {
  if (++type_depth_ > max_type_depth) fail_here("types are nested too deeply");
  Type result;
  if (accept("?")) {
  } else if (accept("(")) {
    result = Type::tuple(types_until(")", symbols));
  } else {
    std::string word = identifier();
    if (std::optional<DType> dtype = dtype_from_name(word)) {
      result = Type::tensor(*dtype);
      expect("[");
      if (accept("*")) {
        expect("]");
      } else {
        result.dims.emplace();
        while (!accept("]")) {
          if (!result.dims->empty()) expect(",");
          try {
            result.dims->push_back(sym::parse(symbols, until(",]")));
          } catch (const Error& error) {
            fail_here(error.message());
          }
          if (result.dims->back().constant().value_or(0) < 0) fail_here("a dimension is negative");
        }
      }
    } else if (word == "seq" || word == "opt") {
      expect("<");
      result = word == "seq" ? Type::seq(type(symbols)) : Type::opt(type(symbols));
      expect(">");
    } else if (word == "map") {
      expect("<");
      std::optional<DType> key = dtype_from_name(identifier());
      if (!key) fail_here("the key type of a map must be an element type");
      expect(",");
      result = Type::map(*key, type(symbols));
      expect(">");
    } else if (word == "fn") {
      expect("(");
      std::vector<Type> parameters = types_until(")", symbols);
      expect("->");
      expect("(");
      result = Type::function(std::move(parameters), types_until(")", symbols));
    } else {
      result = Type::data(word);
    }
  }
  --type_depth_;
  return result;
}

Tensor TextReader::elements(DType dtype, Dims dims) {
  size_t count = static_cast<size_t>(element_count(dims));
  if (accept("hex")) {
    expect("(");
    std::string digits = string();
    expect(")");
    size_t size = dtype == DType::str ? 0 : element_size(dtype);
    if (size == 0 || digits.size() / 2 / size != count || digits.size() % (2 * size) != 0)
      fail_here("the number of bytes does not fit the shape");
    Tensor out(dtype, std::move(dims));
    for (size_t i = 0; i < out.byte_size(); ++i) {
      unsigned byte = 0;
      auto [end, error] = std::from_chars(&digits[2 * i], &digits[2 * i] + 2, byte, 16);
      if (error != std::errc() || end != &digits[2 * i] + 2) fail_here("hexadecimal digits expected");
      out.mutable_bytes()[i] = static_cast<std::byte>(byte);
    }
    if (dtype == DType::boolean)
      for (size_t i = 0; i < count; ++i) out.mutable_bytes()[i] &= std::byte{1};
    return out;
  }
  std::vector<std::string> words;
  expect("{");
  while (!accept("}")) {
    if (!words.empty()) expect(",");
    if (dtype == DType::str)
      words.push_back(string());
    else
      words.push_back(at_number() ? number() : identifier());
    if (words.size() > count) fail_here(fmt::format("more than the {} elements of the shape", count));
  }
  if (words.size() != count) fail_here(fmt::format("{} elements given for a shape of {}", words.size(), count));
  return dispatch_wide(dtype, [&](auto tag) -> Tensor {
    using W = typename decltype(tag)::type;
    if constexpr (std::is_same_v<W, std::string>) {
      return narrow<std::string>(words, dtype, std::move(dims));
    } else if constexpr (std::is_same_v<W, std::complex<double>>) {
      fail_here("complex elements are written as hex(\"…\")");
    } else {
      std::vector<W> values(words.size());
      for (size_t i = 0; i < words.size(); ++i) {
        const std::string& word = words[i];
        if (dtype == DType::boolean && (word == "true" || word == "false")) {
          values[i] = word == "true";
          continue;
        }
        const char* last = word.data() + word.size();
        auto [end, error] = std::from_chars(word.data(), last, values[i]);
        if (error != std::errc() || end != last)
          fail_here(fmt::format("'{}' is not an element of {}", word, selkie::name(dtype)));
      }
      return narrow<W>(values, dtype, std::move(dims));
    }
  });
}

Dims fixed_dims(const Type& type) {
  if (!type.is_tensor() || !type.dims) fail("the type {} has no fixed shape", to_string(type));
  Dims dims;
  for (sym::Expr e : *type.dims) {
    if (!e.constant()) fail("dimension {} of {} is not a number", sym::to_string(e), to_string(type));
    dims.push_back(*e.constant());
  }
  return dims;
}

std::string quote(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      out += std::string{'\\', c};
    else if (c == '\n')
      out += "\\n";
    else if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
    else
      out += c;
  }
  return out + '"';
}

std::string spell_name(std::string_view name) {
  bool plain = !name.empty() && is_name_start(name[0]) && name != "_";
  for (char c : name) plain = plain && is_name_char(c);
  return plain ? std::string(name) : quote(name);
}

std::string spell_float(float value) {
  std::string out = fmt::format("{}", value);
  return std::isfinite(value) && out.find_first_of(".e") == std::string::npos ? out + ".0" : out;
}

std::string spell_elements(const Tensor& tensor) {
  // Reading an infinity into a float of 8 bits saturates.
  bool inexact = false;
  if (is_float(tensor.dtype()))
    for (double v : widen<double>(tensor))
      inexact = inexact || std::isnan(v) || (std::isinf(v) && element_size(tensor.dtype()) == 1);
  bool spelled = tensor.dtype() == DType::str ||
                 (tensor.count() <= max_spelled_elements && !is_complex(tensor.dtype()) && !inexact);
  std::string out;
  if (!spelled) {
    out = "hex(\"";
    for (size_t i = 0; i < tensor.byte_size(); ++i)
      out += fmt::format("{:02x}", static_cast<unsigned>(tensor.bytes()[i]));
    return out + "\")";
  }
  dispatch_wide(tensor.dtype(), [&](auto tag) {
    using W = typename decltype(tag)::type;
    for (const W& value : widen<W>(tensor)) {
      if (!out.empty()) out += ", ";
      if constexpr (std::is_same_v<W, std::string>)
        out += quote(value);
      else if constexpr (std::is_same_v<W, double>)
        out += tensor.dtype() == DType::f64 ? fmt::format("{}", value) : fmt::format("{}", static_cast<float>(value));
      else if constexpr (std::is_same_v<W, uint64_t>)
        out += tensor.dtype() == DType::boolean ? (value ? "true" : "false") : fmt::format("{}", value);
      else if constexpr (std::is_same_v<W, int64_t>)
        out += fmt::format("{}", value);
    }
  });
  return "{" + out + "}";
}

}  // namespace selkie::ir
