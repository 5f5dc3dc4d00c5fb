// The leaf kernels of integer products for one instruction set. They have a table of their own, since what multiplies
// bytes (VNNI) comes with other processors than what multiplies floats.
#pragma once

#include <cstdint>
#include <span>

namespace selkie::kernels {

enum class IntegerIsa { generic, avx2, vnni };

// A register tile of i32 sums. A step is as many products as one lane of a vector takes at once. The factor of rows is
// read in the form that `center` gives it, 4 bytes for each step.
struct IntegerTileArguments {
  const uint8_t* const* rows;  // [taps][rows of the tile]
  int64_t taps;
  int64_t steps;                // of each tap
  const int8_t* b;              // [taps * steps][tile columns][products of a step]
  int32_t* c;                   // = sums − row_zeros · column_sums − row_sums · column_zeros, modulo 2³²
  int64_t c_stride;             // from one row to the next
  int64_t columns;              // that exist, 1 … tile columns
  const int32_t* row_zeros;     // one per row, or null with the column sums
  const int32_t* column_sums;   // one per column of the tile
  const int32_t* row_sums;      // one per row, or null with the column zeros
  const int32_t* column_zeros;  // one per column of the tile
};
using IntegerTileFunction = void (*)(const IntegerTileArguments&);

// One output pixel of a depthwise convolution, channel by channel. Rows hold 16 bits that `center_words` gives.
struct IntegerDepthwiseArguments {
  const uint8_t* const* rows;  // one per tap
  int64_t taps;
  const uint32_t* weights;  // [taps][channels up to a whole tile], 16 bits each
  int64_t channels;
  int32_t* c;
};

inline constexpr int most_integer_rows = 12;

struct IntegerTable {
  IntegerIsa isa;
  const char* name;
  int tile_rows;     // of the largest tile
  int tile_columns;  // of a tile and of a packed panel: two vectors
  int step;          // products of a lane: 2 of 16 bits, or 4 of 8 bits
  bool centered;     // `center` subtracts zero points; else the tile does, by way of row_zeros
  IntegerTileFunction tiles[most_integer_rows];
  // Brings bytes of rows into the form that tiles read, zeros up to a whole step: to has 4 bytes for each step.
  void (*center)(const uint8_t* from, bool is_signed, int32_t zero, int64_t count, uint8_t* to);
  void (*center_words)(const uint8_t* from, bool is_signed, int32_t zero, int64_t count, uint8_t* to);
  void (*depthwise)(const IntegerDepthwiseArguments&);
  // The sum of elements in the form of tiles.
  int32_t (*sum)(const uint8_t* row, int64_t count);

  int64_t steps(int64_t products) const { return (products + step - 1) / step; }
};

// The sets that this build knows and this processor runs, best last; never empty.
std::span<const IntegerIsa> usable_integer_isas();
const IntegerTable& integer_table(IntegerIsa isa);
const IntegerTable& best_integer_table();

}  // namespace selkie::kernels
