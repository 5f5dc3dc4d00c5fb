// The table of one instruction set: every function of isa/ instantiated. The unit that includes this sets
// SELKIE_ISA_LANES and SELKIE_ISA_TILE_ROWS.
#pragma once

#include "kernels/isa/attention.h"
#include "kernels/isa/depthwise.h"
#include "kernels/isa/grouped.h"
#include "kernels/isa/math.h"
#include "kernels/isa/narrow_tile.h"
#include "kernels/isa/recurrent.h"
#include "kernels/isa/row.h"
#include "kernels/isa/softmax.h"
#include "kernels/isa/strassen.h"
#include "kernels/isa/tile.h"
#include "kernels/isa/transpose.h"
#include "kernels/isa/winograd.h"

namespace selkie::kernels {
namespace {

template <int rows, int vectors, int locality, template <int> class Rows>
constexpr TileFunction tile_or_null() {
  if constexpr (rows <= SELKIE_ISA_TILE_ROWS)
    return tile<rows, vectors, locality, Rows<rows>>;
  else
    return nullptr;
}

template <int vectors, int locality, template <int> class Rows>
constexpr void set_tiles(TileFunction (&tiles)[most_tile_rows]) {
  tiles[0] = tile_or_null<1, vectors, locality, Rows>();
  tiles[1] = tile_or_null<2, vectors, locality, Rows>();
  tiles[2] = tile_or_null<3, vectors, locality, Rows>();
  tiles[3] = tile_or_null<4, vectors, locality, Rows>();
  tiles[4] = tile_or_null<5, vectors, locality, Rows>();
  tiles[5] = tile_or_null<6, vectors, locality, Rows>();
  tiles[6] = tile_or_null<7, vectors, locality, Rows>();
  tiles[7] = tile_or_null<8, vectors, locality, Rows>();
  tiles[8] = tile_or_null<9, vectors, locality, Rows>();
  tiles[9] = tile_or_null<10, vectors, locality, Rows>();
  tiles[10] = tile_or_null<11, vectors, locality, Rows>();
  tiles[11] = tile_or_null<12, vectors, locality, Rows>();
}

template <int rows>
constexpr void set_rows(RowFunction (&functions)[most_beside_rows]) {
  functions[rows - 1] = multiply_rows<rows>;
  if constexpr (rows < most_beside_rows && panels_beside<rows + 1>() > 1) set_rows<rows + 1>(functions);
}

template <int rows, template <int> class Halves>
constexpr void set_narrow_tiles(TileFunction (&tiles)[most_tile_rows]) {
  tiles[rows - 1] = narrow_tile<rows, Halves>;
  if constexpr (rows > 1) set_narrow_tiles<rows - 1, Halves>(tiles);
}

constexpr KernelTable make_table(Isa isa, const char* name) {
  KernelTable made{.isa = isa,
                   .name = name,
                   .lanes = lanes,
                   .tile_rows = SELKIE_ISA_TILE_ROWS,
                   .tile_columns = 2 * lanes,
                   .tiles = {},
                   .even_tiles = {},
                   .few_even_tiles = {},
                   .narrow_even_tiles = {},
                   .paired_even_tiles = {},
                   .multiply_rows = {},
                   .sum_quarters = sum_quarters,
                   .sum_products = sum_products,
                   .transpose = transpose,
                   .depthwise = {},
                   .grouped = {},
                   .copy_chunks = copy_chunks,
                   .winograd_input = winograd_input<Unstrided>,
                   .winograd_output = winograd_output<Unstrided>,
                   .winograd_weights = winograd_weights<Unstrided>,
                   .winograd_few = winograd_few,
                   .wide_winograd_input = winograd_input<Wide>,
                   .wide_winograd_output = winograd_output<Wide>,
                   .wide_winograd_weights = winograd_weights<Wide>,
                   .strided_winograd_input = winograd_input<Strided>,
                   .strided_winograd_output = winograd_output<Strided>,
                   .strided_winograd_weights = winograd_weights<Strided>,
                   .map = map,
                   .scale_row = scale_row,
                   .pack_rows = pack_rows,
                   .softmax_row = softmax_row,
                   .dot_rows = dot_rows,
                   .weighted_rows = weighted_rows,
                   .gates = {rnn_gates, gru_gates, gru_reset_gates, gru_candidate_gates, lstm_gates}};
  set_rows<1>(made.multiply_rows);
  set_tiles<1, 3, ScatteredRows>(made.tiles[0]);
  set_tiles<2, 3, ScatteredRows>(made.tiles[1]);
  set_tiles<1, 3, EvenRows>(made.even_tiles[0]);
  set_tiles<2, 3, EvenRows>(made.even_tiles[1]);
  set_narrow_tiles<SELKIE_ISA_TILE_ROWS, SplitHalves>(made.narrow_even_tiles);
  set_narrow_tiles<SELKIE_ISA_TILE_ROWS, PairedHalves>(made.paired_even_tiles);
  set_tiles<1, 2, EvenRows>(made.few_even_tiles[0]);
  set_tiles<2, 2, EvenRows>(made.few_even_tiles[1]);
  set_depthwise<0, 0>(made.depthwise[any_depthwise]);
  set_depthwise<3, 1>(made.depthwise[three_by_one]);
  set_depthwise<3, 2>(made.depthwise[three_by_two]);
  set_depthwise<5, 1>(made.depthwise[five_by_one]);
  set_depthwise<5, 2>(made.depthwise[five_by_two]);
  set_depthwise<7, 1>(made.depthwise[seven_by_one]);
  set_grouped<0, 0>(made.grouped[any_grouped]);
  set_grouped<3, 1>(made.grouped[grouped_three_by_one]);
  set_grouped<3, 2>(made.grouped[grouped_three_by_two]);
  return made;
}

}  // namespace
}  // namespace selkie::kernels
