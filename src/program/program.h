// A compiled model: bytecode over a frame of integers (sizes) and values (tensors and structures of them), constants,
// and kernels. Compiler and runtime share this and nothing else.
#pragma once

#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/host_value.h"

namespace selkie::program {

using Slot = uint32_t;      // an integer of the frame
using Register = uint32_t;  // a value of the frame
inline constexpr Register no_register = UINT32_MAX;

// slot[to] = slot[a] op slot[b]; division rounds to minus infinity; less gives 1 or 0.
struct SizeStep {
  enum class Op : uint8_t { constant, add, subtract, multiply, divide, modulo, minimum, maximum, less };
  Op op;
  Slot to;
  Slot a = 0;
  Slot b = 0;
  int64_t value = 0;  // of a constant
};

// What a register holds. A tensor's dims are slots if its rank is known.
struct RegisterInfo {
  enum class Storage : uint8_t {
    constant,  // of the program
    input,     // the caller's
    arena,     // planned: at an offset that is computed once per call
    heap,      // a host value of its own: outputs, results of host calls, tensors whose size is known late
    view,      // the memory of another register, which outlives it
    state,     // carried from trip to trip of a loop: wherever lies what was moved there last
  };
  std::string name;
  Storage storage = Storage::heap;
  bool is_tensor = false;  // of known rank; else any host value
  DType dtype = DType::f32;
  std::vector<Slot> dims = {};
  uint32_t constant = 0;
  Register viewed = no_register;
  std::optional<Slot> offset = {};  // view: how many bytes after the beginning, if any
  bool alternates = false;          // arena: has two places, so that the last value is there while the next is made
  bool is_conditional = false;      // made in code that may not run: its size means something only there
  Slot bytes = 0;                   // arena: how many,
  uint32_t first = 0;               // and the instructions between which it is in use
  uint32_t last = 0;
};

// a == b or a <= b; `text` is what the user reads, with {a} and {b} for the numbers.
struct Check {
  bool equal;
  Slot a;
  Slot b;
  std::string text;
};

// Every element of an integer tensor lies in -extent … extent - 1.
struct IndexCheck {
  Register indices;
  Slot extent;
  std::string node;
};

struct Launch {
  uint32_t kernel;
  std::vector<Register> buffers;
  std::vector<Slot> sizes;
  std::optional<Slot> range;  // how many steps of the outermost loop there are to share
  std::string node;           // what profiles and errors call it
};

// What a library kernel does to an element of f32 as it stores it: clamp(element + addend) to low … high.
struct Finish {
  Register addend = no_register;  // laid out as the output
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();

  bool operator==(const Finish&) const = default;
};

// c[batch…] = a[batch…] · b[batch…] by a library kernel, in f32. Strides are in elements.
struct MatrixProduct {
  struct Factor {
    Register value;
    Slot row_stride, column_stride;
    std::vector<Slot> batch_strides;  // a slot that holds 0 where one is broadcast
  };
  Factor a, b, c;
  Slot m, n, k;
  std::vector<Slot> batch;                // extents
  bool packed = false;                    // b is a constant in the library's own layout, of f32 or smaller floats
  bool exact = false;                     // not by an algorithm whose error is larger: Strassen's
  Register bias = no_register;            // of n elements
  Finish finish = {};                     // of f32, if there is no batch
  std::optional<uint32_t> epilogue = {};  // a launch over rows and columns of c as they are finished
  std::string node;
};

// A convolution by a library kernel, in f32, of channels-last tensors. Spatial axes are depth,
// height and width; where there are fewer, the leading ones have size 1.
struct Convolution {
  Register input, output;
  Register weights = no_register;   // packed for the direct kernel, the depthwise one or that of groups
  bool packs_weights = false;       // in every call: `weights` are as the model has them, which only the run knows
  Register winograd = no_register;  // transformed ones, if that kernel is an alternative, or the only one
  bool wide_winograd = false;       // for tiles of 6x6 outputs, not 4x4
  Register bias = no_register;
  Finish finish = {};  // a depthwise one adds nothing
  bool depthwise = false;
  bool grouped = false;  // by the kernel of groups
  bool exact = false;    // not by an algorithm whose error is larger: Winograd's or Strassen's
  int64_t input_channels, output_channels, groups;
  std::array<int64_t, 3> kernel, stride, dilation;
  Slot batch;
  std::array<Slot, 3> input_dims, output_dims, pads;
  std::optional<uint32_t> epilogue = {};
  std::string node;
};

// A product or a convolution by a library kernel of bytes less their zero points, in i32 modulo 2³². A product is a
// convolution of one tap over the rows, which are the last spatial axis.
struct IntegerProduct {
  Register input, output;
  Register weights;             // a constant in the library's own layout, with their zero points
  Register zero = no_register;  // zero points of the input: one element, or one per row of a product
  int64_t input_channels, output_channels, groups;
  std::array<int64_t, 3> kernel, stride, dilation;
  Slot batch;
  std::array<Slot, 3> input_dims, output_dims, pads;
  std::optional<uint32_t> epilogue = {};
  std::string node;
};

// Attention by a library kernel, in f32. Strides are in elements: batch, head, row.
struct Attention {
  struct Heads {
    Register value;
    std::array<Slot, 3> strides;
  };
  Heads query, key, value, output;
  Slot batch, heads, key_heads, queries, keys, depth, columns;
  Register mask = no_register;       // f32 that is added, or booleans of what counts
  std::array<Slot, 4> mask_strides;  // batch, head, row, key
  float scale;
  bool causal;
  float masked_score;
  std::string node;
};

// A recurrent layer by a library kernel, in f32.
struct Recurrent {
  enum class Cell : uint8_t { rnn, gru, lstm };
  Cell cell;
  int64_t directions, input, hidden;
  bool reversed, linear_before_reset, batch_first;
  std::vector<std::string> activations;  // in small letters; empty: the usual ones
  Slot steps, batch;
  Register x, weights;
  bool peepholes = false;
  Register lengths = no_register;
  Register initial_h = no_register, initial_c = no_register;
  Register y = no_register, y_h = no_register, y_c = no_register;
  std::string node;
};

// An operator that has no kernel, called through the embedder's table.
struct HostCall {
  std::vector<Register> operands;  // no_register where one is left out; then what its regions use from outside
  std::vector<Register> results;
  std::vector<std::pair<std::string, Slot>> symbols;  // sizes that it is given by name
  std::string node;
  std::string why;  // there is no kernel
};

// A function that is compiled as a program of its own: it calls itself.
struct FunctionCall {
  uint32_t function;
  std::vector<Register> operands;  // no_register where one is left out
  std::vector<Register> results;
  std::string node;
};

// The dims and elements of a value that only running told.
struct Bind {
  Register value;
  std::vector<std::pair<uint32_t, Slot>> dims;      // axis, slot
  std::vector<std::pair<uint32_t, Slot>> elements;  // element, slot: its positive part
  std::vector<std::pair<uint32_t, Slot>> negative;  // its negative part
};

// A slice of one tensor copied to or from another, row by row. Numbers are bytes.
struct SliceCopy {
  Register from, to;
  Slot rows, row_bytes;
  Slot from_offset, from_stride;
  Slot to_offset, to_stride;
};

// Slices of a tensor that are replaced: along the last axis of the indices are tuples, each of which addresses one.
struct Replacement {
  Register to, indices, slices;
  std::string node;
};

// What the trips of a loop give one after the other: slices that are stacked along a first axis, or items of a
// sequence.
struct Growth {
  Register from, to;
  bool stacks = true;
  bool reversed = false;         // the last slice comes first
  std::vector<Slot> empty = {};  // dims of no slices
  std::string node;
};

// Item `index` of a sequence, from its end if negative.
struct Item {
  Register sequence, to;
  Slot index;
  std::string node;
};

// A sequence with one item more, before that at `index`; without one, at the end.
struct Insertion {
  Register sequence, item, to;
  std::optional<Slot> index = {};
  bool takes = false;  // the sequence is not used any more, so that it need not be copied
  std::string node;
};

enum class Opcode : uint8_t {
  sizes,          // size steps a … b − 1
  check,          // check a
  check_indices,  // index check a
  launch,         // launch a
  product,        // matrix product a
  convolution,    // convolution a
  integer,        // integer product a
  attention,      // attention a
  recurrent,      // recurrent layer a
  host,           // host call a
  call,           // function call a
  bind,           // bind a
  allocate,       // heap memory for register a, as its dims say
  release,        // register a is not used any more
  jump,           // to instruction a
  branch,         // to instruction a if slot b is 0
  fail,           // with the text of check a
  trip,           // a trip of a loop begins, whose number is in slot a: fails beyond the limits of the run
  take,           // register a becomes register b, which is not used any more
  move,           // register a becomes register b: a state points there, the heap shares it, other memory gets a copy
  alternate,      // register a takes the other of its two places
  scalar,         // register a, of one i64, holds slot b
  copy_slice,     // slice copy a
  replace,        // replacement a
  item,           // item a
  insert,         // insertion a
  length,         // slot a is how many items the sequence in register b has
  grow,           // growth a begins,
  append,         // gets one more,
  collect,        // and is complete
};

struct Instruction {
  Opcode op;
  uint32_t a = 0;
  uint32_t b = 0;
};

struct Input {
  std::string name;
  bool is_tensor = false;
  DType dtype = DType::f32;
  std::optional<uint32_t> rank;
};

// That of a function has the constants and the kernels of the one that is run.
struct Program {
  std::vector<Input> inputs;
  std::vector<std::string> outputs;
  std::vector<RegisterInfo> registers;
  uint32_t slots = 0;
  std::vector<SizeStep> steps;
  std::vector<Check> checks;
  std::vector<IndexCheck> index_checks;
  std::vector<Launch> launches;  // those of epilogues, too
  std::vector<MatrixProduct> products;
  std::vector<Convolution> convolutions;
  std::vector<IntegerProduct> integer_products;
  std::vector<Attention> attentions;
  std::vector<Recurrent> recurrents;
  std::vector<HostCall> host_calls;
  std::vector<FunctionCall> calls;
  std::vector<Bind> binds;
  std::vector<SliceCopy> slice_copies;
  std::vector<Replacement> replacements;
  std::vector<Growth> growths;
  std::vector<Item> items;
  std::vector<Insertion> insertions;
  std::vector<Instruction> code;
  std::vector<Register> parameters;
  std::vector<Register> results;
  std::vector<Tensor> constants;
  std::vector<std::string> kernels;  // names
  uint32_t entry_slots = 0;          // the first ones: what the plan of the arena depends on
};

// Whether the next instruction to run may be another than the next one, and whether it may be that one.
inline bool jumps(const Instruction& i) { return i.op == Opcode::jump || i.op == Opcode::branch; }
inline bool falls_through(const Instruction& i) { return i.op != Opcode::jump && i.op != Opcode::fail; }

// How many instructions of a kind there are.
size_t count(const Program& program, Opcode op);

// Text for people: of a program, and of the functions that it calls.
std::string disassemble(const Program& program, std::span<const Program> functions = {});

}  // namespace selkie::program
