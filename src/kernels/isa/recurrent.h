// The gates of recurrent cells: from a step's products to the next state, one vector of hidden units at a time.
#pragma once

#include "kernels/isa/math.h"
#include "kernels/table.h"

namespace selkie::kernels {
namespace {

// A gate's argument. Products and projected inputs of a group of units lie gate by gate.
SELKIE_INLINE Vector gate_sum(const GateArguments& t, int64_t group, int gates, int gate) {
  int64_t at = (group * gates + gate) * lanes;
  return load(t.products + at) + load(t.projected + at);
}

void rnn_gates(const GateArguments& arguments) {
  const GateArguments t = arguments;
  for (int64_t group = 0; group < t.groups; ++group)
    store(t.after + group * lanes, apply(t.functions[0], gate_sum(t, group, 1, 0)));
}

// h' = (1 - z) * candidate + z * h.
SELKIE_INLINE Vector gru_state(Vector update, Vector candidate, Vector before) {
  return (1.0f - update) * candidate + update * before;
}

// The product of the candidate is reset after it was made.
void gru_gates(const GateArguments& arguments) {
  const GateArguments t = arguments;
  for (int64_t group = 0; group < t.groups; ++group) {
    Vector update = apply(t.functions[0], gate_sum(t, group, 3, 0));
    Vector reset = apply(t.functions[0], gate_sum(t, group, 3, 1));
    int64_t at = (group * 3 + 2) * lanes;
    Vector candidate = apply(t.functions[1], load(t.projected + at) + reset * load(t.products + at));
    store(t.after + group * lanes, gru_state(update, candidate, load(t.before + group * lanes)));
  }
}

// The state is reset before the candidate's product: `after` is what that product multiplies.
void gru_reset_gates(const GateArguments& arguments) {
  const GateArguments t = arguments;
  for (int64_t group = 0; group < t.groups; ++group) {
    store(t.update + group * lanes, apply(t.functions[0], gate_sum(t, group, 2, 0)));
    Vector reset = apply(t.functions[0], gate_sum(t, group, 2, 1));
    store(t.after + group * lanes, reset * load(t.before + group * lanes));
  }
}

void gru_candidate_gates(const GateArguments& arguments) {
  const GateArguments t = arguments;
  for (int64_t group = 0; group < t.groups; ++group) {
    Vector candidate = apply(t.functions[1], gate_sum(t, group, 1, 0));
    Vector before = load(t.before + group * lanes);
    store(t.after + group * lanes, gru_state(load(t.update + group * lanes), candidate, before));
  }
}

void lstm_gates(const GateArguments& arguments) {
  const GateArguments t = arguments;
  for (int64_t group = 0; group < t.groups; ++group) {
    int64_t unit = group * lanes;
    Vector cell = load(t.cell + unit);
    Vector input = gate_sum(t, group, 4, 0);
    Vector output = gate_sum(t, group, 4, 1);
    Vector forget = gate_sum(t, group, 4, 2);
    if (t.peepholes[0]) {
      input += load(t.peepholes[0] + unit) * cell;
      forget += load(t.peepholes[2] + unit) * cell;
    }
    Vector candidate = apply(t.functions[1], gate_sum(t, group, 4, 3));
    cell = apply(t.functions[0], forget) * cell + apply(t.functions[0], input) * candidate;
    if (t.peepholes[0]) output += load(t.peepholes[1] + unit) * cell;
    store(t.cell + unit, cell);
    store(t.after + unit, apply(t.functions[0], output) * apply(t.functions[2], cell));
  }
}

}  // namespace
}  // namespace selkie::kernels
