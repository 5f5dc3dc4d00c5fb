// What of a program is written to files, member by member (archive.h). A member that is not named here does not
// compile.
#pragma once

#include "program/archive.h"
#include "program/image.h"
#include "program/program.h"

namespace selkie::program {

template <>
inline constexpr int enumerators<SizeStep::Op> = static_cast<int>(SizeStep::Op::less) + 1;
template <>
inline constexpr int enumerators<RegisterInfo::Storage> = static_cast<int>(RegisterInfo::Storage::state) + 1;
template <>
inline constexpr int enumerators<Recurrent::Cell> = static_cast<int>(Recurrent::Cell::lstm) + 1;
template <>
inline constexpr int enumerators<Opcode> = static_cast<int>(Opcode::collect) + 1;

void fields(auto& archive, Is<SizeStep> auto& step) {
  auto& [op, to, a, b, value] = step;
  archive(op, to, a, b, value);
}

void fields(auto& archive, Is<RegisterInfo> auto& info) {
  auto& [name, storage, is_tensor, dtype, dims, constant, viewed, offset, alternates, is_conditional, bytes, first,
         last] = info;
  archive(name, storage, is_tensor, dtype, dims, constant, viewed, offset, alternates, is_conditional, bytes, first,
          last);
}

void fields(auto& archive, Is<Check> auto& check) {
  auto& [equal, a, b, text] = check;
  archive(equal, a, b, text);
}

void fields(auto& archive, Is<IndexCheck> auto& check) {
  auto& [indices, extent, node] = check;
  archive(indices, extent, node);
}

void fields(auto& archive, Is<Launch> auto& launch) {
  auto& [kernel, buffers, sizes, range, node] = launch;
  archive(kernel, buffers, sizes, range, node);
}

void fields(auto& archive, Is<MatrixProduct::Factor> auto& factor) {
  auto& [value, row_stride, column_stride, batch_strides] = factor;
  archive(value, row_stride, column_stride, batch_strides);
}

void fields(auto& archive, Is<Finish> auto& finish) {
  auto& [addend, low, high] = finish;
  archive(addend, low, high);
}

void fields(auto& archive, Is<MatrixProduct> auto& product) {
  auto& [a, b, c, m, n, k, batch, packed, exact, bias, finish, epilogue, node] = product;
  archive(a, b, c, m, n, k, batch, packed, exact, bias, finish, epilogue, node);
}

void fields(auto& archive, Is<Convolution> auto& convolution) {
  auto& [input, output, weights, packs_weights, winograd, wide_winograd, bias, finish, depthwise, grouped, exact,
         input_channels, output_channels, groups, kernel, stride, dilation, batch, input_dims, output_dims, pads,
         epilogue, node] = convolution;
  archive(input, output, weights, packs_weights, winograd, wide_winograd, bias, finish, depthwise, grouped, exact,
          input_channels, output_channels, groups, kernel, stride, dilation, batch, input_dims, output_dims, pads,
          epilogue, node);
}

void fields(auto& archive, Is<IntegerProduct> auto& product) {
  auto& [input, output, weights, zero, input_channels, output_channels, groups, kernel, stride, dilation, batch,
         input_dims, output_dims, pads, epilogue, node] = product;
  archive(input, output, weights, zero, input_channels, output_channels, groups, kernel, stride, dilation, batch,
          input_dims, output_dims, pads, epilogue, node);
}

void fields(auto& archive, Is<Attention::Heads> auto& heads) {
  auto& [value, strides] = heads;
  archive(value, strides);
}

void fields(auto& archive, Is<Attention> auto& attention) {
  auto& [query, key, value, output, batch, heads, key_heads, queries, keys, depth, columns, mask, mask_strides, scale,
         causal, masked_score, node] = attention;
  archive(query, key, value, output, batch, heads, key_heads, queries, keys, depth, columns, mask, mask_strides, scale,
          causal, masked_score, node);
}

void fields(auto& archive, Is<Recurrent> auto& recurrent) {
  auto& [cell, directions, input, hidden, reversed, linear_before_reset, batch_first, activations, steps, batch, x,
         weights, peepholes, lengths, initial_h, initial_c, y, y_h, y_c, node] = recurrent;
  archive(cell, directions, input, hidden, reversed, linear_before_reset, batch_first, activations, steps, batch, x,
          weights, peepholes, lengths, initial_h, initial_c, y, y_h, y_c, node);
}

void fields(auto& archive, Is<HostCall> auto& call) {
  auto& [operands, results, symbols, node, why] = call;
  archive(operands, results, symbols, node, why);
}

void fields(auto& archive, Is<FunctionCall> auto& call) {
  auto& [function, operands, results, node] = call;
  archive(function, operands, results, node);
}

void fields(auto& archive, Is<Bind> auto& bind) {
  auto& [value, dims, elements, negative] = bind;
  archive(value, dims, elements, negative);
}

void fields(auto& archive, Is<SliceCopy> auto& copy) {
  auto& [from, to, rows, row_bytes, from_offset, from_stride, to_offset, to_stride] = copy;
  archive(from, to, rows, row_bytes, from_offset, from_stride, to_offset, to_stride);
}

void fields(auto& archive, Is<Replacement> auto& replacement) {
  auto& [to, indices, slices, node] = replacement;
  archive(to, indices, slices, node);
}

void fields(auto& archive, Is<Growth> auto& growth) {
  auto& [from, to, stacks, reversed, empty, node] = growth;
  archive(from, to, stacks, reversed, empty, node);
}

void fields(auto& archive, Is<Item> auto& item) {
  auto& [sequence, to, index, node] = item;
  archive(sequence, to, index, node);
}

void fields(auto& archive, Is<Insertion> auto& insertion) {
  auto& [sequence, item, to, index, takes, node] = insertion;
  archive(sequence, item, to, index, takes, node);
}

void fields(auto& archive, Is<Instruction> auto& instruction) {
  auto& [op, a, b] = instruction;
  archive(op, a, b);
}

void fields(auto& archive, Is<Input> auto& input) {
  auto& [name, is_tensor, dtype, rank] = input;
  archive(name, is_tensor, dtype, rank);
}

void fields(auto& archive, Is<Image> auto& image) {
  auto& [isa, code, entries] = image;
  archive(isa, code, entries);
}

// All but the constants: their elements lie beside the rest.
void fields(auto& archive, Is<Program> auto& program) {
  auto& [inputs, outputs, registers, slots, steps, checks, index_checks, launches, products, convolutions,
         integer_products, attentions, recurrents, host_calls, calls, binds, slice_copies, replacements, growths, items,
         insertions, code, parameters, results, constants, kernels, entry_slots] = program;
  static_cast<void>(constants);
  archive(inputs, outputs, registers, slots, steps, checks, index_checks, launches, products, convolutions,
          integer_products, attentions, recurrents, host_calls, calls, binds, slice_copies, replacements, growths,
          items, insertions, code, parameters, results, kernels, entry_slots);
}

}  // namespace selkie::program
