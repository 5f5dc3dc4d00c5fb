#include "program/program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "program/chains.h"

namespace selkie::program {
namespace {

constexpr std::string_view step_names[] = {"constant", "add",     "subtract", "multiply", "divide",
                                           "modulo",   "minimum", "maximum",  "less"};
constexpr std::string_view storage_names[] = {"constant", "input", "arena", "heap", "view", "state"};

std::string text(const Program& p, Register r) {
  if (r == no_register) return "_";
  return fmt::format("r{}", r) + (p.registers[r].name.empty() ? "" : ":" + p.registers[r].name);
}

std::string text(const Program& p, std::span<const Register> registers) {
  std::string out;
  for (Register r : registers) out += (out.empty() ? "" : ", ") + text(p, r);
  return out;
}

std::string place(const Program& p, const RegisterInfo& r) {
  if (r.alternates) return " alternating";
  return r.offset ? fmt::format(" in {} at s{}", text(p, r.viewed), *r.offset) : "";
}

std::string epilogue(const Program& p, std::optional<uint32_t> launch) {
  if (!launch) return "";
  return fmt::format(" then {}({})", p.kernels[p.launches[*launch].kernel], text(p, p.launches[*launch].buffers));
}

std::string finish(const Program& p, const Finish& f) {
  std::string out;
  if (f.addend != no_register) out += " + " + text(p, f.addend);
  if (f.low > -std::numeric_limits<float>::infinity()) out += fmt::format(" at least {}", f.low);
  if (f.high < std::numeric_limits<float>::infinity()) out += fmt::format(" at most {}", f.high);
  return out;
}

std::string control_text(const Program& p, const Instruction& i) {
  switch (i.op) {
    case Opcode::jump:
      return fmt::format("jump {}", i.a);
    case Opcode::branch:
      return fmt::format("branch {} unless s{}", i.a, i.b);
    case Opcode::fail:
      return fmt::format("fail  # {}", p.checks[i.a].text);
    case Opcode::trip:
      return fmt::format("trip s{}", i.a);
    case Opcode::take:
      return fmt::format("take {} = {}", text(p, i.a), text(p, i.b));
    case Opcode::move:
      return fmt::format("move {} = {}", text(p, i.a), text(p, i.b));
    case Opcode::alternate:
      return fmt::format("alternate {}", text(p, i.a));
    case Opcode::scalar:
      return fmt::format("scalar {} = s{}", text(p, i.a), i.b);
    case Opcode::copy_slice: {
      const SliceCopy& c = p.slice_copies[i.a];
      return fmt::format("copy_slice {} at s{} = {} at s{}", text(p, c.to), c.to_offset, text(p, c.from),
                         c.from_offset);
    }
    case Opcode::replace: {
      const Replacement& r = p.replacements[i.a];
      return fmt::format("replace {} at {} by {}  # {}", text(p, r.to), text(p, r.indices), text(p, r.slices), r.node);
    }
    case Opcode::item:
      return fmt::format("item {} = {}[s{}]", text(p, p.items[i.a].to), text(p, p.items[i.a].sequence),
                         p.items[i.a].index);
    case Opcode::insert: {
      const Insertion& n = p.insertions[i.a];
      return fmt::format("insert {} = {}{} + {}{}", text(p, n.to), n.takes ? "taken " : "", text(p, n.sequence),
                         text(p, n.item), n.index ? fmt::format(" at s{}", *n.index) : "");
    }
    case Opcode::length:
      return fmt::format("length s{} = {}", i.a, text(p, i.b));
    case Opcode::grow:
      return fmt::format("grow {}", text(p, p.growths[i.a].to));
    case Opcode::append:
      return fmt::format("append {} += {}", text(p, p.growths[i.a].to), text(p, p.growths[i.a].from));
    case Opcode::collect:
      return fmt::format("collect {}", text(p, p.growths[i.a].to));
    default:
      return {};
  }
}

std::string text(const Program& p, const Instruction& i) {
  switch (i.op) {
    case Opcode::sizes:
      return fmt::format("sizes {}..{}", i.a, i.b);
    case Opcode::check:
      return fmt::format("check s{} {} s{}  # {}", p.checks[i.a].a, p.checks[i.a].equal ? "==" : "<=", p.checks[i.a].b,
                         p.checks[i.a].text);
    case Opcode::check_indices:
      return fmt::format("check_indices {} below s{}  # {}", text(p, p.index_checks[i.a].indices),
                         p.index_checks[i.a].extent, p.index_checks[i.a].node);
    case Opcode::launch: {
      const Launch& l = p.launches[i.a];
      return fmt::format("launch {}({}) sizes({}){}  # {}", p.kernels[l.kernel], text(p, l.buffers),
                         fmt::join(l.sizes, ", "), l.range ? fmt::format(" range s{}", *l.range) : "", l.node);
    }
    case Opcode::product: {
      const MatrixProduct& m = p.products[i.a];
      return fmt::format("product {} = {} · {}{}{}{}  # {}", text(p, m.c.value), text(p, m.a.value), text(p, m.b.value),
                         m.packed ? " (packed)" : "", finish(p, m.finish), epilogue(p, m.epilogue), m.node);
    }
    case Opcode::convolution: {
      const Convolution& c = p.convolutions[i.a];
      return fmt::format("convolution {} = {} ∗ [{}, {}, {}]{}{}{}{}{}  # {}", text(p, c.output), text(p, c.input),
                         c.output_channels, c.input_channels / c.groups, fmt::join(c.kernel, "×"),
                         c.depthwise ? " depthwise"
                         : c.grouped ? " in groups"
                                     : "",
                         c.packs_weights             ? " packed in the call"
                         : c.winograd == no_register ? ""
                         : c.weights == no_register  ? " by winograd"
                                                     : " or winograd",
                         c.wide_winograd ? " of 6x6" : "", finish(p, c.finish), epilogue(p, c.epilogue), c.node);
    }
    case Opcode::integer: {
      const IntegerProduct& c = p.integer_products[i.a];
      return fmt::format("integer {} = {} ∗ [{}, {}, {}]{}  # {}", text(p, c.output), text(p, c.input),
                         c.output_channels, c.input_channels / c.groups, fmt::join(c.kernel, "×"),
                         epilogue(p, c.epilogue), c.node);
    }
    case Opcode::attention: {
      const Attention& a = p.attentions[i.a];
      return fmt::format("attention {} = ({}, {}, {}, {})  # {}", text(p, a.output.value), text(p, a.query.value),
                         text(p, a.key.value), text(p, a.value.value), text(p, a.mask), a.node);
    }
    case Opcode::recurrent: {
      const Recurrent& r = p.recurrents[i.a];
      constexpr std::string_view cells[] = {"rnn", "gru", "lstm"};
      return fmt::format("{} {}, {}, {} = ({}) {} → {}  # {}", cells[static_cast<size_t>(r.cell)], text(p, r.y),
                         text(p, r.y_h), text(p, r.y_c), text(p, r.x), r.input, r.hidden, r.node);
    }
    case Opcode::host: {
      const HostCall& c = p.host_calls[i.a];
      return fmt::format("host {} = ({})  # {}: {}", text(p, c.results), text(p, c.operands), c.node, c.why);
    }
    case Opcode::call: {
      const FunctionCall& c = p.calls[i.a];
      return fmt::format("call {} = f{}({})  # {}", text(p, c.results), c.function, text(p, c.operands), c.node);
    }
    case Opcode::bind:
      return fmt::format("bind {}", text(p, p.binds[i.a].value));
    case Opcode::allocate:
      return fmt::format("allocate {}", text(p, i.a));
    case Opcode::release:
      return fmt::format("release {}", text(p, i.a));
    default:
      return control_text(p, i);
  }
  return {};
}

}  // namespace

size_t count(const Program& program, Opcode op) {
  return static_cast<size_t>(std::ranges::count(program.code, op, &Instruction::op));
}

std::string disassemble(const Program& p, std::span<const Program> functions) {
  std::string out =
      fmt::format("# {} registers, {} sizes, {} kernels\n", p.registers.size(), p.slots, p.kernels.size());
  for (size_t i = 0; i < p.registers.size(); ++i) {
    const RegisterInfo& r = p.registers[i];
    out += fmt::format("r{}: {} {}[{}]{} {}\n", i, storage_names[static_cast<size_t>(r.storage)],
                       r.is_tensor ? name(r.dtype) : "any", fmt::join(r.dims, ", "), place(p, r), r.name);
  }
  for (size_t i = 0; i < p.steps.size(); ++i) {
    const SizeStep& s = p.steps[i];
    out += s.op == SizeStep::Op::constant
               ? fmt::format("{}: s{} = {}\n", i, s.to, s.value)
               : fmt::format("{}: s{} = {} s{} s{}\n", i, s.to, step_names[static_cast<size_t>(s.op)], s.a, s.b);
  }
  std::vector<bool> is_chained(p.code.size(), false);
  for (const Chain& chain : find_chains(p))
    std::fill_n(is_chained.begin() + chain.first + 1, chain.last - chain.first, true);
  for (size_t i = 0; i < p.code.size(); ++i)
    out += fmt::format("{:4}  {}{}\n", i, text(p, p.code[i]), is_chained[i] ? " (or with the one before)" : "");
  out += fmt::format("return {}\n", text(p, p.results));
  for (size_t i = 0; i < functions.size(); ++i) {
    Program function = functions[i];
    function.kernels = p.kernels;
    out += fmt::format("\n# f{} ({})\n{}", i, text(function, function.parameters), disassemble(function));
  }
  return out;
}

}  // namespace selkie::program
