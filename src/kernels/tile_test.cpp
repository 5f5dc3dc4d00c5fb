// Register tiles of which the processor decides which is taken give the same.
#include <gtest/gtest.h>

#include "kernels/test_support.h"

namespace selkie::kernels {
namespace {

using testing::Guarded;
using testing::Random;

constexpr int64_t tiles = 2;

enum class Form { plain, accumulates, adds, clamps };

void run(const KernelTable& table, const TileFunction* functions, int64_t rows, int64_t depth, Form form,
         const Guarded& a, const Guarded& b, const Guarded& addend, Guarded& c) {
  int64_t columns = c.size() / (tiles * rows);
  std::copy_n(addend.data(), c.size(), c.data());
  functions[rows - 1]({.tiles = tiles,
                       .rows = nullptr,
                       .row_step = 0,
                       .a = a.data(),
                       .a_stride = depth,
                       .a_offset = 0,
                       .taps = 1,
                       .depth = depth,
                       .b = b.data(),
                       .b_stride = table.tile_columns,
                       .c = c.data(),
                       .c_stride = columns,
                       .columns = columns,
                       .bias = form == Form::accumulates ? nullptr : addend.data(),
                       .addend = form == Form::adds ? addend.data() : nullptr,
                       .accumulate = form == Form::accumulates,
                       .clamps = form == Form::clamps,
                       .low = -0.25F,
                       .high = 0.5F,
                       .ahead = nullptr,
                       .ahead_step = 0});
}

TEST(Tile, PairedHalvesGiveWhatHalvesGive) {
  Random random(17);
  for (const KernelTable* table : testing::tested_tables())
    for (int64_t rows = 1; rows <= table->tile_rows; ++rows)
      for (int64_t columns : {table->lanes + 1, table->lanes + table->lanes / 2})
        for (int64_t depth : {0, 1, 5, 16})
          for (Form form : {Form::plain, Form::accumulates, Form::adds, Form::clamps}) {
            Guarded a(tiles * rows * depth, random);
            Guarded b(depth * table->tile_columns, random);
            Guarded addend(tiles * rows * columns, random);
            Guarded halves(addend.size());
            Guarded pairs(addend.size());
            run(*table, table->narrow_even_tiles, rows, depth, form, a, b, addend, halves);
            run(*table, table->paired_even_tiles, rows, depth, form, a, b, addend, pairs);
            for (int64_t i = 0; i < halves.size(); ++i)
              ASSERT_EQ(halves[i], pairs[i]) << table->name << " " << rows << "x" << columns << "x" << depth;
          }
}

}  // namespace
}  // namespace selkie::kernels
