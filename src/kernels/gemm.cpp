// Planning, packing and running of matrix products.
#include "kernels/gemm.h"

#include <algorithm>
#include <cstring>

#include "kernels/block.h"
#include "kernels/tasks.h"

namespace selkie::kernels {
namespace {

// b given at run time is read where it lies if its rows are contiguous and too few rows of a use it to pay for a copy.
bool reads_b_in_place(const KernelTable& table, const Gemm& gemm) {
  return !gemm.packed_b && gemm.b_column_stride == 1 && gemm.m <= 2 * table.tile_rows;
}

// Rows of a whose columns are contiguous are read where they lie, unless they are better copied.
bool copies_rows_of_a(const KernelTable& table, const Gemm& gemm, const GemmPlan& plan) {
  return gemm.a_column_stride == 1 &&
         copies_rows(table, {.rows = plan.rows_of_block, .columns = plan.columns_of_task, .stride = gemm.a_row_stride});
}

// Memory of one task: a copy of a's block if its columns are not contiguous, or of a part of its rows; panels of b.
struct GemmScratch {
  float* a;
  float* copies;  // or null
  float* b;
  size_t bytes;

  GemmScratch(const KernelTable& table, const Gemm& gemm, const GemmPlan& plan, void* base) {
    Scratch scratch(base);
    a = scratch.take<float>(gemm.a_column_stride == 1 ? 0 : plan.rows_of_block * gemm.k);
    bool copied = copies_rows_of_a(table, gemm, plan);
    copies = scratch.take<float>(copied ? copied_floats(table, plan.rows_of_block, gemm.k) : 0);
    if (!copied) copies = nullptr;
    int64_t columns = plan.packed_columns;
    if (multiplies_column(gemm)) {
      b = scratch.take<float>(round_up(gemm.k, table.lanes));
      bytes = scratch.used();
      return;
    }
    if (reads_b_in_place(table, gemm)) columns = gemm.n % table.tile_columns ? table.tile_columns : 0;
    b = scratch.take<float>(columns * gemm.k);
    bytes = scratch.used();
  }
};

void pack_panel(const KernelTable& table, const float* b, int64_t row_stride, int64_t column_stride, int64_t k,
                int64_t columns, float* packed) {
  int64_t width = table.tile_columns;
  if (column_stride == 1) return table.pack_rows(b, row_stride, k, columns, packed);
  if (columns < width) std::memset(packed, 0, static_cast<size_t>(k * width) * sizeof(float));
  if (row_stride == 1) {
    table.transpose(b, column_stride, columns, k, packed, width);
  } else {
    for (int64_t d = 0; d < k; ++d)
      for (int64_t j = 0; j < columns; ++j) packed[d * width + j] = b[d * row_stride + j * column_stride];
  }
}

// Copies rows of a whose columns are not contiguous.
void copy_rows(const KernelTable& table, const Gemm& gemm, int64_t row_begin, int64_t rows, float* to) {
  const float* from = gemm.a + row_begin * gemm.a_row_stride;
  if (gemm.a_row_stride == 1) return table.transpose(from, gemm.a_column_stride, gemm.k, rows, to, gemm.k);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t d = 0; d < gemm.k; ++d) to[r * gemm.k + d] = from[r * gemm.a_row_stride + d * gemm.a_column_stride];
}

// Where there is nothing to sum up, the rows have no memory. But no address means that they lie anywhere.
void set_rows_of_nothing(Block& block) {
  static constexpr float nothing = 0;
  block.a = &nothing;
  block.a_stride = 0;
}

void run_rows(const KernelTable& table, const Gemm& gemm, const GemmPlan& plan, const GemmScratch& scratch, Block block,
              int64_t row_begin, int64_t row_end) {
  for (int64_t row = row_begin; row < row_end; row += plan.rows_of_block) {
    block.rows = std::min(plan.rows_of_block, row_end - row);
    bool copied = gemm.a_column_stride != 1;
    if (copied) copy_rows(table, gemm, row, block.rows, scratch.a);
    block.a = copied ? scratch.a : gemm.a + row * gemm.a_row_stride;
    block.a_stride = copied ? gemm.k : gemm.a_row_stride;
    if (gemm.k == 0) set_rows_of_nothing(block);
    block.c = gemm.c + row * gemm.c_row_stride;
    if (gemm.finish.addend) block.finish.addend = gemm.finish.addend + row * gemm.c_row_stride;
    block.row_begin = row;
    multiply_block(table, block);
  }
}

void run_column(const KernelTable& table, const Gemm& gemm, const GemmScratch& scratch, int64_t row_begin,
                int64_t row_end) {
  std::fill_n(scratch.b, round_up(gemm.k, table.lanes), 0.0F);
  for (int64_t d = 0; d < gemm.k; ++d) scratch.b[d] = gemm.b[d * gemm.b_row_stride];
  table.dot_rows({.query = scratch.b,
                  .key = gemm.a + row_begin * gemm.a_row_stride,
                  .key_stride = gemm.a_row_stride,
                  .depth = gemm.k,
                  .keys = row_end - row_begin,
                  .scores = gemm.c + row_begin});
  if (!gemm.epilogue.function) return;
  int64_t ranges[] = {row_begin, row_end, 0, 1};
  gemm.epilogue.function(gemm.epilogue.buffers, gemm.epilogue.sizes, ranges);
}

void run_task(const KernelTable& table, const Gemm& gemm, const GemmPlan& plan, const GemmScratch& scratch,
              int64_t task) {
  int64_t width = table.tile_columns;
  int64_t row_begin = task / plan.column_tasks * plan.rows_of_task;
  int64_t row_end = std::min(gemm.m, row_begin + plan.rows_of_task);
  if (multiplies_column(gemm)) return run_column(table, gemm, scratch, row_begin, row_end);
  int64_t column_begin = task % plan.column_tasks * plan.columns_of_task;
  int64_t column_end = std::min(gemm.n, column_begin + plan.columns_of_task);
  Block block{.fetches_rows = gemm.a_column_stride == 1 && is_beyond_cache(gemm.m * gemm.k),
              .copies = scratch.copies,
              .depth = gemm.k,
              .c_stride = gemm.c_row_stride,
              .column_begin = column_begin,
              .column_end = column_end,
              .bias = gemm.bias,
              .many_panels = are_many_panels(table, gemm.n),
              .finish = gemm.finish,
              .epilogue = gemm.epilogue};
  if (gemm.packed_b) {
    block.b = {.base = gemm.packed_b, .panel_stride = gemm.k * width, .depth_stride = width};
    return run_rows(table, gemm, plan, scratch, block, row_begin, row_end);
  }
  if (plan.packed_columns == 0) {
    block.b = {.base = gemm.b, .panel_stride = width, .depth_stride = gemm.b_row_stride};
    if (int64_t partial = column_end % width) {
      pack_panel(table, gemm.b + column_end - partial, gemm.b_row_stride, 1, gemm.k, partial, scratch.b);
      block.b.partial = scratch.b;
    }
    return run_rows(table, gemm, plan, scratch, block, row_begin, row_end);
  }
  for (int64_t column = column_begin; column < column_end; column += plan.packed_columns) {
    block.column_begin = column;
    block.column_end = std::min(column_end, column + plan.packed_columns);
    pack_b(table, gemm.b + column * gemm.b_column_stride, gemm.b_row_stride, gemm.b_column_stride, gemm.k,
           block.column_end - column, scratch.b);
    block.b = {.base = scratch.b, .panel_stride = gemm.k * width, .depth_stride = width, .first_column = column};
    run_rows(table, gemm, plan, scratch, block, row_begin, row_end);
  }
}

}  // namespace

size_t packed_b_elements(const KernelTable& table, int64_t k, int64_t n) {
  return static_cast<size_t>(k * round_up(n, table.tile_columns));
}

void pack_b(const KernelTable& table, const float* b, int64_t row_stride, int64_t column_stride, int64_t k, int64_t n,
            float* packed) {
  for (int64_t column = 0; column < n; column += table.tile_columns)
    pack_panel(table, b + column * column_stride, row_stride, column_stride, k,
               std::min<int64_t>(table.tile_columns, n - column), packed + column * k);
}

bool multiplies_column(const Gemm& gemm) {
  constexpr int64_t least_depth = 16;  // of a vector; less is gathered float by float
  return gemm.n == 1 && gemm.k >= least_depth && !gemm.packed_b && gemm.a_column_stride == 1 &&
         gemm.c_row_stride == 1 && !gemm.bias && !gemm.finish.addend && !gemm.finish.clamps();
}

GemmPlan plan_gemm(const KernelTable& table, const Gemm& gemm, int threads) {
  GemmPlan plan{};
  if (gemm.m == 0 || gemm.n == 0) return plan;
  bool packs = !gemm.packed_b && !reads_b_in_place(table, gemm) && !multiplies_column(gemm);
  plan.rows_of_block = rows_of_block(table, gemm.m, gemm.k);
  // A task that packs b for itself takes all rows, lest b be packed again for each task.
  Cut cut = cut_tasks({.rows = gemm.m,
                       .columns = gemm.n,
                       .row_step = packs ? gemm.m : plan.rows_of_block,
                       .least_rows = table.tile_rows,
                       .column_step = table.tile_columns,
                       .products = gemm.k,
                       .threads = threads});
  plan.rows_of_task = cut.rows;
  plan.columns_of_task = cut.columns;
  plan.rows_of_block = std::min(plan.rows_of_block, plan.rows_of_task);
  plan.row_tasks = ceil_divide(gemm.m, plan.rows_of_task);
  plan.column_tasks = ceil_divide(gemm.n, plan.columns_of_task);
  if (packs) {
    int64_t fitting = cache_sizes().l2 * 2 / (4 * std::max<int64_t>(1, gemm.k));
    int64_t columns = std::max<int64_t>(fitting, table.tile_columns) / table.tile_columns * table.tile_columns;
    plan.packed_columns = std::min(round_up(gemm.n, table.tile_columns), std::min(columns, plan.columns_of_task));
  }
  plan.scratch_bytes = GemmScratch(table, gemm, plan, nullptr).bytes;
  return plan;
}

void run_gemm(const KernelTable& table, const Gemm& gemm, const GemmPlan& plan, int64_t task_begin, int64_t task_end,
              void* scratch) {
  GemmScratch parts(table, gemm, plan, scratch);
  for (int64_t task = task_begin; task < task_end; ++task) run_task(table, gemm, plan, parts, task);
}

}  // namespace selkie::kernels
