// Attention in f32, softmax(scale * q k^T + mask) v, for every number of queries and keys. Scores exist for one block
// of queries and keys at a time, in scratch memory; the softmax is a running one. Nothing here allocates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "kernels/table.h"

namespace selkie::kernels {

// Floats from one batch, head and row to the next; elements of a row are neighbours. [batch, heads, rows, size] and
// [batch, rows, heads, size] are both served this way without a transposition.
struct HeadStrides {
  int64_t batch = 0;
  int64_t head = 0;
  int64_t row = 0;
};

// Elements from one score to the next along each axis; 0 where a mask is broadcast.
struct MaskStrides {
  int64_t batch = 0;
  int64_t head = 0;
  int64_t row = 0;
  int64_t key = 0;
};

// Results are those of a plain softmax over all keys: a query all of whose scores are -inf gives NaN, so does one with
// a score of NaN or +inf, and without keys every output is 0. Keys beyond a causal border are not read, while a plain
// product would make NaN of an infinite value there.
struct Attention {
  int64_t batch = 1;
  int64_t heads = 1;
  int64_t key_heads = 1;  // divides heads; query head h reads key head h / (heads / key_heads)
  int64_t queries = 0;
  int64_t keys = 0;
  int64_t depth = 0;    // of a query and a key
  int64_t columns = 0;  // of a value and an output
  float scale = 1;
  const float* query = nullptr;
  HeadStrides query_strides;
  const float* key = nullptr;
  HeadStrides key_strides;
  const float* value = nullptr;
  HeadStrides value_strides;
  float* output = nullptr;
  HeadStrides output_strides;
  const float* added = nullptr;  // a mask that is added to scaled scores, or null
  MaskStrides added_strides;
  const uint8_t* allowed = nullptr;  // a mask of 0 (the score is `refused`) and 1, or null
  MaskStrides allowed_strides;
  float refused = -std::numeric_limits<float>::infinity();
  bool causal = false;        // query i sees the keys up to and including i + causal_offset
  int64_t causal_offset = 0;  // the number of past keys, if queries are those that follow them
};

// How attention is cut. A unit is one block of the queries of all heads that share a key head.
struct AttentionPlan {
  int64_t rows_of_block;
  int64_t rows_of_scores;  // rows of the block whose scores exist at one time
  int64_t keys_of_block;
  int64_t row_blocks;
  bool direct;  // few queries: keys and values are read where they are
  int64_t units;
  int64_t units_of_task;
  int64_t tasks;
  size_t scratch_bytes;  // for each thread, aligned to 64
};

AttentionPlan plan_attention(const KernelTable& table, const Attention& attention, int threads);
void run_attention(const KernelTable& table, const Attention& attention, const AttentionPlan& plan, int64_t task_begin,
                   int64_t task_end, void* scratch);

}  // namespace selkie::kernels
