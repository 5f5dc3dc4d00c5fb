// A block of rows times panels of columns: the loop nest around the register tiles that GEMM, convolution and Winograd
// share. Rows are given by pointers, so that a convolution's row is gathered from its taps without a copy.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/epilogue.h"
#include "kernels/table.h"

namespace selkie::kernels {

inline int64_t ceil_divide(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t round_up(int64_t a, int64_t b) { return ceil_divide(a, b) * b; }

// b as panels of tile_columns columns: element (depth, column) of a panel lies at depth * depth_stride + column.
struct Panels {
  const float* base = nullptr;
  int64_t panel_stride = 0;
  int64_t depth_stride = 0;
  int64_t first_column = 0;        // column of the first panel
  const float* partial = nullptr;  // the last panel if it is not full and lies elsewhere, packed
  const float* after = nullptr;    // what is read next after all panels, if it is not the first one again
};

struct Block {
  int64_t rows = 0;
  const float* const* pointers = nullptr;  // as fill_pointers lays them out
  const float* a = nullptr;  // or the first row, if all are the same distance apart; then there is one tap
  int64_t a_stride = 0;
  bool fetches_rows = false;  // they come from beyond the second-level cache, so that they are worth fetching ahead
  float* copies = nullptr;    // room for copied_floats, if copies_rows says that rows are copied first
  int64_t taps = 1;
  int64_t depth = 0;  // products per tap
  Panels b;
  float* c = nullptr;  // row 0 of the block, column 0 of the matrix
  int64_t c_stride = 0;
  int64_t column_begin = 0;  // a multiple of tile_columns
  int64_t column_end = 0;
  const float* bias = nullptr;  // of column 0; null if c is added to
  bool accumulate = false;      // add to what c holds
  bool many_panels = false;     // the whole product has, of which the block's may be some
  int64_t row_begin = 0;        // row of the matrix that is the block's row 0, for the epilogue
  int64_t first_column = 0;     // and that is the block's column 0
  Finish finish;                // its addend as c
  Epilogue epilogue;
};
// Rows are split evenly over tiles, since 4 + 3 rows keep more of the pipeline busy than 6 + 1.
struct RowTiles {
  int64_t count;
  int64_t rows;   // of every tile,
  int64_t extra;  // and one more for the first `extra` tiles

  RowTiles(const KernelTable& table, int64_t total)
      : count(ceil_divide(total, table.tile_rows)), rows(count ? total / count : 0), extra(count ? total % count : 0) {}
  int64_t rows_of(int64_t tile) const { return rows + (tile < extra ? 1 : 0); }
};

// A part of the products: some taps in full, or a piece of one tap.
struct DepthPart {
  int64_t tap_begin;
  int64_t taps;
  int64_t begin;
  int64_t depth;
};

class DepthParts {
 public:
  // Of at most `most` products, unless a tap is a part.
  DepthParts(int64_t most, int64_t taps, int64_t depth);
  int64_t count() const { return count_; }
  DepthPart at(int64_t index) const;

 private:
  int64_t taps_;
  int64_t depth_;
  int64_t piece_;       // of a tap
  int64_t group_;       // taps of a part
  int64_t pieces_ = 1;  // of a tap
  int64_t count_ = 1;
};

// How blocks of so many rows, taps and products are cut. Found once for blocks that are alike: for small ones it takes
// as long as their products.
struct BlockCut {
  RowTiles tiles;
  DepthParts parts;
  int64_t ahead_step;  // bytes of the next panel that a tile fetches with each product of an element

  BlockCut(const KernelTable& table, int64_t rows, int64_t taps, int64_t depth);
};

void multiply_block(const KernelTable& table, const Block& block);
void multiply_block(const KernelTable& table, const BlockCut& cut, const Block& block);

// Whether so many floats are more than the second-level cache holds.
bool is_beyond_cache(int64_t floats);

// Whether the rows of a block are copied to lie side by side: those that lie anywhere, or so far apart that the rows of
// a tile share too few sets of the cache. A copy pays once it is multiplied by some columns.
struct CopyQuestion {
  int64_t rows;
  int64_t columns;
  int64_t stride;  // from row to row, or 0 if they lie anywhere
};
bool copies_rows(const KernelTable& table, const CopyQuestion& asked);
int64_t copied_floats(const KernelTable& table, int64_t rows, int64_t products);

// Whether panels of a block are read side by side: few rows the same distance apart, many packed panels of the whole
// product, lest columns that are cut elsewhere are summed in another order, and all products in one part. One row takes
// any number of panels.
struct RowKernelQuestion {
  int64_t rows;
  bool many_panels;
  int64_t taps;
  int64_t depth;
  int64_t depth_stride;
  bool accumulate;
  bool partial_panel;  // lies elsewhere
};
bool takes_row_kernel(const KernelTable& table, const RowKernelQuestion& asked);
inline bool are_many_panels(const KernelTable& table, int64_t columns) { return columns >= 4 * table.tile_columns; }

// Rows of one block: enough that fetching a panel costs little beside multiplying by it, few enough that their part of
// a stays in the second-level cache where it can.
int64_t rows_of_block(const KernelTable& table, int64_t rows, int64_t products);

// Lays out row(r, tap) for every row and tap as multiply_block reads them: tile by tile, [tap][row of the tile].
template <class Row>
void fill_pointers(const KernelTable& table, int64_t rows, int64_t taps, Row row, const float** pointers) {
  RowTiles tiles(table, rows);
  for (int64_t tile = 0, begin = 0; tile < tiles.count; begin += tiles.rows_of(tile), ++tile)
    for (int64_t tap = 0; tap < taps; ++tap)
      for (int64_t r = 0; r < tiles.rows_of(tile); ++r) *pointers++ = row(begin + r, tap);
}

// Hands out parts of a caller's scratch memory, each aligned to a cache line; with a null base it only counts.
class Scratch {
 public:
  explicit Scratch(void* base) : base_(static_cast<std::byte*>(base)) {}

  template <class T>
  T* take(int64_t count) {
    std::byte* at = base_ ? base_ + used_ : nullptr;
    used_ += static_cast<size_t>(round_up(count * static_cast<int64_t>(sizeof(T)), 64));
    return reinterpret_cast<T*>(at);
  }
  size_t used() const { return used_; }

 private:
  std::byte* base_;
  size_t used_ = 0;
};

}  // namespace selkie::kernels
