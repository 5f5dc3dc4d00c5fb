// Packing, planning and running of products whose weights are small floats.
#include "kernels/half_gemm.h"

#include <cmath>
#include <cstring>

#include "kernels/block.h"
#include "kernels/tasks.h"

namespace selkie::kernels {
namespace {

// So many rows are cheaper by widening the weights again for some of them at a time than by doing it once before.
constexpr int64_t most_few_rows = 8 * most_half_rows;

// The code of the small float that is this number; nothing if none is.
std::optional<uint16_t> exact_code(HalfKind kind, float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  if (kind == HalfKind::bf16) return bits & 0xffff ? std::nullopt : std::optional(static_cast<uint16_t>(bits >> 16));
  uint32_t sign = bits >> 16 & 0x8000;
  uint32_t exponent = bits >> 23 & 0xff;
  if (exponent > 112 && exponent < 143)
    return bits & 0x1fff ? std::nullopt
                         : std::optional(static_cast<uint16_t>(sign | (exponent - 112) << 10 | (bits >> 13 & 0x3ff)));
  // Zero, and multiples of the smallest number that have no exponent of their own.
  float multiple = std::fabs(value) * 0x1p24f;
  if (!(multiple < 1024) || multiple != std::floor(multiple)) return std::nullopt;
  return static_cast<uint16_t>(sign | static_cast<uint32_t>(multiple));
}

struct HalfScratch {
  float* a;  // rows whose columns are not contiguous
  float* b;
  size_t bytes;

  HalfScratch(const HalfGemm& gemm, const HalfPlan& plan, void* base) {
    Scratch scratch(base);
    const Gemm& m = gemm.matrices;
    a = scratch.take<float>(m.a_column_stride == 1 ? 0 : plan.rows_of_block * m.k);
    b = scratch.take<float>(plan.widened_columns * m.k);
    bytes = scratch.used();
  }
};

// Rows of a from `row` on, where their columns are neighbours; gives the stride between them.
std::pair<const float*, int64_t> rows_of_a(const Gemm& gemm, int64_t row, int64_t rows, float* copy) {
  const float* from = gemm.a + row * gemm.a_row_stride;
  if (gemm.a_column_stride == 1) return {from, gemm.a_row_stride};
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t d = 0; d < gemm.k; ++d) copy[r * gemm.k + d] = from[r * gemm.a_row_stride + d * gemm.a_column_stride];
  return {copy, gemm.k};
}

// A few rows at a time by panels that are widened on the way. Panels are taken in groups that stay in cache for all
// rows.
void multiply_rows(const KernelTable& table, const HalfGemm& gemm, const HalfScratch& scratch, int64_t begin,
                   int64_t end) {
  const Gemm& m = gemm.matrices;
  const HalfTable& halves = *half_table(table.isa);
  auto [a, stride] = rows_of_a(m, 0, m.m, scratch.a);
  int64_t passes = ceil_divide(m.m, most_half_rows);
  int64_t fitting = cache_sizes().l2 / 2 / (2 * std::max<int64_t>(1, m.k));
  int64_t group = passes == 1 ? end - begin : round_up(std::max<int64_t>(1, fitting), 4 * table.tile_columns);
  for (int64_t column = begin; column < end; column += group)
    for (int64_t pass = 0; pass < passes; ++pass) {
      int64_t row = m.m * pass / passes;
      int64_t rows = m.m * (pass + 1) / passes - row;
      halves.multiply_rows[static_cast<int>(gemm.kind)][rows - 1]({.rows = a + row * stride,
                                                                   .row_stride = stride,
                                                                   .depth = m.k,
                                                                   .panels = gemm.packed + column * m.k,
                                                                   .columns = std::min(group, end - column),
                                                                   .c = m.c + row * m.c_row_stride + column,
                                                                   .c_stride = m.c_row_stride,
                                                                   .bias = m.bias ? m.bias + column : nullptr});
    }
  if (!m.epilogue.function) return;
  int64_t ranges[] = {0, m.m, begin, end};
  m.epilogue.function(m.epilogue.buffers, m.epilogue.sizes, ranges);
}

// All rows by some panels, which are widened first.
void multiply_widened(const KernelTable& table, const HalfGemm& gemm, const HalfPlan& plan, const HalfScratch& scratch,
                      int64_t begin, int64_t end) {
  const Gemm& m = gemm.matrices;
  int64_t width = table.tile_columns;
  half_table(table.isa)->widen[static_cast<int>(gemm.kind)](gemm.packed + begin * m.k,
                                                            round_up(end - begin, width) * m.k, scratch.b);
  for (int64_t row = 0; row < m.m; row += plan.rows_of_block) {
    int64_t rows = std::min(plan.rows_of_block, m.m - row);
    auto [a, stride] = rows_of_a(m, row, rows, scratch.a);
    multiply_block(table,
                   {.rows = rows,
                    .a = a,
                    .a_stride = stride,
                    .depth = m.k,
                    .b = {.base = scratch.b, .panel_stride = m.k * width, .depth_stride = width, .first_column = begin},
                    .c = m.c + row * m.c_row_stride,
                    .c_stride = m.c_row_stride,
                    .column_begin = begin,
                    .column_end = end,
                    .bias = m.bias,
                    .row_begin = row,
                    .epilogue = m.epilogue});
  }
}

}  // namespace

std::optional<HalfKind> half_kind(const KernelTable& table, std::span<const float> weights) {
  if (half_table(table.isa) == nullptr) return std::nullopt;
  if (static_cast<int64_t>(weights.size_bytes()) <= cache_sizes().l2 / 2) return std::nullopt;
  for (HalfKind kind : {HalfKind::f16, HalfKind::bf16})
    if (std::ranges::all_of(weights, [&](float w) { return exact_code(kind, w).has_value(); })) return kind;
  return std::nullopt;
}

void pack_half(const KernelTable& table, HalfKind kind, const float* b, int64_t row_stride, int64_t column_stride,
               int64_t k, int64_t n, uint16_t* packed) {
  int64_t width = table.tile_columns;
  for (int64_t first = 0; first < n; first += width)
    for (int64_t d = 0; d < k; ++d)
      for (int64_t i = 0; i < width; ++i) {
        int64_t column = first + (kind == HalfKind::bf16 ? i / 2 + i % 2 * table.lanes : i);
        *packed++ = column < n ? exact_code(kind, b[d * row_stride + column * column_stride]).value() : uint16_t{0};
      }
}

HalfPlan plan_half_gemm(const KernelTable& table, const HalfGemm& gemm, int threads) {
  const Gemm& m = gemm.matrices;
  HalfPlan plan{};
  if (m.m == 0 || m.n == 0) return plan;
  int64_t width = table.tile_columns;
  bool few = m.m <= most_few_rows;
  plan.rows_of_block = few ? m.m : rows_of_block(table, m.m, m.k);
  Cut cut = cut_tasks({.rows = m.m,
                       .columns = m.n,
                       .row_step = m.m,
                       .least_rows = m.m,
                       .column_step = width,
                       .products = m.k,
                       .threads = threads});
  plan.columns_of_task = cut.columns;
  plan.tasks = ceil_divide(m.n, cut.columns);
  if (!few) {
    int64_t fitting = cache_sizes().l2 / 2 / (4 * std::max<int64_t>(1, m.k));
    int64_t columns = std::max<int64_t>(fitting, width) / width * width;
    plan.widened_columns = std::min(round_up(m.n, width), std::min(columns, plan.columns_of_task));
  }
  plan.scratch_bytes = HalfScratch(gemm, plan, nullptr).bytes;
  return plan;
}

void run_half_gemm(const KernelTable& table, const HalfGemm& gemm, const HalfPlan& plan, int64_t task_begin,
                   int64_t task_end, void* scratch) {
  HalfScratch parts(gemm, plan, scratch);
  for (int64_t task = task_begin; task < task_end; ++task) {
    int64_t begin = task * plan.columns_of_task;
    int64_t end = std::min(gemm.matrices.n, begin + plan.columns_of_task);
    if (plan.widened_columns == 0) {
      multiply_rows(table, gemm, parts, begin, end);
      continue;
    }
    for (int64_t column = begin; column < end; column += plan.widened_columns)
      multiply_widened(table, gemm, plan, parts, column, std::min(end, column + plan.widened_columns));
  }
}

}  // namespace selkie::kernels
