#include "runtime/reach.h"

#include <initializer_list>

#include "program/uses.h"
#include "runtime/profile.h"

namespace selkie::runtime {
namespace {

using program::no_register;
using program::Opcode;
using program::Register;
using program::Slot;

struct Axis {
  int64_t extent, stride;
};

class Reacher {
 public:
  Reacher(const program::Program& program, std::span<const int64_t> slots) : program_(program), slots_(slots) {}

  std::vector<Reach> of(const program::Instruction& i) {
    switch (i.op) {
      case Opcode::product:
        product(program_.products[i.a]);
        break;
      case Opcode::convolution:
        convolution(program_.convolutions[i.a]);
        break;
      case Opcode::integer:
        integer(program_.integer_products[i.a]);
        break;
      case Opcode::attention:
        attention(program_.attentions[i.a]);
        break;
      case Opcode::recurrent:
        recurrent(program_.recurrents[i.a]);
        break;
      default:
        break;
    }
    return std::move(out_);
  }

 private:
  // One more than the index of the last element; strides are not negative.
  void add(Register r, std::span<const Axis> axes) {
    if (r == no_register) return;
    int64_t last = 0;
    for (const Axis& axis : axes) {
      if (axis.extent <= 0) return out_.push_back({r, 0});
      last += (axis.extent - 1) * axis.stride;
    }
    out_.push_back({r, last + 1});
  }
  void add(Register r, std::initializer_list<Axis> axes) { add(r, std::span(axes.begin(), axes.size())); }
  // Elements that lie one after the other.
  void add(Register r, int64_t count) { add(r, {{count, 1}}); }

  void product(const program::MatrixProduct& p) {
    int64_t m = slots_[p.m], n = slots_[p.n], k = slots_[p.k];
    auto matrix = [&](const program::MatrixProduct::Factor& factor, int64_t rows, int64_t columns) {
      std::vector<Axis> axes{{rows, slots_[factor.row_stride]}, {columns, slots_[factor.column_stride]}};
      for (size_t i = 0; i < p.batch.size(); ++i) axes.push_back({slots_[p.batch[i]], slots_[factor.batch_strides[i]]});
      // A product of which there is nothing to make reads nothing.
      bool is_empty = m <= 0 || n <= 0;
      for (Slot extent : p.batch) is_empty = is_empty || slots_[extent] <= 0;
      if (is_empty) axes = {{0, 1}};
      add(factor.value, axes);
    };
    matrix(p.a, m, k);
    if (!p.packed) matrix(p.b, k, n);
    matrix(p.c, m, n);
    add(p.bias, n);
    if (p.finish.addend != no_register) add(p.finish.addend, out_[p.packed ? 1 : 2].elements);
  }

  // Channels-last images.
  template <class Call>
  void images(const Call& c) {
    auto pixels = [&](const std::array<Slot, 3>& dims) {
      return slots_[c.batch] * slots_[dims[0]] * slots_[dims[1]] * slots_[dims[2]];
    };
    int64_t written = pixels(c.output_dims) * c.output_channels;
    add(c.input, written == 0 ? 0 : pixels(c.input_dims) * c.input_channels);
    add(c.output, written);
  }

  void convolution(const program::Convolution& c) {
    images(c);
    add(c.finish.addend, out_.back().elements);
    add(c.bias, c.output_channels);
    if (!c.packs_weights) return;
    add(c.weights, c.output_channels * (c.input_channels / c.groups) * c.kernel[0] * c.kernel[1] * c.kernel[2]);
  }

  void integer(const program::IntegerProduct& p) { images(p); }

  void attention(const program::Attention& a) {
    int64_t batch = slots_[a.batch], heads = slots_[a.heads], queries = slots_[a.queries], keys = slots_[a.keys];
    auto rows = [&](const program::Attention::Heads& of, int64_t head_count, int64_t count, int64_t columns) {
      add(of.value, {{batch, slots_[of.strides[0]]},
                     {head_count, slots_[of.strides[1]]},
                     {count, slots_[of.strides[2]]},
                     {columns, 1}});
    };
    rows(a.query, heads, queries, slots_[a.depth]);
    rows(a.key, slots_[a.key_heads], keys, slots_[a.depth]);
    rows(a.value, slots_[a.key_heads], keys, slots_[a.columns]);
    rows(a.output, heads, queries, slots_[a.columns]);
    add(a.mask, {{batch, slots_[a.mask_strides[0]]},
                 {heads, slots_[a.mask_strides[1]]},
                 {queries, slots_[a.mask_strides[2]]},
                 {keys, slots_[a.mask_strides[3]]}});
  }

  void recurrent(const program::Recurrent& r) {
    int64_t steps = slots_[r.steps], batch = slots_[r.batch];
    int64_t state = r.directions * batch * r.hidden;
    add(r.x, steps * batch * r.input);
    add(r.lengths, batch);
    for (Register of : {r.initial_h, r.initial_c, r.y_h, r.y_c}) add(of, state);
    add(r.y, steps * state);
  }

  const program::Program& program_;
  std::span<const int64_t> slots_;
  std::vector<Reach> out_;
};

}  // namespace

std::vector<Reach> reaches_of(const program::Program& program, const program::Instruction& instruction,
                              std::span<const int64_t> slots) {
  return Reacher(program, slots).of(instruction);
}

void check_reaches(const program::Program& program, const program::Instruction& instruction,
                   std::span<const int64_t> slots, const std::function<int64_t(Register)>& bytes_behind) {
  for (const Reach& reach : reaches_of(program, instruction, slots)) {
    if (reach.elements == 0) continue;
    const program::RegisterInfo& info = program.registers[reach.value];
    int64_t bytes = bytes_behind(reach.value);
    CHECK(reach.elements * static_cast<int64_t>(element_size(info.dtype)) <= bytes,
          "{} reaches {} elements into '{}', which has {} bytes", program::node_of(program, instruction),
          reach.elements, info.name, bytes);
  }
}

}  // namespace selkie::runtime
