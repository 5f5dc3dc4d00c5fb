// Steps, sums and products of Strassen's algorithm around multiply_block.
#include "kernels/strassen.h"

#include <array>

#include "kernels/block.h"
#include "kernels/processor.h"

namespace selkie::kernels {
namespace {

constexpr int64_t products = 7;
// The sums of a and of b that a product multiplies, as sum_quarters lays them out.
struct Factors {
  int64_t a;
  int64_t b;
};
constexpr int64_t sums_of_b = 5;
constexpr int64_t first_of_b = 5;  // b's first quarter, which lies in its panel,
constexpr int64_t last_of_b = 6;   // and the last one
constexpr std::array<Factors, products> factors{
    {{0, 0}, {1, first_of_b}, {5, 4}, {6, 3}, {2, last_of_b}, {3, 2}, {4, 1}}};

// Floats of a's sums in a step: they come from the third-level cache.
constexpr int64_t most_floats_of_a = int64_t{1} << 21;
constexpr int64_t most_depth_of_piece = 1024;
// Beyond this the sums of all magnitudes tell that some sum might overflow.
constexpr float most_magnitude = 1e15F;

// Floats between matrices, so that powers of two do not put all of them into the same cache sets.
constexpr int64_t padding = 16;

struct Step {
  int64_t row;         // the first upper one
  int64_t rows;        // of either part
  int64_t upper_rows;  // that the lower part does not have, too
  int64_t lower;       // from an upper row to its lower one
  int64_t depth_begin;
  int64_t half;  // of the depth
  bool first;    // of the pieces
  bool last;

  Step(const Gemm& gemm, const StrassenPlan& plan, int64_t step) {
    int64_t piece = step % plan.pieces;
    row = step / plan.pieces * 2 * plan.rows_of_block;
    int64_t total = std::min(2 * plan.rows_of_block, gemm.m - row);
    rows = ceil_divide(total, 2);
    lower = total - rows;
    upper_rows = lower;
    depth_begin = piece * plan.depth_of_piece;
    half = std::min(plan.depth_of_piece, gemm.k - depth_begin) / 2;
    first = piece == 0;
    last = piece + 1 == plan.pieces;
  }
  int64_t matrix() const { return rows * half + padding; }
};

// Memory of a step: a's sums, and for each task of theirs the sum of magnitudes.
struct Shared {
  float* sums;
  float* magnitudes;
  size_t bytes;

  Shared(const StrassenPlan& plan, void* base) {
    Scratch scratch(base);
    sums = scratch.take<float>(products * (plan.rows_of_block * plan.depth_of_piece / 2 + padding));
    magnitudes = scratch.take<float>(plan.sum_tasks());
    bytes = scratch.used();
  }
};

struct StrassenScratch {
  float* b;         // the sums of two panels
  float* products;  // of some rows
  int64_t matrix_of_b;
  int64_t matrix_of_products;
  size_t bytes;

  StrassenScratch(const KernelTable& table, const StrassenPlan& plan, void* base) {
    Scratch scratch(base);
    matrix_of_b = plan.depth_of_piece / 2 * table.tile_columns + padding;
    matrix_of_products = plan.rows_at_once * table.tile_columns + padding;
    b = scratch.take<float>(sums_of_b * matrix_of_b);
    products = scratch.take<float>(kernels::products * matrix_of_products);
    bytes = scratch.used();
  }
};

// Two panels of b, and what becomes of their products with a.
class PanelPair {
 public:
  PanelPair(const KernelTable& table, const Gemm& gemm, const StrassenPlan& plan, const Step& step, int64_t index,
            const StrassenScratch& scratch)
      : table_(table), gemm_(gemm), plan_(plan), step_(step), scratch_(scratch), width_(table.tile_columns) {
    column_ = 2 * index * width_;
    column_end_ = std::min(gemm.n, column_ + 2 * width_);
    panel_ = gemm.packed_b + column_ * gemm.k + step.depth_begin * width_;
  }

  void multiply(const Shared& shared) {
    bool is_pair = column_end_ > column_ + width_;
    bool is_safe = is_pair && sum_panels() < most_magnitude;
    for (int64_t row = 0; row < step_.rows; row += plan_.rows_at_once) {
      int64_t rows = std::min(plan_.rows_at_once, step_.rows - row);
      if (is_safe && sum_rows(shared, row, rows) < most_magnitude)
        multiply_quarters(shared, row, rows);
      else
        multiply_plainly(row, rows);
    }
  }

 private:
  float sum_panels() {
    int64_t below = step_.half * width_;
    int64_t right = gemm_.k * width_;
    return table_.sum_quarters({.quarters = {panel_, panel_ + right, panel_ + below, panel_ + below + right},
                                .stride = 0,
                                .rows = 1,
                                .columns = below,
                                .copies = false,
                                .to = scratch_.b,
                                .to_stride = 0,
                                .to_matrix = scratch_.matrix_of_b});
  }

  // Of magnitudes of a, in tasks of the first stage that made some of these rows.
  float sum_rows(const Shared& shared, int64_t row, int64_t rows) const {
    float sum = 0;
    for (int64_t task = row / plan_.rows_of_sums; task * plan_.rows_of_sums < row + rows; ++task)
      sum += shared.magnitudes[task];
    return sum;
  }

  const float* factor_of_b(int64_t which) const {
    if (which == first_of_b) return panel_;
    if (which == last_of_b) return panel_ + (gemm_.k + step_.half) * width_;
    return scratch_.b + which * scratch_.matrix_of_b;
  }

  void multiply_quarters(const Shared& shared, int64_t row, int64_t rows) {
    Block block{.rows = rows, .a_stride = step_.half, .depth = step_.half, .c_stride = width_, .column_end = width_};
    for (int64_t i = 0; i < products; ++i) {
      // While the first rows are multiplied, the next panels are fetched, a quarter at a time.
      bool fetches_panel = row == 0 && i < 4 && column_end_ + width_ < gemm_.n;
      block.fetches_rows = !fetches_panel;
      block.a = shared.sums + factors[i].a * step_.matrix() + row * step_.half;
      block.b = {.base = factor_of_b(factors[i].b), .depth_stride = width_};
      if (fetches_panel) block.b.after = panel_ + (2 + i / 2) * gemm_.k * width_ + i % 2 * step_.half * width_;
      block.c = scratch_.products + i * scratch_.matrix_of_products;
      multiply_block(table_, block);
    }
    int64_t upper = step_.row + row;
    int64_t offset = upper * gemm_.c_row_stride + column_;
    const Finish& finish = gemm_.finish;
    table_.sum_products({.products = scratch_.products,
                         .matrix = scratch_.matrix_of_products,
                         .rows = rows,
                         .upper_rows = step_.upper_rows - row,
                         .right_columns = column_end_ - column_ - width_,
                         .c = gemm_.c + offset,
                         .c_stride = gemm_.c_row_stride,
                         .lower = step_.lower * gemm_.c_row_stride,
                         .bias = step_.first && gemm_.bias ? gemm_.bias + column_ : nullptr,
                         .addend = step_.first && finish.addend ? finish.addend + offset : nullptr,
                         .accumulate = !step_.first,
                         .clamps = step_.last && finish.clamps(),
                         .low = finish.low,
                         .high = finish.high});
    call_epilogue(upper, std::min(rows, step_.upper_rows - row));
    call_epilogue(upper + step_.lower, rows);
  }

  void call_epilogue(int64_t row, int64_t rows) const {
    if (rows <= 0 || !step_.last || !gemm_.epilogue.function) return;
    int64_t ranges[] = {row, row + rows, column_, column_end_};
    gemm_.epilogue.function(gemm_.epilogue.buffers, gemm_.epilogue.sizes, ranges);
  }

  void multiply_plainly(int64_t row, int64_t rows) const {
    multiply_rows(step_.row + row, std::min(rows, step_.upper_rows - row));
    multiply_rows(step_.row + row + step_.lower, rows);
  }

  void multiply_rows(int64_t row, int64_t rows) const {
    if (rows <= 0) return;
    int64_t place = row * gemm_.c_row_stride;
    Block block{
        .rows = rows,
        .a = gemm_.a + row * gemm_.a_row_stride + step_.depth_begin,
        .a_stride = gemm_.a_row_stride,
        .depth = 2 * step_.half,
        .b = {.base = panel_, .panel_stride = gemm_.k * width_, .depth_stride = width_, .first_column = column_},
        .c = gemm_.c + place,
        .c_stride = gemm_.c_row_stride,
        .column_begin = column_,
        .column_end = column_end_,
        .bias = step_.first ? gemm_.bias : nullptr,
        .accumulate = !step_.first,
        .row_begin = row};
    if (step_.first && gemm_.finish.addend) block.finish.addend = gemm_.finish.addend + place;
    if (step_.last) {
      block.finish.low = gemm_.finish.low;
      block.finish.high = gemm_.finish.high;
      block.epilogue = gemm_.epilogue;
    }
    multiply_block(table_, block);
  }

  const KernelTable& table_;
  const Gemm& gemm_;
  const StrassenPlan& plan_;
  const Step& step_;
  const StrassenScratch& scratch_;
  int64_t width_;
  int64_t column_;
  int64_t column_end_;
  const float* panel_;
};

}  // namespace

int64_t StrassenPlan::sum_tasks() const { return ceil_divide(rows_of_block, rows_of_sums); }
int64_t StrassenPlan::product_tasks(const KernelTable& table, const Gemm& gemm) const {
  return ceil_divide(gemm.n, 2 * table.tile_columns);
}

StrassenPlan plan_strassen(const KernelTable& table, const Gemm& gemm, int threads) {
  StrassenPlan plan{};
  plan.pieces = ceil_divide(gemm.k, most_depth_of_piece);
  plan.depth_of_piece = round_up(ceil_divide(gemm.k, plan.pieces), 2);
  plan.pieces = ceil_divide(gemm.k, plan.depth_of_piece);
  int64_t fitting = std::max<int64_t>(most_floats_of_a / (products * plan.depth_of_piece / 2), 8 * table.tile_rows);
  plan.blocks = ceil_divide(ceil_divide(gemm.m, 2), fitting);
  plan.rows_of_block = ceil_divide(ceil_divide(gemm.m, 2), plan.blocks);
  plan.blocks = ceil_divide(gemm.m, 2 * plan.rows_of_block);
  int64_t parts = ceil_divide(plan.rows_of_block, 8 * table.tile_rows);
  plan.rows_at_once = round_up(ceil_divide(plan.rows_of_block, parts), table.tile_rows);
  // The sums of few rows are made in a few microseconds, for which no thread should wait.
  constexpr int64_t tasks_per_thread = 4;
  plan.rows_of_sums = plan.rows_at_once;
  if (threads > 1) {
    int64_t share = ceil_divide(plan.rows_of_block, threads * tasks_per_thread);
    plan.rows_of_sums = std::min(plan.rows_at_once, round_up(share, table.tile_rows));
  }
  plan.memory_bytes = Shared(plan, nullptr).bytes;
  plan.scratch_bytes = StrassenScratch(table, plan, nullptr).bytes;
  return plan;
}

bool strassen_wins(const KernelTable& table, const Gemm& gemm) {
  if (gemm.m == 0 || gemm.n == 0 || gemm.exact || !gemm.packed_b || gemm.a_column_stride != 1 || gemm.k % 2 != 0 ||
      gemm.k == 0)
    return false;
  // What sums of a, of b and of products cost, and shorter tiles, of the plain product's time: measured on the shapes
  // of kernels_bench within two hundredths. Sums of b are made once for all rows, and take longer beside faster
  // products.
  constexpr double most_sums = 1.0 / 8 - 0.01;
  constexpr int wide_lanes = 16;
  const double of_b = table.lanes == wide_lanes && wide_units() == WideUnits::zen5 ? 10 : 6;
  auto sums = [of_b](int64_t m, int64_t n, int64_t k) {
    return 0.035 + of_b / static_cast<double>(m) + 12 / static_cast<double>(n) + 11 / static_cast<double>(k);
  };
  if (sums(gemm.m, gemm.n, gemm.k) > most_sums) return false;
  // The rows are those for which sums of b are made once, and c is passed over once for each piece.
  StrassenPlan plan = plan_strassen(table, gemm, 1);
  return sums(std::min(gemm.m, 2 * plan.rows_of_block), gemm.n, plan.depth_of_piece) <= most_sums;
}

void run_strassen_sums(const KernelTable& table, const Gemm& gemm, const StrassenPlan& plan, int64_t step_index,
                       int64_t task_begin, int64_t task_end, void* memory) {
  Step step(gemm, plan, step_index);
  Shared shared(plan, memory);
  for (int64_t task = task_begin; task < task_end; ++task) {
    int64_t row = task * plan.rows_of_sums;
    if (row >= step.rows) break;
    const float* upper = gemm.a + (step.row + row) * gemm.a_row_stride + step.depth_begin;
    const float* lower = upper + step.lower * gemm.a_row_stride;
    shared.magnitudes[task] = table.sum_quarters({.quarters = {upper, upper + step.half, lower, lower + step.half},
                                                  .stride = gemm.a_row_stride,
                                                  .rows = std::min(plan.rows_of_sums, step.rows - row),
                                                  .columns = step.half,
                                                  .copies = true,
                                                  .to = shared.sums + row * step.half,
                                                  .to_stride = step.half,
                                                  .to_matrix = step.matrix()});
  }
}

void run_strassen_products(const KernelTable& table, const Gemm& gemm, const StrassenPlan& plan, int64_t step_index,
                           int64_t task_begin, int64_t task_end, const void* memory, void* scratch) {
  Step step(gemm, plan, step_index);
  Shared shared(plan, const_cast<void*>(memory));
  StrassenScratch parts(table, plan, scratch);
  for (int64_t task = task_begin; task < task_end; ++task)
    PanelPair(table, gemm, plan, step, task, parts).multiply(shared);
}

}  // namespace selkie::kernels
