// Recurrent layers (RNN, GRU, LSTM) over sequences: one evaluation for all cells, directions and layouts.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/tensor.h"
#include "ir/eval_context.h"

namespace selkie::ops {

enum class RnnCell : uint8_t { rnn, gru, lstm };
// Gates per cell, in ONNX's order: i of RNN, z r h of GRU, i o f c of LSTM.
int64_t gate_count(RnnCell cell);

struct RnnOptions {
  RnnCell cell;
  bool forward = true;
  bool reverse = false;  // both: bidirectional
  bool batch_first = false;
  bool linear_before_reset = false;
  bool input_forget = false;
  std::optional<double> clip;
  std::optional<int64_t> hidden_size;
  std::vector<std::function<double(double)>> activations;  // of all directions
  // Called on the matrix of all inputs, and of each step's hidden states, before it is multiplied: for operators that
  // quantize them.
  std::function<void(std::span<double>)> prepare;

  int64_t directions() const { return int64_t{forward} + int64_t{reverse}; }
};

// Read from the attributes that the operators share: activations, clip, direction, hidden_size, layout and so on.
RnnOptions rnn_options(const ir::EvalContext& e, RnnCell cell);

// Null where an optional operand is absent. Shapes and order of gates are ONNX's: w [directions, gates · hidden,
// input], r [directions, gates · hidden, hidden], b [directions, 2 · gates · hidden], p [directions, 3 · hidden].
struct RnnOperands {
  const Tensor* x = nullptr;
  const Tensor* w = nullptr;
  const Tensor* r = nullptr;
  const Tensor* b = nullptr;
  const Tensor* sequence_lens = nullptr;
  const Tensor* initial_h = nullptr;
  const Tensor* initial_c = nullptr;
  const Tensor* p = nullptr;
};

// Y, Y_h and Y_c (the last only for LSTM), of the dtype of x.
struct RnnResults {
  Tensor y;
  Tensor y_h;
  Tensor y_c;
};
RnnResults run_rnn(const RnnOptions& options, const RnnOperands& operands);

}  // namespace selkie::ops
