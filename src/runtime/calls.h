// From instructions of a program to what library kernels of many operands are given.
#pragma once

#include <functional>
#include <span>

#include "base/tensor.h"
#include "kernels/attention.h"
#include "kernels/recurrent.h"
#include "program/program.h"
#include "runtime/library.h"

namespace selkie::runtime {

// Where a register is; null for none.
using Floats = std::function<float*(program::Register)>;

// The elements of a value that are sizes.
void bind_elements(const program::Bind& b, const Tensor& tensor, std::span<int64_t> slots);

template <class Where>
kernels::Finish finish_of(const program::Finish& f, const Where& floats) {
  return {.addend = floats(f.addend), .low = f.low, .high = f.high};
}

// All but the epilogue and a factor that is packed. `product` keeps its memory.
template <class Where>
void set_product(const program::MatrixProduct& p, std::span<const int64_t> slots, const Where& floats,
                 Product& product) {
  product.matrices = {.m = slots[p.m],
                      .n = slots[p.n],
                      .k = slots[p.k],
                      .a = floats(p.a.value),
                      .a_row_stride = slots[p.a.row_stride],
                      .a_column_stride = slots[p.a.column_stride],
                      .packed_b = nullptr,
                      .b = p.packed ? nullptr : floats(p.b.value),
                      .b_row_stride = slots[p.b.row_stride],
                      .b_column_stride = slots[p.b.column_stride],
                      .c = floats(p.c.value),
                      .c_row_stride = slots[p.c.row_stride],
                      .bias = floats(p.bias),
                      .finish = finish_of(p.finish, floats),
                      .epilogue = {},
                      .exact = p.exact};
  product.batch.clear();
  for (size_t i = 0; i < p.batch.size(); ++i)
    product.batch.push_back({.extent = slots[p.batch[i]],
                             .a_stride = slots[p.a.batch_strides[i]],
                             .b_stride = slots[p.b.batch_strides[i]],
                             .c_stride = slots[p.c.batch_strides[i]]});
}

kernels::Attention attention_call(const program::Attention& a, std::span<const int64_t> slots, bool has_boolean_mask,
                                  const Floats& floats);
// Fails if a length is beyond the steps.
kernels::Recurrent recurrent_call(const program::Recurrent& r, std::span<const int64_t> slots, const Floats& floats);

}  // namespace selkie::runtime
