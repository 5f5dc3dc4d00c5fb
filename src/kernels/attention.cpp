// Blocks of queries against blocks of keys, with the register tiles of GEMM where queries are many and loops over
// whole keys where they are few.
#include "kernels/attention.h"

#include <algorithm>
#include <limits>

#include "kernels/block.h"
#include "kernels/gemm.h"
#include "kernels/tasks.h"

namespace selkie::kernels {
namespace {

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

int64_t group_of(const Attention& attention) { return attention.heads / std::max<int64_t>(1, attention.key_heads); }

struct AttentionScratch {
  int64_t query_stride;
  int64_t score_stride;
  int64_t output_stride;
  float* queries;  // of the few that read keys where they are: scaled, rows padded with zeros
  float* scores;
  float* outputs;  // sums of the keys seen so far
  float* maxima;
  float* sums;
  const float** query_rows;
  float* key_panels;
  float* value_panels;
  float* added;  // a mask's row whose elements are no neighbours
  uint8_t* allowed;
  size_t bytes;

  AttentionScratch(const KernelTable& table, const Attention& attention, const AttentionPlan& plan, void* base)
      : query_stride(round_up(attention.depth, table.lanes)),
        score_stride(round_up(plan.keys_of_block, table.tile_columns)),
        output_stride(round_up(attention.columns, table.tile_columns)) {
    Scratch scratch(base);
    int64_t rows = plan.rows_of_block;
    queries = scratch.take<float>(plan.direct ? rows * query_stride : 0);
    scores = scratch.take<float>(plan.rows_of_scores * score_stride);
    outputs = scratch.take<float>(rows * output_stride);
    maxima = scratch.take<float>(rows);
    sums = scratch.take<float>(rows);
    query_rows = scratch.take<const float*>(plan.rows_of_scores);
    key_panels = scratch.take<float>(plan.direct ? 0 : score_stride * attention.depth);
    value_panels = scratch.take<float>(plan.direct ? 0 : plan.keys_of_block * output_stride);
    added = scratch.take<float>(plan.keys_of_block);
    allowed = scratch.take<uint8_t>(plan.keys_of_block);
    bytes = scratch.used();
  }
};

// One row of a mask from a key on: where it is if its elements are neighbours, else a copy that rows with the same
// elements share.
template <class T>
class MaskRow {
 public:
  MaskRow(const T* mask, const MaskStrides& strides, T* copy) : mask_(mask), strides_(strides), copy_(copy) {}

  const T* at(int64_t batch, int64_t head, int64_t row, int64_t key_begin, int64_t keys) {
    if (!mask_) return nullptr;
    const T* from = mask_ + batch * strides_.batch + head * strides_.head + row * strides_.row;
    from += key_begin * strides_.key;
    if (strides_.key == 1) return from;
    if (from != copied_ || key_begin != copied_begin_ || keys > copied_keys_)
      for (int64_t i = 0; i < keys; ++i) copy_[i] = from[i * strides_.key];
    copied_ = from;
    copied_begin_ = key_begin;
    copied_keys_ = keys;
    return copy_;
  }

 private:
  const T* mask_;
  MaskStrides strides_;
  T* copy_;
  const T* copied_ = nullptr;
  int64_t copied_begin_ = 0;
  int64_t copied_keys_ = 0;
};

// One block of rows: queries of the heads that share a key head, one head after the other.
class RowBlock {
 public:
  RowBlock(const KernelTable& table, const Attention& attention, const AttentionPlan& plan,
           const AttentionScratch& scratch, int64_t unit)
      : table_(table),
        attention_(attention),
        plan_(plan),
        scratch_(scratch),
        group_(group_of(attention)),
        batch_(unit / plan.row_blocks / attention.key_heads),
        key_head_(unit / plan.row_blocks % attention.key_heads),
        begin_(unit % plan.row_blocks * plan.rows_of_block),
        rows_(std::min(plan.rows_of_block, group_ * attention.queries - begin_)),
        key_(attention.key + batch_ * attention.key_strides.batch + key_head_ * attention.key_strides.head),
        value_(attention.value + batch_ * attention.value_strides.batch + key_head_ * attention.value_strides.head),
        added_(attention.added, attention.added_strides, scratch.added),
        allowed_(attention.allowed, attention.allowed_strides, scratch.allowed) {}

  void run() {
    int64_t seen = seen_by(0, rows_);
    if (seen == 0) return write_nothing();
    complete_ = group_ == 1 && !plan_.direct && seen <= plan_.keys_of_block;
    if (plan_.direct) scale_queries();
    if (!complete_) {
      std::fill(scratch_.maxima, scratch_.maxima + rows_, minus_infinity);
      std::fill(scratch_.sums, scratch_.sums + rows_, 0.0f);
    }
    for (int64_t key = 0; key < seen; key += plan_.keys_of_block) {
      int64_t keys = std::min(plan_.keys_of_block, seen - key);
      plan_.direct ? add_keys_directly(key, keys) : add_keys(key, keys);
    }
    if (!complete_) write_outputs();
  }

 private:
  // Most often every head has its own keys, and a division would take longer than a row's copy.
  int64_t head(int64_t row) const {
    return group_ == 1 ? key_head_ : key_head_ * group_ + (begin_ + row) / attention_.queries;
  }
  int64_t query(int64_t row) const { return group_ == 1 ? begin_ + row : (begin_ + row) % attention_.queries; }
  int64_t seen_keys(int64_t row) const {
    if (!attention_.causal) return attention_.keys;
    return std::clamp<int64_t>(query(row) + attention_.causal_offset + 1, 0, attention_.keys);
  }
  int64_t seen_by(int64_t begin, int64_t end) const {
    if (!attention_.causal) return attention_.keys;
    int64_t seen = 0;
    for (int64_t row = begin; row < end; ++row) seen = std::max(seen, seen_keys(row));
    return seen;
  }
  // Scores of some rows are held at a time, see rows_of_scores.
  float* scores(int64_t row) const { return scratch_.scores + (row - scores_begin_) * scratch_.score_stride; }
  float* sums(int64_t row) const { return scratch_.outputs + row * scratch_.output_stride; }
  const float* query_row(int64_t row) const {
    const HeadStrides& strides = attention_.query_strides;
    return attention_.query + batch_ * strides.batch + head(row) * strides.head + query(row) * strides.row;
  }
  float* output_row(int64_t row) const {
    const HeadStrides& strides = attention_.output_strides;
    return attention_.output + batch_ * strides.batch + head(row) * strides.head + query(row) * strides.row;
  }

  void scale_queries() {
    for (int64_t row = 0; row < rows_; ++row) {
      float* to = scratch_.queries + row * scratch_.query_stride;
      table_.scale_row(query_row(row), attention_.depth, attention_.scale, to);
      std::fill(to + attention_.depth, to + scratch_.query_stride, 0.0f);
    }
  }

  // The scores of the row's first `columns` keys of the block become weights, those of other keys up to `width` 0.
  void soften(int64_t row, int64_t key, int64_t columns, int64_t width) {
    if (columns <= 0) return std::fill(scores(row), scores(row) + width, complete_ ? not_a_number : 0.0f);
    table_.softmax_row({.scale = plan_.direct ? 1.0f : attention_.scale,
                        .complete = complete_,
                        .scores = scores(row),
                        .columns = columns,
                        .width = width,
                        .added = added_.at(batch_, head(row), query(row), key, columns),
                        .allowed = allowed_.at(batch_, head(row), query(row), key, columns),
                        .refused = attention_.refused,
                        .maximum = scratch_.maxima + row,
                        .sum = scratch_.sums + row,
                        .output = sums(row),
                        .output_columns = attention_.columns});
  }

  void add_keys_directly(int64_t key, int64_t keys) {
    for (int64_t row = 0; row < rows_; ++row) {
      int64_t columns = std::min(keys, seen_keys(row) - key);
      if (columns > 0)
        table_.dot_rows({.query = scratch_.queries + row * scratch_.query_stride,
                         .key = key_ + key * attention_.key_strides.row,
                         .key_stride = attention_.key_strides.row,
                         .depth = attention_.depth,
                         .keys = columns,
                         .scores = scores(row)});
      soften(row, key, columns, 0);
      table_.weighted_rows({.weights = scores(row),
                            .values = value_ + key * attention_.value_strides.row,
                            .value_stride = attention_.value_strides.row,
                            .rows = std::max<int64_t>(columns, 0),
                            .columns = attention_.columns,
                            .output = sums(row),
                            .accumulate = key > 0});
    }
  }

  void add_keys(int64_t key, int64_t keys) {
    pack_b(table_, key_ + key * attention_.key_strides.row, 1, attention_.key_strides.row, attention_.depth, keys,
           scratch_.key_panels);
    if (!reads_values_in_place())
      pack_b(table_, value_ + key * attention_.value_strides.row, attention_.value_strides.row, 1, keys,
             attention_.columns, scratch_.value_panels);
    for (int64_t row = 0; row < rows_; row += plan_.rows_of_scores)
      add_keys_to_rows(row, std::min(rows_, row + plan_.rows_of_scores), key, keys);
  }

  // Few rows do not pay for a copy; the tiles need whole panels.
  bool reads_values_in_place() const {
    return rows_ <= 4 * table_.tile_rows && attention_.columns % table_.tile_columns == 0;
  }

  void add_keys_to_rows(int64_t begin, int64_t end, int64_t key, int64_t keys) {
    int64_t seen = seen_by(begin, end);
    int64_t width = table_.tile_columns;
    scores_begin_ = begin;
    bool one_head = head(begin) == head(end - 1);
    if (!one_head)
      fill_pointers(
          table_, end - begin, 1, [&](int64_t row, int64_t) { return query_row(begin + row); }, scratch_.query_rows);
    Panels keys_packed{.base = scratch_.key_panels, .panel_stride = attention_.depth * width, .depth_stride = width};
    Panels values{.base = scratch_.value_panels, .panel_stride = keys * width, .depth_stride = width};
    if (reads_values_in_place())
      values = {.base = value_ + key * attention_.value_strides.row,
                .panel_stride = width,
                .depth_stride = attention_.value_strides.row};
    // Of the block's keys these rows may see only the first.
    keys = std::clamp<int64_t>(seen - key, 0, keys);
    multiply_block(table_, {.rows = end - begin,
                            .pointers = scratch_.query_rows,
                            .a = one_head ? query_row(begin) : nullptr,
                            .a_stride = attention_.query_strides.row,
                            .depth = attention_.depth,
                            .b = keys_packed,
                            .c = scratch_.scores,
                            .c_stride = scratch_.score_stride,
                            .column_end = round_up(keys, width)});
    for (int64_t row = begin; row < end; ++row) soften(row, key, std::min(keys, seen_keys(row) - key), keys);
    multiply_block(table_, {.rows = end - begin,
                            .a = scores(begin),
                            .a_stride = scratch_.score_stride,
                            .depth = keys,
                            .b = values,
                            .c = complete_ ? output_row(begin) : sums(begin),
                            .c_stride = complete_ ? attention_.output_strides.row : scratch_.output_stride,
                            .column_end = complete_ ? attention_.columns : scratch_.output_stride,
                            .accumulate = key > 0});
  }

  void write_outputs() {
    for (int64_t row = 0; row < rows_; ++row)
      table_.scale_row(sums(row), attention_.columns, 1.0f / scratch_.sums[row], output_row(row));
  }

  void write_nothing() {
    for (int64_t row = 0; row < rows_; ++row) {
      float* to = output_row(row);
      std::fill(to, to + attention_.columns, attention_.keys == 0 ? 0.0f : not_a_number);
    }
  }

  const KernelTable& table_;
  const Attention& attention_;
  const AttentionPlan& plan_;
  const AttentionScratch& scratch_;
  int64_t group_;
  int64_t batch_;
  int64_t key_head_;
  int64_t begin_;
  int64_t rows_;
  const float* key_;
  const float* value_;
  MaskRow<float> added_;
  MaskRow<uint8_t> allowed_;
  bool complete_ = false;  // scores of all keys are held at one time: outputs are written at once
  int64_t scores_begin_ = 0;
};

// Packing keys for the register tiles costs as much as a few queries do.
bool runs_directly(const KernelTable& table, int64_t rows) { return rows <= table.tile_rows; }

}  // namespace

AttentionPlan plan_attention(const KernelTable& table, const Attention& attention, int threads) {
  AttentionPlan plan{};
  int64_t rows = attention.queries * group_of(attention);
  if (attention.batch == 0 || attention.heads == 0 || rows == 0 || attention.columns == 0) return plan;
  int64_t heads = attention.batch * attention.key_heads;
  int64_t most_rows = 32 * table.tile_rows;
  // Blocks get smaller for threads that would have nothing to do, down to a few tiles that still pay for packing.
  if (threads > 1) {
    int64_t wanted = ceil_divide(rows * heads, 2 * threads);
    most_rows = std::clamp(round_up(wanted, table.tile_rows), 4 * int64_t{table.tile_rows}, most_rows);
  }
  int64_t blocks = ceil_divide(rows, most_rows);
  plan.rows_of_block = std::min(rows, round_up(ceil_divide(rows, blocks), table.tile_rows));
  plan.row_blocks = ceil_divide(rows, plan.rows_of_block);
  plan.direct = runs_directly(table, plan.rows_of_block);
  // Scores stay in the first-level cache between the two products, packed keys and values in the second-level one.
  plan.rows_of_scores = std::min<int64_t>(plan.rows_of_block, 8 * table.tile_rows);
  int64_t fitting = cache_sizes().l2 / 2 / (4 * (attention.depth + attention.columns + plan.rows_of_scores));
  int64_t most_keys = std::max<int64_t>(fitting / table.tile_columns, 2) * table.tile_columns;
  int64_t key_blocks = std::max<int64_t>(1, ceil_divide(attention.keys, most_keys));
  plan.keys_of_block = std::max<int64_t>(1, round_up(ceil_divide(attention.keys, key_blocks), table.tile_columns));
  plan.units = heads * plan.row_blocks;
  Cut cut = cut_tasks({.rows = plan.units,
                       .columns = plan.rows_of_block * attention.keys,
                       .row_step = plan.units,
                       .least_rows = 1,
                       .column_step = std::max<int64_t>(1, plan.rows_of_block * attention.keys),
                       .products = attention.depth + attention.columns,
                       .threads = threads});
  plan.units_of_task = cut.rows;
  plan.tasks = ceil_divide(plan.units, cut.rows);
  plan.scratch_bytes = AttentionScratch(table, attention, plan, nullptr).bytes;
  return plan;
}

void run_attention(const KernelTable& table, const Attention& attention, const AttentionPlan& plan, int64_t task_begin,
                   int64_t task_end, void* scratch) {
  AttentionScratch parts(table, attention, plan, scratch);
  int64_t end = std::min(plan.units, task_end * plan.units_of_task);
  for (int64_t unit = task_begin * plan.units_of_task; unit < end; ++unit)
    RowBlock(table, attention, plan, parts, unit).run();
}

}  // namespace selkie::kernels
