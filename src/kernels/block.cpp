// The loop nest around the register tiles.
#include "kernels/block.h"

#include <cstring>
#include <numeric>

#include "kernels/processor.h"

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

// Columns after which the epilogue is called: wide enough for its loops, small enough that the block is still in cache.
int64_t epilogue_columns(const KernelTable& table, const Block& block) {
  int64_t fitting = cache_sizes().l2 / 8 / (4 * std::max<int64_t>(1, block.rows));
  return round_up(std::max<int64_t>(fitting, 64), table.tile_columns);
}

// A part of a where the tiles read it: rows the same distance apart, or pointers to them.
struct Rows {
  const float* first;  // null: pointers
  int64_t stride;
  DepthPart part;
};

// Floats from one copied row to the next: not a power of two, lest rows share sets of the cache.
int64_t copied_stride(int64_t products) {
  constexpr int64_t line = 16;
  int64_t lines = round_up(products, line);
  return lines % (16 * line) == 0 ? lines + line : lines;
}

Rows copy_rows(const Block& block, const RowTiles& tiles, const DepthPart& part) {
  int64_t products = part.taps * part.depth;
  int64_t stride = copied_stride(products);
  size_t bytes = static_cast<size_t>(part.depth) * sizeof(float);
  float* to = block.copies;
  if (block.a) {
    for (int64_t r = 0; r < block.rows; ++r, to += stride)
      std::memcpy(to, block.a + r * block.a_stride + part.begin, bytes);
  } else {
    const float* const* pointers = block.pointers;
    for (int64_t tile = 0; tile < tiles.count; ++tile) {
      int64_t rows = tiles.rows_of(tile);
      for (int64_t tap = 0; tap < part.taps; ++tap)
        for (int64_t r = 0; r < rows; ++r)
          std::memcpy(to + r * stride + tap * part.depth, pointers[(part.tap_begin + tap) * rows + r] + part.begin,
                      bytes);
      pointers += rows * block.taps;
      to += rows * stride;
    }
  }
  return {.first = block.copies,
          .stride = stride,
          .part = {.tap_begin = part.tap_begin, .taps = 1, .begin = part.begin, .depth = products}};
}

// Where the products of a part begin in a panel.
int64_t panel_offset(const Block& block, const DepthPart& part) { return part.tap_begin * block.depth + part.begin; }

struct PanelPlace {
  int64_t column;
  const float* panel;
  const float* next;
};

// The panel that comes next. One tile reads a panel once, from where it is: there, what is a little ahead.
void fetch_panel(const BlockCut& cut, const float* next, TileArguments& arguments) {
  constexpr int64_t near = 1536;
  arguments.ahead =
      cut.tiles.count == 1 ? reinterpret_cast<const char*>(arguments.b) + near : reinterpret_cast<const char*>(next);
  arguments.ahead_step = cut.ahead_step;
}

// Rows of a that lie side by side: those of the next tile.
void fetch_rows(int64_t rows, TileArguments& arguments) {
  arguments.ahead = reinterpret_cast<const char*>(arguments.a + rows * arguments.a_stride);
  arguments.ahead_step = static_cast<int64_t>(sizeof(float)) * rows;
}

// Halves of a vector take half its time, or as long as a whole one.
const TileFunction* narrow_tiles(const KernelTable& table) {
  return wide_units() == WideUnits::zen5 ? table.paired_even_tiles : table.narrow_even_tiles;
}

void multiply_panel(const KernelTable& table, const BlockCut& cut, const Block& block, const Rows& rows_of_a,
                    bool first, bool last, const PanelPlace& place) {
  const RowTiles& tiles = cut.tiles;
  const DepthPart& part = rows_of_a.part;
  int64_t column = place.column;
  const float* panel = place.panel;
  bool packed = block.b.depth_stride == table.tile_columns;
  int64_t columns = std::min<int64_t>(table.tile_columns, block.column_end - column);
  bool partial = block.b.partial && columns < table.tile_columns;
  int64_t depth_stride = partial ? table.tile_columns : block.b.depth_stride;
  if (partial) panel = block.b.partial;
  const Finish& finish = block.finish;
  TileArguments arguments{.tiles = 0,
                          .rows = block.pointers,
                          .row_step = 0,
                          .a = rows_of_a.first,
                          .a_stride = rows_of_a.stride,
                          .a_offset = part.begin,
                          .taps = part.taps,
                          .depth = part.depth,
                          .b = panel + panel_offset(block, part) * depth_stride,
                          .b_stride = depth_stride,
                          .c = block.c + column,
                          .c_stride = block.c_stride,
                          .columns = columns,
                          .bias = first && block.bias ? block.bias + column : nullptr,
                          .addend = first && finish.addend ? finish.addend + column : nullptr,
                          .accumulate = !first || block.accumulate,
                          .clamps = last && finish.clamps(),
                          .low = finish.low,
                          .high = finish.high,
                          .ahead = nullptr,
                          .ahead_step = 0};
  size_t vectors = columns > table.lanes ? 1 : 0;
  constexpr int64_t few = 3;
  bool is_narrow = vectors == 1 && 2 * columns <= 3 * table.lanes;
  const TileFunction* functions = !rows_of_a.first    ? table.tiles[vectors]
                                  : tiles.count < few ? table.few_even_tiles[vectors]
                                  : is_narrow         ? narrow_tiles(table)
                                                      : table.even_tiles[vectors];
  if (packed) fetch_panel(cut, place.next, arguments);
  // The first panel is the first to read a: what is fetched are the rows of the next tile.
  bool fetches_rows = block.fetches_rows && tiles.count > 1 && column == block.column_begin && rows_of_a.first &&
                      !block.copies && rows_of_a.stride == part.depth;
  const float* const* pointers = block.pointers;
  auto run = [&](int64_t count, int64_t rows) {
    arguments.tiles = count;
    if (!rows_of_a.first) {
      arguments.rows = pointers + part.tap_begin * rows;
      pointers += count * rows * block.taps;
    }
    if (fetches_rows) fetch_rows(rows, arguments);
    arguments.row_step = rows * block.taps;
    if (count) functions[rows - 1](arguments);
    int64_t done = count * rows;
    arguments.c += done * block.c_stride;
    if (arguments.addend) arguments.addend += done * block.c_stride;
    if (arguments.a) arguments.a += done * arguments.a_stride;
    arguments.ahead += count * arguments.ahead_step * part.taps * part.depth;
  };
  run(tiles.extra, tiles.rows + 1);
  run(tiles.count - tiles.extra, tiles.rows);
}

void clamp_row(const Finish& finish, int64_t begin, int64_t end, float* c) {
  if (!finish.clamps()) return;
  for (int64_t j = begin; j < end; ++j) {
    float x = c[j] < finish.low ? finish.low : c[j];
    c[j] = x > finish.high ? finish.high : x;
  }
}

// Multiplies the panels at once if they are read side by side, and gives the column after them.
int64_t multiply_rows(const KernelTable& table, const Block& block, const float* panels, int64_t begin, int64_t end) {
  if (!takes_row_kernel(table, {.rows = block.rows,
                                .many_panels = block.many_panels && block.a,
                                .taps = block.taps,
                                .depth = block.depth,
                                .depth_stride = block.b.depth_stride,
                                .accumulate = block.accumulate,
                                .partial_panel = block.b.partial != nullptr}))
    return begin;
  const Finish& finish = block.finish;
  table.multiply_rows[block.rows - 1]({.row = block.a ? block.a : block.pointers[0],
                                       .row_stride = block.a_stride,
                                       .depth = block.depth,
                                       .panels = panels,
                                       .panel_stride = block.b.panel_stride,
                                       .columns = end - begin,
                                       .c = block.c + begin,
                                       .c_stride = block.c_stride,
                                       .bias = block.bias ? block.bias + begin : nullptr,
                                       .addend = finish.addend ? finish.addend + begin : nullptr});
  for (int64_t row = 0; row < block.rows; ++row) clamp_row(finish, begin, end, block.c + row * block.c_stride);
  return end;
}

}  // namespace

bool takes_row_kernel(const KernelTable& table, const RowKernelQuestion& asked) {
  bool packed = asked.depth_stride == table.tile_columns;
  bool has_kernel = asked.rows >= 1 && asked.rows <= most_beside_rows && table.multiply_rows[asked.rows - 1] != nullptr;
  return has_kernel && (asked.rows == 1 || asked.many_panels) && asked.taps == 1 && packed && !asked.accumulate &&
         asked.depth <= most_depth(table, asked.rows) && !asked.partial_panel;
}

DepthParts::DepthParts(int64_t most, int64_t taps, int64_t depth) : taps_(taps), depth_(depth) {
  if (depth <= most && taps * depth <= most) {
    piece_ = depth;
    group_ = std::max<int64_t>(1, taps);
    return;
  }
  int64_t pieces = std::max<int64_t>(1, ceil_divide(depth, most));
  piece_ = ceil_divide(depth, pieces);
  int64_t together = pieces > 1 ? 1 : most / std::max<int64_t>(1, depth);
  int64_t groups = std::max<int64_t>(1, ceil_divide(taps, together));
  group_ = std::max<int64_t>(1, ceil_divide(taps, groups));
  pieces_ = piece_ > 0 ? ceil_divide(depth, piece_) : 1;
  count_ = ceil_divide(std::max<int64_t>(1, taps_), group_) * pieces_;
}

DepthPart DepthParts::at(int64_t index) const {
  int64_t group = count_ == 1 ? 0 : index / pieces_;
  int64_t tap = group * group_;
  int64_t begin = (index - group * pieces_) * piece_;
  return {.tap_begin = tap,
          .taps = std::min(group_, taps_ - tap),
          .begin = begin,
          .depth = std::min(piece_, depth_ - begin)};
}

BlockCut::BlockCut(const KernelTable& table, int64_t rows, int64_t taps, int64_t depth)
    : tiles(table, rows),
      parts(most_depth(table, rows), taps, depth),
      ahead_step(
          ceil_divide(static_cast<int64_t>(sizeof(float)) * table.tile_columns, std::max<int64_t>(1, tiles.count))) {}

void multiply_block(const KernelTable& table, const Block& block) {
  multiply_block(table, BlockCut(table, block.rows, block.taps, block.depth), block);
}

void multiply_block(const KernelTable& table, const BlockCut& cut, const Block& block) {
  const DepthParts& parts = cut.parts;
  int64_t group = block.epilogue.function ? epilogue_columns(table, block) : block.column_end;
  int64_t count = parts.count();
  const float* first_panel =
      block.b.base + (block.column_begin - block.b.first_column) / table.tile_columns * block.b.panel_stride;
  auto begin_of = [&](const DepthPart& part) { return panel_offset(block, part) * block.b.depth_stride; };
  for (int64_t index = 0; index < count; ++index) {
    DepthPart part = parts.at(index);
    Rows rows = block.copies
                    ? copy_rows(block, cut.tiles, part)
                    : Rows{.first = block.a ? block.a + part.begin : nullptr, .stride = block.a_stride, .part = part};
    // After the last part another block may come that begins where this one did.
    const float* next_part =
        index + 1 == count && block.b.after ? block.b.after : first_panel + begin_of(parts.at((index + 1) % count));
    const float* panel = first_panel;
    for (int64_t begin = block.column_begin; begin < block.column_end; begin += group) {
      int64_t end = std::min(block.column_end, begin + group);
      int64_t column = multiply_rows(table, block, panel, begin, end);
      panel += (column - begin) / table.tile_columns * block.b.panel_stride;
      for (; column < end; column += table.tile_columns, panel += block.b.panel_stride) {
        bool last_panel = column + table.tile_columns >= block.column_end;
        const float* next = last_panel ? next_part : panel + block.b.panel_stride + begin_of(part);
        multiply_panel(table, cut, block, rows, index == 0, index + 1 == count,
                       {.column = column, .panel = panel, .next = next});
      }
      if (index + 1 < count || !block.epilogue.function) continue;
      int64_t ranges[] = {block.row_begin, block.row_begin + block.rows, block.first_column + begin,
                          block.first_column + end};
      block.epilogue.function(block.epilogue.buffers, block.epilogue.sizes, ranges);
    }
  }
}

bool is_beyond_cache(int64_t floats) { return floats * static_cast<int64_t>(sizeof(float)) > cache_sizes().l2; }

bool copies_rows(const KernelTable& table, const CopyQuestion& asked) {
  if (asked.columns < 4 * table.tile_columns) return false;
  if (asked.stride == 0) return asked.rows > table.tile_rows;
  const FirstCache& cache = first_cache();
  int64_t period = std::max<int64_t>(1, cache.way_bytes);
  int64_t places = period / std::gcd(period, asked.stride * static_cast<int64_t>(sizeof(float)));
  return ceil_divide(std::min<int64_t>(asked.rows, table.tile_rows), places) > cache.ways;
}

// A block of fewer rows is taken in deeper parts; it has more floats in one only if it is a single tile.
int64_t copied_floats(const KernelTable& table, int64_t rows, int64_t products) {
  auto floats = [&](int64_t count) { return count * copied_stride(std::min(products, most_depth(table, count)) + 32); };
  return std::max(floats(rows), floats(std::min<int64_t>(rows, table.tile_rows)));
}

int64_t rows_of_block(const KernelTable& table, int64_t rows, int64_t products) {
  int64_t depth = std::clamp<int64_t>(products, 1, most_depth(table, most_rows(table)));
  int64_t fitting = cache_sizes().l2 * 3 / 4 / (4 * depth) - 2 * table.tile_columns;
  int64_t most = std::clamp<int64_t>(fitting, 4 * table.tile_rows, most_rows(table));
  int64_t blocks = std::max<int64_t>(1, ceil_divide(rows, most));
  return std::max<int64_t>(1, round_up(ceil_divide(rows, blocks), table.tile_rows));
}

}  // namespace selkie::kernels
