// Cutting of outputs into tasks: rows first, then columns, then smaller pieces of rows.
#include "kernels/tasks.h"

#include <algorithm>

#include "kernels/block.h"

namespace selkie::kernels {
namespace {

// Several tasks per thread even out threads that were interrupted; one under about ten microseconds costs more than
// that saves, since the first panel of each comes late. Other threads take part from a few microseconds on.
constexpr int64_t tasks_per_thread = 4;
constexpr double least_products_of_task = 2.5e6;
constexpr double least_products_of_thread = 3e5;

}  // namespace

Cut cut_tasks(const CutRequest& asked) {
  // Nothing is one task, too, which then has nothing to do.
  CutRequest request = asked;
  request.rows = std::max<int64_t>(1, request.rows);
  request.columns = std::max<int64_t>(1, request.columns);
  request.row_step = std::max<int64_t>(1, request.row_step);
  Cut cut{.rows = request.row_step, .columns = round_up(request.columns, request.column_step)};
  if (request.threads <= 1) return cut;
  // One row takes as long as two: both wait for weights.
  double products = static_cast<double>(std::max<int64_t>(2, request.rows)) * static_cast<double>(request.columns) *
                    static_cast<double>(std::max<int64_t>(1, request.products));
  auto worth = [&](double least) { return static_cast<int64_t>(std::min(products / least, 1e6)); };
  int64_t some = std::clamp<int64_t>(worth(least_products_of_thread), 1, request.threads);
  int64_t wanted = std::clamp<int64_t>(worth(least_products_of_task), some, request.threads * tasks_per_thread);
  if (wanted > request.threads) wanted -= wanted % request.threads;  // as many for each
  int64_t row_tasks = ceil_divide(request.rows, cut.rows);
  int64_t panels = ceil_divide(request.columns, request.column_step);
  int64_t column_tasks = std::clamp<int64_t>(ceil_divide(wanted, row_tasks), 1, ceil_divide(panels, 2));
  cut.columns = ceil_divide(panels, column_tasks) * request.column_step;
  column_tasks = ceil_divide(request.columns, cut.columns);
  if (row_tasks * column_tasks >= wanted) return cut;
  int64_t rows = ceil_divide(request.rows, ceil_divide(wanted, column_tasks));
  cut.rows = std::min(cut.rows, round_up(rows, request.least_rows));
  return cut;
}

}  // namespace selkie::kernels
