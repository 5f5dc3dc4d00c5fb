// RNN, GRU and LSTM in f32 as ONNX defines them: variable lengths, one or both directions, any sizes. The inputs of all
// steps are multiplied at once; then each step multiplies its state by weights that are packed so that the gates of the
// same hidden units lie together, and goes on to the gates while the products are in cache. Nothing here allocates.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "kernels/gemm.h"
#include "kernels/table.h"

namespace selkie::kernels {

enum class RecurrentKind { rnn, gru, lstm };

// f, g and h of ONNX; an RNN has f only, a GRU f and g.
using RecurrentFunctions = std::array<Function, 3>;

// What an operator asks for beside its sizes.
struct RecurrentForm {
  RecurrentKind kind = RecurrentKind::lstm;
  int directions = 1;
  std::span<const std::string_view> activations = {};  // ONNX's names for all directions; empty: the defaults
  bool clipped = false;
  bool input_forget = false;
};

// The functions of each direction, or nothing and the reason: only Sigmoid, Tanh and Relu are served, without clip and
// without input_forget.
std::optional<std::array<RecurrentFunctions, 2>> serves(const RecurrentForm& form, std::string_view* why_not);

struct RecurrentShape {
  RecurrentKind kind = RecurrentKind::lstm;
  int64_t steps = 0;
  int64_t batch = 1;
  int64_t input = 0;
  int64_t hidden = 0;
  int64_t directions = 1;
  bool linear_before_reset = false;  // of a GRU
};

// As ONNX has them, gates in the order i / z r h / i o f c.
struct RecurrentWeights {
  const float* w = nullptr;          // [directions, gates * hidden, input]
  const float* r = nullptr;          // [directions, gates * hidden, hidden]
  const float* bias = nullptr;       // [directions, 2 * gates * hidden], or null
  const float* peepholes = nullptr;  // [directions, 3 * hidden], or null; of an LSTM
};

// Floats from one element to the next along each axis; hidden units are neighbours.
struct StateStrides {
  int64_t direction = 0;
  int64_t batch = 0;
};

struct Recurrent {
  RecurrentShape shape;
  std::array<RecurrentFunctions, 2> functions = {};
  std::array<bool, 2> reversed = {false, true};  // per direction: steps are taken from the last to the first
  const float* packed = nullptr;                 // from pack_recurrent of the same table
  bool peepholes = false;                        // the packed weights have some
  const float* x = nullptr;                      // [steps, batch, input], or
  bool batch_first = false;                      // [batch, steps, input]
  const int32_t* lengths = nullptr;              // [batch], each 0 … steps; null: all are `steps`
  const float* initial_h = nullptr;              // null: zeros
  const float* initial_c = nullptr;
  float* y = nullptr;  // hidden states of all steps, 0 beyond a length; or null
  int64_t y_step_stride = 0;
  StateStrides y_strides;
  float* y_h = nullptr;  // state after the last step of each length; or null
  float* y_c = nullptr;
  StateStrides state_strides;  // of initial_h, initial_c, y_h and y_c
};

// The work is a sequence of stages. Tasks of one stage may run at the same time, each thread with its own scratch; a
// stage begins when the one before has ended.
struct RecurrentPlan {
  GemmPlan projection;  // of one direction
  int64_t directions;
  int64_t steps;
  int64_t phases;              // of a step: two where the state is reset before a product
  int64_t groups_of_task;      // vectors of hidden units
  int64_t tasks_of_direction;  // in a phase
  int64_t groups_of_piece;     // of a task's, multiplied before the gates are made
  int64_t groups_of_product;   // of a piece's, whose weights take a part of the second-level cache
  int64_t rows_of_block;       // of the batch
  size_t memory_bytes;         // shared by all threads, kept from stage to stage, aligned to 64
  size_t scratch_bytes;        // for each thread, aligned to 64

  int64_t stages() const { return 1 + steps * phases; }
  int64_t tasks(int64_t stage) const {
    return stage == 0 ? 1 + directions * projection.tasks() : directions * tasks_of_direction;
  }
};

size_t packed_recurrent_elements(const KernelTable& table, const RecurrentShape& shape);
void pack_recurrent(const KernelTable& table, const RecurrentShape& shape, const RecurrentWeights& weights,
                    float* packed);

RecurrentPlan plan_recurrent(const KernelTable& table, const Recurrent& recurrent, int threads);
void run_recurrent_stage(const KernelTable& table, const Recurrent& recurrent, const RecurrentPlan& plan, int64_t stage,
                         int64_t task_begin, int64_t task_end, void* memory, void* scratch);
// All stages on this thread.
void run_recurrent(const KernelTable& table, const Recurrent& recurrent, const RecurrentPlan& plan, void* memory,
                   void* scratch);

}  // namespace selkie::kernels
