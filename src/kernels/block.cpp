// The loop nest around the register tiles.
#include "kernels/block.h"

namespace selkie::kernels {
namespace {

// Depth is taken in parts, so that a block's part of a stays in the second-level cache beside the panel that is
// multiplied and the one that is fetched meanwhile. Every part costs one more pass over c. One tile reads panels once:
// there only a's rows count.
int64_t most_depth(const KernelTable& table, int64_t rows) {
  int64_t panels = rows <= table.tile_rows ? 0 : 2 * table.tile_columns;
  return std::max<int64_t>(64, cache_sizes().l2 * 3 / 4 / (4 * (std::max<int64_t>(1, rows) + panels)));
}

int64_t most_rows(const KernelTable& table) { return 16 * table.tile_rows; }

// A part of the products: some taps in full, or a piece of one tap.
struct DepthPart {
  int64_t tap_begin;
  int64_t taps;
  int64_t begin;
  int64_t depth;
};

class DepthParts {
 public:
  DepthParts(int64_t most, int64_t taps, int64_t depth) : taps_(taps), depth_(depth) {
    int64_t pieces = std::max<int64_t>(1, ceil_divide(depth, most));
    piece_ = ceil_divide(depth, pieces);
    int64_t groups = pieces > 1 ? taps : std::max<int64_t>(1, ceil_divide(taps * depth, most));
    group_ = std::max<int64_t>(1, ceil_divide(taps, std::max<int64_t>(1, groups)));
    pieces_ = piece_ > 0 ? ceil_divide(depth, piece_) : 1;
  }
  int64_t count() const { return ceil_divide(std::max<int64_t>(1, taps_), group_) * pieces_; }
  DepthPart at(int64_t index) const {
    int64_t tap = index / pieces_ * group_;
    int64_t begin = index % pieces_ * piece_;
    return {.tap_begin = tap,
            .taps = std::min(group_, taps_ - tap),
            .begin = begin,
            .depth = std::min(piece_, depth_ - begin)};
  }

 private:
  int64_t taps_;
  int64_t depth_;
  int64_t piece_;
  int64_t pieces_;
  int64_t group_;
};

// Columns after which the epilogue is called: wide enough for its loops, small enough that the block is still in cache.
int64_t epilogue_columns(const KernelTable& table, const Block& block) {
  int64_t fitting = cache_sizes().l2 / 8 / (4 * std::max<int64_t>(1, block.rows));
  return round_up(std::max<int64_t>(fitting, 64), table.tile_columns);
}

void multiply_panel(const KernelTable& table, const Block& block, const RowTiles& tiles, const DepthPart& part,
                    bool first, int64_t column, const float* panel, const float* next) {
  bool packed = block.b.depth_stride == table.tile_columns;
  int64_t columns = std::min<int64_t>(table.tile_columns, block.column_end - column);
  bool partial = block.b.partial && columns < table.tile_columns;
  int64_t depth_stride = partial ? table.tile_columns : block.b.depth_stride;
  if (partial) panel = block.b.partial;
  TileArguments arguments{.tiles = 0,
                          .rows = block.pointers,
                          .row_step = 0,
                          .a_offset = part.begin,
                          .taps = part.taps,
                          .depth = part.depth,
                          .b = panel + (part.tap_begin * block.depth + part.begin) * depth_stride,
                          .b_stride = depth_stride,
                          .c = block.c + column,
                          .c_stride = block.c_stride,
                          .columns = columns,
                          .bias = first && block.bias ? block.bias + column : nullptr,
                          .accumulate = !first || block.accumulate,
                          .ahead = reinterpret_cast<const char*>(next),
                          .ahead_step = packed ? ceil_divide(4 * table.tile_columns, tiles.count) : 0};
  const TileFunction* functions = table.tiles[columns > table.lanes ? 1 : 0];
  // One tile reads the panel once, from where it is: what is fetched is a little ahead of it.
  constexpr int64_t near = 1536;
  if (tiles.count == 1) arguments.ahead = reinterpret_cast<const char*>(arguments.b) + near;
  const float* const* pointers = block.pointers;
  auto run = [&](int64_t count, int64_t rows) {
    arguments.tiles = count;
    arguments.rows = pointers + part.tap_begin * rows;
    arguments.row_step = rows * block.taps;
    if (count) functions[rows - 1](arguments);
    arguments.c += count * rows * block.c_stride;
    arguments.ahead += count * arguments.ahead_step * part.taps * part.depth;
    pointers += count * rows * block.taps;
  };
  run(tiles.extra, tiles.rows + 1);
  run(tiles.count - tiles.extra, tiles.rows);
}

// Multiplies the panels at once if the row kernel does that, and gives the column after them.
int64_t multiply_row(const KernelTable& table, const Block& block, const float* panels, int64_t begin, int64_t end) {
  if (!takes_row_kernel(table, {.rows = block.rows,
                                .taps = block.taps,
                                .depth = block.depth,
                                .depth_stride = block.b.depth_stride,
                                .accumulate = block.accumulate,
                                .partial_panel = block.b.partial != nullptr}))
    return begin;
  table.multiply_row({.row = block.pointers[0],
                      .depth = block.depth,
                      .panels = panels,
                      .panel_stride = block.b.panel_stride,
                      .columns = end - begin,
                      .c = block.c + begin,
                      .bias = block.bias ? block.bias + begin : nullptr});
  return end;
}

}  // namespace

bool takes_row_kernel(const KernelTable& table, const RowKernelQuestion& asked) {
  bool packed = asked.depth_stride == table.tile_columns;
  return asked.rows == 1 && asked.taps == 1 && packed && !asked.accumulate && asked.depth <= most_depth(table, 1) &&
         !asked.partial_panel;
}

void multiply_block(const KernelTable& table, const Block& block) {
  DepthParts parts(most_depth(table, block.rows), block.taps, block.depth);
  int64_t group = block.epilogue.function ? epilogue_columns(table, block) : block.column_end;
  int64_t count = parts.count();
  RowTiles tiles(table, block.rows);
  const float* first_panel =
      block.b.base + (block.column_begin - block.b.first_column) / table.tile_columns * block.b.panel_stride;
  auto begin_of = [&](const DepthPart& part) {
    return (part.tap_begin * block.depth + part.begin) * block.b.depth_stride;
  };
  for (int64_t index = 0; index < count; ++index) {
    DepthPart part = parts.at(index);
    // After the last part another block may come that begins where this one did.
    const float* next_part = first_panel + begin_of(parts.at((index + 1) % count));
    const float* panel = first_panel;
    for (int64_t begin = block.column_begin; begin < block.column_end; begin += group) {
      int64_t end = std::min(block.column_end, begin + group);
      int64_t column = multiply_row(table, block, panel, begin, end);
      panel += (column - begin) / table.tile_columns * block.b.panel_stride;
      for (; column < end; column += table.tile_columns, panel += block.b.panel_stride) {
        bool last = column + table.tile_columns >= block.column_end;
        const float* next = last ? next_part : panel + block.b.panel_stride + begin_of(part);
        multiply_panel(table, block, tiles, part, index == 0, column, panel, next);
      }
      if (index + 1 < count || !block.epilogue.function) continue;
      int64_t ranges[] = {block.row_begin, block.row_begin + block.rows, block.first_column + begin,
                          block.first_column + end};
      block.epilogue.function(block.epilogue.buffers, block.epilogue.sizes, ranges);
    }
  }
}

int64_t rows_of_block(const KernelTable& table, int64_t rows, int64_t products) {
  int64_t depth = std::clamp<int64_t>(products, 1, most_depth(table, most_rows(table)));
  int64_t fitting = cache_sizes().l2 * 3 / 4 / (4 * depth) - 2 * table.tile_columns;
  int64_t most = std::clamp<int64_t>(fitting, 4 * table.tile_rows, most_rows(table));
  int64_t blocks = std::max<int64_t>(1, ceil_divide(rows, most));
  return std::max<int64_t>(1, round_up(ceil_divide(rows, blocks), table.tile_rows));
}

}  // namespace selkie::kernels
