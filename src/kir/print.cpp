// The text form of kernels. An expression that is large and used more than once, or deep, is named by a `let`, which
// stands for it wherever the name is used, so that the text stays as small as the kernel.
#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <unordered_map>

#include "base/error.h"
#include "kir/text.h"

namespace selkie::kir {
namespace {

// Smaller expressions are easier to read where they are used.
constexpr uint64_t named_from_size = 8;
constexpr uint64_t named_from_depth = 32;

class Printer {
 public:
  explicit Printer(const Kernel& kernel) : kernel_(kernel), uses_(kernel.expressions.size()) {
    count_uses(kernel.body);
    named_.resize(kernel.expressions.size());
    std::vector<uint64_t> sizes(named_.size(), 1);
    std::vector<uint64_t> depths(named_.size(), 1);
    for (ExprId id = 0; id < named_.size(); ++id) {
      for (ExprId operand : kernel_[id].operands) {
        if (operand == no_expr || named_[operand]) continue;
        sizes[id] += sizes[operand];
        depths[id] = std::max(depths[id], depths[operand] + 1);
      }
      named_[id] = (uses_[id] > 1 && sizes[id] >= named_from_size) || depths[id] >= named_from_depth;
    }
  }

  std::string run() {
    out_ = "kernel @" + spell_kernel_name() + "(";
    bool first = true;
    for (const Buffer& buffer : kernel_.buffers) {
      if (!first) out_ += ", ";
      first = false;
      std::string_view role = word(buffer.role);
      out_ += fmt::format("{}{}{}: {}[{}]", role, role.empty() ? "" : " ", buffer.name, name(buffer.dtype),
                          sym::to_string(buffer.elements));
    }
    out_ += ") sizes(";
    for (size_t i = 0; i < kernel_.sizes.size(); ++i) out_ += (i == 0 ? "" : ", ") + sym::to_string(kernel_.sizes[i]);
    out_ += ") {\n";
    print_block(kernel_.body, 1);
    return out_ + "}\n";
  }

 private:
  std::string spell_kernel_name() const {
    const std::string& given = kernel_.name;
    bool plain = !given.empty();
    for (char c : given) plain = plain && (std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.');
    if (plain) return given;
    std::string quoted = "\"";
    for (char c : given) {
      if (c == '"' || c == '\\') quoted += '\\';
      quoted += c;
    }
    return quoted + '"';
  }

  void count_uses(const Block& block) {
    for (const Statement& s : block) {
      count_use(s.index);
      count_use(s.value);
      count_uses(s.body);
    }
  }

  // Only what a statement reaches counts, so that the text does not depend on anything that it does not show.
  void count_use(ExprId id) {
    if (id == no_expr || ++uses_[id] > 1) return;
    for (ExprId operand : kernel_[id].operands) count_use(operand);
  }

  void indent(size_t depth) { out_.append(2 * depth, ' '); }

  void print_block(const Block& block, size_t depth) {
    for (const Statement& s : block) {
      if (s.index != no_expr) print_lets(s.index, depth);
      if (s.value != no_expr) print_lets(s.value, depth);
      indent(depth);
      print_statement(s);
      if (s.kind == Statement::Kind::loop || s.kind == Statement::Kind::branch) {
        out_ += " {\n";
        print_block(s.body, depth + 1);
        indent(depth);
        out_ += "}";
      }
      out_ += "\n";
    }
  }

  void print_statement(const Statement& s) {
    switch (s.kind) {
      case Statement::Kind::loop:
        out_ += fmt::format("{} {} < {}", word(s.loop_kind), sym::to_string(s.variable), sym::to_string(s.extent));
        return;
      case Statement::Kind::declare:
        out_ += fmt::format("local {}: {} = ", kernel_.locals[s.slot].name, name(kernel_.locals[s.slot].dtype));
        break;
      case Statement::Kind::assign:
        out_ += kernel_.locals[s.slot].name + " = ";
        break;
      case Statement::Kind::accumulate:
        out_ += fmt::format("{} {}= ", kernel_.locals[s.slot].name, info(s.combine).name);
        break;
      case Statement::Kind::store:
        out_ += kernel_.buffers[s.slot].name;
        print_index(s.index);
        out_ += " = ";
        break;
      case Statement::Kind::branch:
        out_ += "if ";
        break;
    }
    print_expression(s.value);
  }

  void print_lets(ExprId id, size_t depth) {
    if (names_.contains(id)) return;
    for (ExprId operand : kernel_[id].operands)
      if (operand != no_expr) print_lets(operand, depth);
    if (!named_[id] || names_.contains(id)) return;
    indent(depth);
    out_ += fmt::format("let %{} = ", names_.size());
    print_expression(id);
    out_ += "\n";
    names_.emplace(id, names_.size());
  }

  void print_index(ExprId id) {
    out_ += "[";
    if (kernel_[id].op == Op::integer) {
      out_ += sym::to_string(kernel_[id].integer);
    } else {
      out_ += ":";
      print_expression(id);
    }
    out_ += "]";
  }

  void print_expression(ExprId id) {
    if (auto it = names_.find(id); it != names_.end()) {
      out_ += fmt::format("%{}", it->second);
      return;
    }
    const Expr& e = kernel_[id];
    size_t first = 0;
    switch (e.op) {
      case Op::integer:
        out_ += "[" + sym::to_string(e.integer) + "]";
        return;
      case Op::constant:
        return print_constant(e);
      case Op::local:
        out_ += kernel_.locals[e.slot].name;
        return;
      case Op::load:
        out_ += kernel_.buffers[e.slot].name;
        return print_index(e.operands[0]);
      case Op::load_if:
        out_ += "load_if(" + kernel_.buffers[e.slot].name;
        print_index(e.operands[0]);
        first = 1;
        break;
      case Op::cast:
      case Op::bits:
        out_ += fmt::format("{}<{}>(", info(e.op).name, name(e.dtype));
        break;
      default:
        out_ += fmt::format("{}(", info(e.op).name);
    }
    for (size_t i = first; i < info(e.op).operands; ++i) {
      if (i > 0) out_ += ", ";
      print_expression(e.operands[i]);
    }
    out_ += ")";
  }

  void print_constant(const Expr& e) {
    out_ += fmt::format("{} ", name(e.dtype));
    if (e.dtype == DType::boolean && (e.bits == 0 || e.bits == 1)) {
      out_ += e.bits ? "true" : "false";
    } else if (e.dtype == DType::u64) {
      out_ += fmt::format("{}", static_cast<uint64_t>(e.bits));
    } else if (!is_float(e.dtype)) {
      out_ += fmt::format("{}", e.bits);
    } else if (auto value = std::bit_cast<double>(e.bits); !std::isnan(value)) {
      out_ += fmt::format("{}", value);
    } else {
      out_ += fmt::format("0x{:016x}", static_cast<uint64_t>(e.bits));
    }
  }

  const Kernel& kernel_;
  std::vector<uint32_t> uses_;
  std::vector<bool> named_;
  std::unordered_map<ExprId, size_t> names_;
  std::string out_;
};

}  // namespace

bool is_name(std::string_view name) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) return false;
  for (char c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') return false;
  static constexpr std::string_view words[] = {"range", "serial", "vector", "local", "let", "if", "out", "scratch"};
  return std::find(std::begin(words), std::end(words), name) == std::end(words) && !dtype_from_name(name);
}

std::string_view word(Statement::LoopKind kind) {
  static constexpr std::string_view words[] = {"range", "serial", "vector"};
  return words[static_cast<size_t>(kind)];
}

std::string_view word(Buffer::Role role) {
  static constexpr std::string_view words[] = {"", "out", "scratch"};
  return words[static_cast<size_t>(role)];
}

std::string print(const Kernel& kernel) { return Printer(kernel).run(); }

}  // namespace selkie::kir
