// How a matrix of outputs is cut into tasks for threads.
#pragma once

#include <cstdint>

namespace selkie::kernels {

struct CutRequest {
  int64_t rows;
  int64_t columns;
  int64_t row_step;     // rows of a task if there are tasks enough
  int64_t least_rows;   // rows of the smallest task
  int64_t column_step;  // a task's columns are a multiple of it
  int64_t products;     // multiplications per element, which say how much a task is worth
  int threads;
};

struct Cut {
  int64_t rows;
  int64_t columns;
};
// Rows and columns of each task but the last in its direction.
Cut cut_tasks(const CutRequest& request);

}  // namespace selkie::kernels
