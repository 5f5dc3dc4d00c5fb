// Reads the text form of a kernel.
#include <bit>
#include <cctype>
#include <charconv>
#include <optional>
#include <unordered_map>

#include "base/error.h"
#include "kir/expressions.h"
#include "kir/text.h"

namespace selkie::kir {
namespace {

constexpr int max_nesting = 200;

bool is_word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// A cursor over text. Every failure is a user error with line and column.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  [[noreturn]] void fail_here(const std::string& message) const {
    size_t line = 1;
    size_t column = 1;
    for (size_t i = 0; i < at_ && i < text_.size(); ++i) {
      column = text_[i] == '\n' ? 1 : column + 1;
      line += text_[i] == '\n';
    }
    fail("kernel text:{}:{}: {}", line, column, message);
  }

  bool at_end() {
    skip_space();
    return at_ >= text_.size();
  }

  // Words match as wholes.
  bool accept(std::string_view token) {
    skip_space();
    if (text_.substr(at_, token.size()) != token) return false;
    size_t end = at_ + token.size();
    if (is_word_char(token.back()) && end < text_.size() && is_word_char(text_[end])) return false;
    at_ = end;
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token)) fail_here(fmt::format("'{}' expected", token));
  }

  std::string identifier() {
    skip_space();
    size_t begin = at_;
    while (at_ < text_.size() && is_word_char(text_[at_])) ++at_;
    if (at_ == begin || std::isdigit(static_cast<unsigned char>(text_[begin]))) fail_here("a name expected");
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::string kernel_name() {
    std::string out;
    if (accept("\"")) {
      for (; at_ < text_.size() && text_[at_] != '"'; ++at_) {
        if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
        out += text_[at_];
      }
      expect("\"");
    } else {
      while (at_ < text_.size() && (is_word_char(text_[at_]) || text_[at_] == '.')) out += text_[at_++];
    }
    if (out.empty()) fail_here("the name of a kernel expected");
    return out;
  }

  // A number in its own spelling: digits, sign, point, exponent, inf, true.
  std::string number() {
    skip_space();
    size_t begin = at_;
    for (; at_ < text_.size(); ++at_) {
      char c = text_[at_];
      bool sign = (c == '-' || c == '+') && (at_ == begin || text_[at_ - 1] == 'e');
      if (!is_word_char(c) && c != '.' && !sign) break;
    }
    if (at_ == begin) fail_here("a number expected");
    return std::string(text_.substr(begin, at_ - begin));
  }

  // A symbolic integer that ends before one of `stops` outside brackets and quotes.
  sym::Expr symbolic(sym::Context& symbols, std::string_view stops) {
    skip_space();
    size_t begin = at_;
    int depth = 0;
    for (; at_ < text_.size(); ++at_) {
      char c = text_[at_];
      if (depth == 0 && stops.find(c) != std::string_view::npos) break;
      depth += (c == '(') - (c == ')');
      if (c != '\'') continue;
      for (++at_; at_ < text_.size() && text_[at_] != '\''; ++at_)
        if (text_[at_] == '\\') ++at_;
    }
    at_ = std::min(at_, text_.size());
    try {
      return sym::parse(symbols, text_.substr(begin, at_ - begin));
    } catch (const Error& error) {
      fail_here(error.message());
    }
  }

 private:
  void skip_space() {
    while (at_ < text_.size()) {
      if (std::isspace(static_cast<unsigned char>(text_[at_])))
        ++at_;
      else if (text_.substr(at_, 2) == "//")
        at_ = std::min(text_.find('\n', at_), text_.size());
      else
        break;
    }
  }

  std::string_view text_;
  size_t at_ = 0;
};

class Parser {
 public:
  Parser(sym::Context& symbols, std::string_view text) : symbols_(symbols), reader_(text), expressions_(kernel_) {}

  Kernel run() {
    reader_.expect("kernel");
    reader_.expect("@");
    kernel_.name = reader_.kernel_name();
    reader_.expect("(");
    while (!reader_.accept(")")) {
      if (!kernel_.buffers.empty()) reader_.expect(",");
      read_buffer();
    }
    reader_.expect("sizes");
    reader_.expect("(");
    while (!reader_.accept(")")) {
      if (!kernel_.sizes.empty()) reader_.expect(",");
      kernel_.sizes.push_back(reader_.symbolic(symbols_, ",)"));
    }
    reader_.expect("{");
    kernel_.body = read_block();
    if (!reader_.at_end()) reader_.fail_here("text after the kernel");
    return std::move(kernel_);
  }

 private:
  DType read_dtype() {
    std::string word = reader_.identifier();
    std::optional<DType> dtype = dtype_from_name(word);
    if (!dtype) reader_.fail_here(fmt::format("'{}' is no dtype", word));
    return *dtype;
  }

  void read_buffer() {
    Buffer::Role role = reader_.accept("out")       ? Buffer::Role::output
                        : reader_.accept("scratch") ? Buffer::Role::scratch
                                                    : Buffer::Role::input;
    std::string name = new_name();
    reader_.expect(":");
    DType dtype = read_dtype();
    reader_.expect("[");
    sym::Expr elements = reader_.symbolic(symbols_, "]");
    reader_.expect("]");
    buffers_.emplace(name, kernel_.buffers.size());
    kernel_.buffers.push_back({.name = std::move(name), .dtype = dtype, .role = role, .elements = elements});
  }

  std::string new_name() {
    std::string name = reader_.identifier();
    if (!is_name(name)) reader_.fail_here(fmt::format("'{}' cannot be a name", name));
    if (buffers_.contains(name) || locals_.contains(name)) reader_.fail_here(fmt::format("'{}' is taken", name));
    return name;
  }

  Block read_block() {
    if (++nesting_ > max_nesting) reader_.fail_here("blocks are nested too deeply");
    Block block;
    while (!reader_.accept("}")) {
      if (reader_.accept("let"))
        read_let();
      else
        block.push_back(read_statement());
    }
    --nesting_;
    return block;
  }

  void read_let() {
    reader_.expect("%");
    std::string name = reader_.number();
    reader_.expect("=");
    if (!lets_.emplace(name, read_expression()).second) reader_.fail_here(fmt::format("%{} is taken", name));
  }

  Statement read_statement() {
    for (auto kind : {Statement::LoopKind::range, Statement::LoopKind::serial, Statement::LoopKind::vector})
      if (reader_.accept(word(kind))) return read_loop(kind);
    if (reader_.accept("if")) {
      ExprId condition = read_expression();
      reader_.expect("{");
      return {.kind = Statement::Kind::branch, .value = condition, .body = read_block()};
    }
    if (reader_.accept("local")) return read_declaration();
    std::string name = reader_.identifier();
    if (auto it = buffers_.find(name); it != buffers_.end()) {
      ExprId index = read_index();
      reader_.expect("=");
      return {.kind = Statement::Kind::store, .slot = it->second, .index = index, .value = read_expression()};
    }
    uint32_t slot = local_slot(name);
    if (reader_.accept("=")) return {.kind = Statement::Kind::assign, .slot = slot, .value = read_expression()};
    std::string combine = reader_.identifier();
    reader_.expect("=");
    return {.kind = Statement::Kind::accumulate, .slot = slot, .combine = find_op(combine), .value = read_expression()};
  }

  Statement read_loop(Statement::LoopKind kind) {
    Statement loop{.kind = Statement::Kind::loop, .loop_kind = kind};
    loop.variable = reader_.symbolic(symbols_, "<");
    reader_.expect("<");
    loop.extent = reader_.symbolic(symbols_, "{");
    reader_.expect("{");
    loop.body = read_block();
    return loop;
  }

  Statement read_declaration() {
    std::string name = new_name();
    reader_.expect(":");
    DType dtype = read_dtype();
    reader_.expect("=");
    ExprId value = read_expression();
    auto slot = static_cast<uint32_t>(kernel_.locals.size());
    locals_.emplace(name, slot);
    kernel_.locals.push_back({.name = std::move(name), .dtype = dtype});
    return {.kind = Statement::Kind::declare, .slot = slot, .value = value};
  }

  uint32_t local_slot(const std::string& name) {
    auto it = locals_.find(name);
    if (it == locals_.end()) reader_.fail_here(fmt::format("nothing is called '{}'", name));
    return it->second;
  }

  Op find_op(std::string_view name) {
    static const std::unordered_map<std::string_view, Op> ops{
#define SELKIE_KIR_OP(op, operands, result) {#op, Op::op},
#include "kir/ops.def"
    };
    auto it = ops.find(name);
    if (it == ops.end()) reader_.fail_here(fmt::format("'{}' is no operation", name));
    return it->second;
  }

  ExprId read_index() {
    reader_.expect("[");
    ExprId index = no_expr;
    if (reader_.accept(":")) {
      index = read_expression();
    } else {
      index = expressions_.integer(reader_.symbolic(symbols_, "]"));
    }
    reader_.expect("]");
    return index;
  }

  ExprId read_expression() {
    if (++nesting_ > max_nesting) reader_.fail_here("expressions are nested too deeply");
    ExprId id = read_bare_expression();
    --nesting_;
    return id;
  }

  ExprId read_bare_expression() {
    if (reader_.accept("%")) {
      auto it = lets_.find(reader_.number());
      if (it == lets_.end()) reader_.fail_here("no let of that number stands before");
      return it->second;
    }
    if (reader_.accept("[")) {
      sym::Expr value = reader_.symbolic(symbols_, "]");
      reader_.expect("]");
      return expressions_.integer(value);
    }
    std::string name = reader_.identifier();
    if (std::optional<DType> dtype = dtype_from_name(name)) return read_constant(*dtype);
    if (reader_.accept("(")) return read_call(find_op(name));
    if (reader_.accept("<")) {
      DType dtype = read_dtype();
      reader_.expect(">");
      reader_.expect("(");
      Op op = find_op(name);
      if (op != Op::cast && op != Op::bits) reader_.fail_here(fmt::format("'{}' takes no dtype", name));
      ExprId operand = read_expression();
      reader_.expect(")");
      return expressions_.convert(op, dtype, operand);
    }
    if (auto it = buffers_.find(name); it != buffers_.end()) return expressions_.load(it->second, read_index());
    return expressions_.local(local_slot(name));
  }

  ExprId read_call(Op op) {
    if (info(op).result == ResultRule::given && op != Op::load_if)
      reader_.fail_here(fmt::format("'{}' is not written as a call", info(op).name));
    std::array<ExprId, 3> operands{no_expr, no_expr, no_expr};
    uint32_t buffer = 0;
    for (size_t i = 0; i < info(op).operands; ++i) {
      if (i > 0) reader_.expect(",");
      if (op == Op::load_if && i == 0) {
        auto it = buffers_.find(reader_.identifier());
        if (it == buffers_.end()) reader_.fail_here("a buffer expected");
        buffer = it->second;
        operands[0] = read_index();
      } else {
        operands[i] = read_expression();
      }
    }
    reader_.expect(")");
    if (op == Op::load_if) return expressions_.load_if(buffer, operands[0], operands[1], operands[2]);
    return expressions_.apply(op, operands[0], operands[1], operands[2]);
  }

  template <class T>
  T read_value(const std::string& text, const char* begin, int base) {
    T value{};
    const char* last = text.data() + text.size();
    std::from_chars_result result;
    if constexpr (std::is_floating_point_v<T>)
      result = std::from_chars(begin, last, value);
    else
      result = std::from_chars(begin, last, value, base);
    if (result.ec != std::errc() || result.ptr != last) reader_.fail_here(fmt::format("'{}' is no such number", text));
    return value;
  }

  ExprId read_constant(DType dtype) {
    std::string text = reader_.number();
    if (dtype == DType::boolean) {
      if (text != "true" && text != "false") reader_.fail_here("true or false expected");
      return expressions_.whole(dtype, text == "true");
    }
    if (is_float(dtype) && text.starts_with("0x"))
      return expressions_.whole(dtype, std::bit_cast<int64_t>(read_value<uint64_t>(text, text.data() + 2, 16)));
    if (is_float(dtype)) return expressions_.real(dtype, read_value<double>(text, text.data(), 10));
    if (dtype == DType::u64)
      return expressions_.whole(dtype, std::bit_cast<int64_t>(read_value<uint64_t>(text, text.data(), 10)));
    return expressions_.whole(dtype, read_value<int64_t>(text, text.data(), 10));
  }

  sym::Context& symbols_;
  Reader reader_;
  Kernel kernel_;
  Expressions expressions_;
  std::unordered_map<std::string, uint32_t> buffers_;
  std::unordered_map<std::string, uint32_t> locals_;
  std::unordered_map<std::string, ExprId> lets_;
  int nesting_ = 0;
};

}  // namespace

Kernel parse(sym::Context& symbols, std::string_view text) { return Parser(symbols, text).run(); }

}  // namespace selkie::kir
