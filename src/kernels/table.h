// The leaf kernels of one instruction set as a table of functions. Each set's functions are compiled from the same
// source (isa/) with that set's flags; everything above them (blocking, tasks, pointers) is compiled once and calls
// them here.
#pragma once

#include <cstdint>
#include <span>

namespace selkie::kernels {

enum class Isa { generic, avx2, avx512 };

// A column of register tiles with the same number of rows, one below the other:
// c[rows, columns] (+)= sum over taps and depth of a * b, plus bias and addend.
struct TileArguments {
  int64_t tiles;
  const float* const* rows;  // [tiles][taps][rows of a tile]: where each row of a begins for a tap
  int64_t row_step;          // pointers from one tile to the next
  const float* a;            // or the first row, if all are the same distance apart; then there is one tap
  int64_t a_stride;
  int64_t a_offset;  // added to every pointer
  int64_t taps;
  int64_t depth;     // products per tap
  const float* b;    // [taps * depth][tile columns], columns contiguous
  int64_t b_stride;  // from one depth to the next
  float* c;
  int64_t c_stride;     // from one row to the next
  int64_t columns;      // columns of c that exist, 1 … tile columns
  const float* bias;    // one per column, or null; null if c is added to
  const float* addend;  // laid out as c, or null; null if c is added to
  bool accumulate;      // add to what c holds
  bool clamps;          // to low … high, as the sums are stored
  float low;
  float high;
  // What is multiplied next: every tile fetches its share of it, `ahead_step` bytes per depth, so that memory is busy
  // all the time and not only during the first tile that reads a panel.
  const char* ahead;
  int64_t ahead_step;
};
using TileFunction = void (*)(const TileArguments&);

inline constexpr int most_tile_rows = 12;

// c = rows * b + bias for all panels of b.
struct RowArguments {
  const float* row;  // the first
  int64_t row_stride;
  int64_t depth;
  const float* panels;  // each [depth][tile columns]
  int64_t panel_stride;
  int64_t columns;  // the last panel may have fewer than the others
  float* c;
  int64_t c_stride;
  const float* bias;    // one per column, or null
  const float* addend;  // laid out as c, or null; may be c
};
using RowFunction = void (*)(const RowArguments&);
inline constexpr int most_beside_rows = 6;

struct DepthwiseRows {
  int64_t begin;
  int64_t count;
};

// A strip of a depthwise convolution: neighbouring output pixels of some lines, some channels. Every input is a
// pointer, to zeros where a tap is outside, so that the loops have no conditions.
struct DepthwiseArguments {
  int64_t lines;
  int64_t rows;                 // of the kernel
  const DepthwiseRows* inside;  // per line: the rows that are not all zeros
  // Per line and row: the inputs of all pixels and taps from left to right, each once; for any_depthwise
  // [taps][pixels].
  const float* const* const* inputs;
  const float* weights;   // [rows][taps][weight_stride]
  int64_t weight_stride;  // floats from one tap to the next
  int64_t taps;           // of a row
  int64_t channels;
  const float* bias;  // or null
  bool clamps;        // to low … high
  float low;
  float high;
  float* output;
  int64_t output_stride;       // floats from one output pixel to the next
  int64_t output_line_stride;  // and from one line to the next
};
using DepthwiseFunction = void (*)(const DepthwiseArguments&);

inline constexpr int most_depthwise_pixels = 8;
enum DepthwiseKind {
  any_depthwise,
  three_by_one,
  three_by_two,
  five_by_one,
  five_by_two,
  seven_by_one,
  depthwise_kinds
};

// A vector of outputs of a grouped convolution, for a strip of neighbouring output pixels of some lines. Its inputs are
// copied: pixels one vector of channels apart, zeros where they are outside.
struct GroupedArguments {
  int64_t lines;
  int64_t rows;                 // of the kernel
  const DepthwiseRows* inside;  // per line: the rows that are not all zeros
  const float* const* inputs;   // per line and row: the first pixel of the line
  int64_t offset;               // from there to the strip's first pixel
  int64_t depth;                // input channels of a group
  int64_t chunk_stride;         // from a vector of input channels to the next one
  const int32_t* first_inputs;  // per lane, its group's first one, where a vector has outputs of several groups
  const float* weights;         // [rows][depth][taps][lanes]
  int64_t taps;                 // of a row, and for any_grouped
  int64_t pixel_step;           // floats from the inputs of an output pixel to those of the next,
  int64_t tap_step;             // and from one tap's to the next one's
  int64_t columns;              // outputs that exist, 1 … lanes
  const float* bias;            // or null
  const float* addend;          // laid out as the output, or null
  bool clamps;                  // to low … high
  float low;
  float high;
  float* output;
  int64_t output_stride;       // floats from one output pixel to the next
  int64_t output_line_stride;  // and from one line to the next
};
using GroupedFunction = void (*)(const GroupedArguments&);

inline constexpr int most_grouped_pixels = 8;
// By the width and the stride of the kernel.
enum GroupedKind { any_grouped, grouped_three_by_one, grouped_three_by_two, grouped_kinds };
// Whether a vector has outputs of one group, or of several.
enum GroupedLanes { one_group, several_groups, grouped_lanes };

// A tile of the input into its points: 6x6 of both, or with stride 2 9x9. Channels are at least the lanes of a vector,
// here and below.
struct WinogradInputArguments {
  const float* const* pixels;  // row by row; zeros where the tile is outside the input
  int64_t channels;
  float* to;
  const int64_t* points;  // where each one is, from there
  int64_t next;           // floats from a pixel to that of the tile after this one, which is fetched
  int64_t next_columns;   // of pixels that this tile does not have
};

// Filters of 3x3 into their 36 or 64 matrices.
struct WinogradWeightsArguments {
  const float* weights;  // of the first tap
  int64_t tap_stride;
  int64_t count;  // filters, a multiple of the lanes of a vector
  float* to;
  int64_t matrix_stride;
};

// Points of a few tiles times filters, which are transformed on the way: one vector of output channels.
struct WinogradFewArguments {
  const float* weights;  // of the first tap and input channel
  int64_t tap_stride;
  int64_t channel_stride;
  const float* after;  // weights that are worth fetching
  int64_t channels;
  bool accumulate;        // add to what the products are
  const float* inputs;    // of the first tile
  const int64_t* points;  // where each one is, from there
  int64_t tiles;
  int64_t input_stride;  // from tile to tile
  float* products;       // and the same of these
  const int64_t* product_points;
  int64_t product_stride;
};

// Points into a 4x4 tile of the output, of which rows x columns exist.
struct WinogradOutputArguments {
  const float* from;
  const int64_t* points;
  int64_t channels;
  const float* bias;    // or null
  const float* addend;  // laid out as the output, or null
  bool clamps;          // to low … high
  float low;
  float high;
  float* output;  // the tile's first pixel
  int64_t line_stride;
  int64_t pixel_stride;
  int64_t rows;
  int64_t columns;
};

enum class Function { exp_of_negative, sigmoid, tanh, relu };

// One row of scores joins the row's running softmax: each score becomes exp(score - largest so far), and what the row
// has summed up before is scaled to that largest.
struct SoftmaxRowArguments {
  float scale;             // of scores, before masks are added
  bool complete;           // nothing was or will be summed up but these scores: they are divided by their sum
  float* scores;           // room for `width` floats, rounded up to a vector
  int64_t columns;         // at least 1
  int64_t width;           // scores from `columns` to here are made 0
  const float* added;      // one per column, or null
  const uint8_t* allowed;  // one per column, 0: the score is `refused`; or null
  float refused;
  float* maximum;  // -inf before the first row
  float* sum;
  float* output;  // weighted sum so far
  int64_t output_columns;
};

// scores[i] = query * key i.
struct DotRowsArguments {
  const float* query;  // zeros from `depth` to the end of its vector
  const float* key;
  int64_t key_stride;
  int64_t depth;
  int64_t keys;
  float* scores;
};

// output (+)= sum of weights[i] * values[i].
struct WeightedRowsArguments {
  const float* weights;
  const float* values;
  int64_t value_stride;
  int64_t rows;
  int64_t columns;
  float* output;
  bool accumulate;
};

// One step of a recurrent cell for some hidden units of one sequence. Products and projected inputs are
// [groups][gates][lanes]; states have one float per unit.
struct GateArguments {
  int64_t groups;  // vectors of hidden units
  const float* products;
  const float* projected;
  const float* before;  // the hidden state
  float* after;
  float* cell;                // of an LSTM
  float* update;              // the update gate of a GRU in two phases
  const float* peepholes[3];  // of i, o and f; or null
  Function functions[3];
};
enum GateKind { rnn_kind, gru_kind, gru_reset_kind, gru_candidate_kind, lstm_kind, gate_kinds };

// Of a factor's quarters 11, 12, 21 and 22, each [rows, columns]: 11 + 22, 21 + 22, 11 + 12, 21 - 11 and 12 - 22, and
// if asked for copies of 11 and 22.
struct QuarterSumsArguments {
  const float* quarters[4];
  int64_t stride;
  int64_t rows;
  int64_t columns;
  bool copies;
  float* to;
  int64_t to_stride;
  int64_t to_matrix;  // floats from one result to the next
};

// Two panels of c, in an upper and a lower part of its rows, from Strassen's seven products (kernels/strassen.h).
struct ProductSumsArguments {
  const float* products;  // [7][rows][tile columns]
  int64_t matrix;         // floats from one of them to the next
  int64_t rows;
  int64_t upper_rows;     // that are stored of the upper part
  int64_t right_columns;  // that exist of the second panel
  float* c;               // of the first upper row
  int64_t c_stride;
  int64_t lower;        // floats from an upper row to its lower one
  const float* bias;    // or null
  const float* addend;  // as c, or null
  bool accumulate;      // add to what c holds
  bool clamps;          // to low … high
  float low;
  float high;
};

struct KernelTable {
  Isa isa;
  const char* name;
  int lanes;         // floats of a vector
  int tile_rows;     // rows of the largest tile
  int tile_columns;  // columns of a tile and of a packed panel: two vectors
  // tiles[v - 1][r - 1] makes tiles of r rows and v vectors; even_tiles of rows that are the same distance apart.
  // Of those, one or a few tiles fetch so much at a time that it would push everything else out of the first-level
  // cache; the functions for them fetch into the second level only.
  TileFunction tiles[2][most_tile_rows];
  TileFunction even_tiles[2][most_tile_rows];
  TileFunction few_even_tiles[2][most_tile_rows];
  // The same of rows that are the same distance apart and one and a half vectors; by half vectors, or two rows' halves
  // in one vector, where there are such vectors.
  TileFunction narrow_even_tiles[most_tile_rows];
  TileFunction paired_even_tiles[most_tile_rows];
  RowFunction multiply_rows[most_beside_rows];  // for 1, 2, … rows; null for more than fit beside two panels
  // Gives the sum of all magnitudes that it has read.
  float (*sum_quarters)(const QuarterSumsArguments&);
  void (*sum_products)(const ProductSumsArguments&);
  // to[column * to_stride + row] = from[row * from_stride + column].
  void (*transpose)(const float* from, int64_t from_stride, int64_t rows, int64_t columns, float* to,
                    int64_t to_stride);
  // By kernel width and stride, and pixels - 1.
  DepthwiseFunction depthwise[depthwise_kinds][most_depthwise_pixels];
  // By kernel width and stride, by groups of a vector, and pixels - 1.
  GroupedFunction grouped[grouped_kinds][grouped_lanes][most_grouped_pixels];
  // to[row * lanes + column] = from[row * stride + column], zeros from `columns` on, of which there are at most lanes.
  void (*copy_chunks)(const float* from, int64_t stride, int64_t rows, int64_t columns, float* to);
  void (*winograd_input)(const WinogradInputArguments&);
  void (*winograd_output)(const WinogradOutputArguments&);
  void (*winograd_weights)(const WinogradWeightsArguments&);
  void (*winograd_few)(const WinogradFewArguments&);
  void (*wide_winograd_input)(const WinogradInputArguments&);
  void (*wide_winograd_output)(const WinogradOutputArguments&);
  void (*wide_winograd_weights)(const WinogradWeightsArguments&);
  void (*strided_winograd_input)(const WinogradInputArguments&);
  void (*strided_winograd_output)(const WinogradOutputArguments&);
  void (*strided_winograd_weights)(const WinogradWeightsArguments&);
  // to[i] = function(from[i]).
  void (*map)(Function function, const float* from, int64_t count, float* to);
  // to[i] = from[i] * factor.
  void (*scale_row)(const float* from, int64_t count, float factor, float* to);
  // One panel: to[row * tile_columns + column] = from[row * stride + column], zeros from `columns` on.
  void (*pack_rows)(const float* from, int64_t stride, int64_t rows, int64_t columns, float* to);
  void (*softmax_row)(const SoftmaxRowArguments&);
  void (*dot_rows)(const DotRowsArguments&);
  void (*weighted_rows)(const WeightedRowsArguments&);
  void (*gates[gate_kinds])(const GateArguments&);
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
