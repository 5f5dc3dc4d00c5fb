// Kernel IR: loop nests over flat buffers, with symbolic extents and scalar expressions. One kernel serves every size.
//
// A compiled kernel is a function
//     void kernel(void* const* buffers, const int64_t* sizes, const int64_t* ranges)
// over buffers in the order of `buffers`, sizes in the order of `sizes`, and, for each `range` loop from the outside
// in, the two numbers begin and end: whoever launches it decides which part of the loop it runs.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "sym/expr.h"

namespace selkie::kir {

enum class Op : uint8_t {
#define SELKIE_KIR_OP(name, operands, result) name,
#include "kir/ops.def"
};

enum class ResultRule : uint8_t { same, truth, given };

struct OpInfo {
  std::string_view name;
  size_t operands;
  ResultRule result;
};
const OpInfo& info(Op op);

// An expression of one kernel: an index into `Kernel::expressions`. Equal expressions have equal ids.
using ExprId = uint32_t;
inline constexpr ExprId no_expr = UINT32_MAX;

struct Expr {
  Op op;
  DType dtype;
  std::array<ExprId, 3> operands{no_expr, no_expr, no_expr};
  sym::Expr integer = {};  // of `integer`
  uint32_t slot = 0;       // the buffer of a load, the local of `local`
  int64_t bits = 0;        // of `constant`: the value itself (integers, booleans) or the bits of a double
};

struct Buffer {
  enum class Role : uint8_t {
    input,
    output,   // may be read, too, and may be the memory of an input that it overwrites element by element
    scratch,  // each thread that runs the kernel has its own
  };
  std::string name;
  DType dtype;
  Role role;
  sym::Expr elements;  // how many it has, over the sizes
};

// A mutable scalar. It lives from its declaration to the end of the block that declares it.
struct Local {
  std::string name;
  DType dtype;
};

struct Statement {
  enum class Kind : uint8_t {
    loop,        // `body` for variable = 0 … extent - 1
    declare,     // local, with `value` to start with
    assign,      // local = value; inside a vector loop only a local that was declared in it
    accumulate,  // local = combine(local, value), in any order: add, mul, min, max, bit_and, bit_or
    store,       // buffer[index] = value
    branch,      // `body` if `value` holds; not inside a vector loop
  };
  enum class LoopKind : uint8_t {
    range,   // iterations are independent; run from a begin to an end that are given. The outermost one or two loops
    serial,  // one after the other
    vector,  // iterations are independent but for accumulations; inside it only serial loops, of the same extent for
             // all iterations
  };

  Kind kind;
  LoopKind loop_kind = LoopKind::serial;
  sym::Expr variable = {};
  sym::Expr extent = {};
  uint32_t slot = 0;  // the local, or the buffer
  Op combine = Op::add;
  ExprId index = no_expr;
  ExprId value = no_expr;
  std::vector<Statement> body = {};
};

using Block = std::vector<Statement>;

struct Kernel {
  std::string name;
  std::vector<Buffer> buffers;
  std::vector<sym::Expr> sizes;  // symbols
  std::vector<Local> locals;
  std::vector<Expr> expressions;
  Block body;

  const Expr& operator[](ExprId id) const { return expressions[id]; }
};

// The extents of the range loops, from the outside in; empty if there are none.
std::vector<sym::Expr> range_extents(const Kernel& kernel);

// Lists the symbols that are no loop variables as the kernel's sizes, in the order of first use.
void set_sizes(Kernel& kernel);

// The same kernel with names that depend on its structure alone, so that equal kernels print the same text. Sizes keep
// their order, since they are passed by it.
void make_canonical(Kernel& kernel, sym::Context& symbols);

// A user error says what is wrong with a kernel that is not well formed.
void verify(const Kernel& kernel);

// The text form; `parse` reads it back to a kernel that prints the same.
std::string print(const Kernel& kernel);
Kernel parse(sym::Context& symbols, std::string_view text);

}  // namespace selkie::kir
