// The leaf kernels of one instruction set as a table of functions. Each set's functions are compiled from the same
// source (isa/) with that set's flags; everything above them (blocking, tasks, pointers) is compiled once and calls
// them here.
#pragma once

#include <cstdint>
#include <span>

namespace selkie::kernels {

enum class Isa { generic, avx2, avx512 };

// A column of register tiles with the same number of rows, one below the other:
// c[rows, columns] (+)= sum over taps and depth of a * b, plus bias.
struct TileArguments {
  int64_t tiles;
  const float* const* rows;  // [tiles][taps][rows of a tile]: where each row of a begins for a tap
  int64_t row_step;          // pointers from one tile to the next
  int64_t a_offset;          // added to every row
  int64_t taps;
  int64_t depth;     // products per tap
  const float* b;    // [taps * depth][tile columns], columns contiguous
  int64_t b_stride;  // from one depth to the next
  float* c;
  int64_t c_stride;   // from one row to the next
  int64_t columns;    // columns of c that exist, 1 … tile columns
  const float* bias;  // one per column, or null; null if c is added to
  bool accumulate;    // add to what c holds
};
using TileFunction = void (*)(const TileArguments&);

inline constexpr int most_tile_rows = 12;

struct KernelTable {
  Isa isa;
  const char* name;
  int lanes;         // floats of a vector
  int tile_rows;     // rows of the largest tile
  int tile_columns;  // columns of a tile and of a packed panel: two vectors
  // tiles[v - 1][r - 1] makes tiles of r rows and v vectors.
  TileFunction tiles[2][most_tile_rows];
  // to[column * to_stride + row] = from[row * from_stride + column].
  void (*transpose)(const float* from, int64_t from_stride, int64_t rows, int64_t columns, float* to,
                    int64_t to_stride);
};

// The sets that this build knows and this processor runs, best last; never empty.
std::span<const Isa> usable_isas();
Isa best_isa();
const KernelTable& table(Isa isa);

// Bytes of the data caches, from the system where it tells, else common sizes.
struct CacheSizes {
  int64_t l1;
  int64_t l2;
};
const CacheSizes& cache_sizes();

}  // namespace selkie::kernels
