// The leaf kernels of products with weights in f16 or bf16 for one instruction set: they widen what they read.
#pragma once

#include <cstdint>

#include "kernels/table.h"

namespace selkie::kernels {

enum class HalfKind { f16, bf16 };
inline constexpr int half_kinds = 2;

inline constexpr int most_half_rows = 6;

// c = rows * b + bias for whole panels of b.
struct HalfRowsArguments {
  const float* rows;
  int64_t row_stride;
  int64_t depth;
  const uint16_t* panels;  // each [depth][tile columns]
  int64_t columns;         // the last panel may have fewer than the others
  float* c;
  int64_t c_stride;
  const float* bias;  // one per column, or null
};

// Panels are those of the table of floats that this goes with.
struct HalfTable {
  const char* name;
  // By kind and rows - 1.
  void (*multiply_rows[half_kinds][most_half_rows])(const HalfRowsArguments&);
  void (*widen[half_kinds])(const uint16_t* from, int64_t count, float* to);  // whole panels
};

// The table that goes with an instruction set of floats; null where the processor converts no f16.
const HalfTable* half_table(Isa isa);

}  // namespace selkie::kernels
