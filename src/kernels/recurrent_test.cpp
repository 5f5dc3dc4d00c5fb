// RNN, GRU and LSTM against ONNX's formulas in double: all kinds, directions, layouts, lengths and sizes.
#include "kernels/recurrent.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/test_support.h"

namespace selkie::kernels {
namespace {

using namespace testing;

constexpr float untouched = 12345.0f;

struct Case {
  RecurrentKind kind = RecurrentKind::lstm;
  int64_t steps = 3;
  int64_t batch = 1;
  int64_t input = 3;
  int64_t hidden = 5;
  int64_t directions = 1;
  bool reversed = false;  // the first direction
  bool linear_before_reset = false;
  bool batch_first = false;
  bool lengths = false;
  bool initial = true;
  bool bias = true;
  bool peepholes = false;
  std::vector<std::string_view> activations = {};
  int threads = 1;
};

int64_t gates(RecurrentKind kind) { return kind == RecurrentKind::lstm ? 4 : kind == RecurrentKind::gru ? 3 : 1; }

double exact(Function function, double x) {
  if (function == Function::sigmoid) return 1 / (1 + std::exp(-x));
  return function == Function::tanh ? std::tanh(x) : std::max(x, 0.0);
}

struct Buffers {
  Guarded x, w, r, bias, peepholes, h, c, y, y_h, y_c;
  std::vector<int32_t> lengths;

  Buffers(const Case& t, Random& random)
      : x(t.steps * t.batch * t.input, random),
        w(t.directions * gates(t.kind) * t.hidden * t.input, random),
        r(t.directions * gates(t.kind) * t.hidden * t.hidden, random),
        bias(t.directions * 2 * gates(t.kind) * t.hidden, random),
        peepholes(t.directions * 3 * t.hidden, random),
        h(t.directions * t.batch * t.hidden, random),
        c(t.directions * t.batch * t.hidden, random),
        y(t.steps * t.directions * t.batch * t.hidden),
        y_h(t.directions * t.batch * t.hidden),
        y_c(t.directions * t.batch * t.hidden) {
    for (Guarded* result : {&y, &y_h, &y_c}) result->fill(untouched);
    for (int64_t row = 0; row < t.batch; ++row)
      lengths.push_back(static_cast<int32_t>(t.lengths ? pick(random, 0, t.steps) : t.steps));
    // States stay of one size however many units there are.
    for (int64_t i = 0; i < r.size(); ++i) r[i] /= std::sqrt(static_cast<float>(t.hidden));
  }
};

// One sequence of one direction; `at` says where it begins in states.
class Reference {
 public:
  Reference(const Case& t, const Buffers& b, const RecurrentFunctions& f, int64_t direction, int64_t at)
      : t_(t), b_(b), f_(f), direction_(direction) {
    for (int64_t i = 0; i < t.hidden; ++i) {
      h.push_back(t.initial ? b.h[at + i] : 0.0);
      c.push_back(t.initial ? b.c[at + i] : 0.0);
    }
  }

  void step(const float* x) {
    std::vector<double> old = h;
    if (t_.kind == RecurrentKind::rnn)
      for (int64_t i = 0; i < t_.hidden; ++i) set(h, i, exact(f_[0], from_x(x, 0, i) + from_h(old, 0, i)));
    if (t_.kind == RecurrentKind::lstm)
      for (int64_t i = 0; i < t_.hidden; ++i) lstm(x, old, i);
    if (t_.kind == RecurrentKind::gru) gru(x, old);
  }

  std::vector<double> h;
  std::vector<double> c;

 private:
  static void set(std::vector<double>& v, int64_t i, double value) { v[static_cast<size_t>(i)] = value; }
  int64_t row(int64_t gate, int64_t i) const { return (direction_ * gates(t_.kind) + gate) * t_.hidden + i; }
  double bias(int64_t half, int64_t gate, int64_t i) const {
    int64_t all = gates(t_.kind) * t_.hidden;
    return t_.bias ? b_.bias[(direction_ * 2 + half) * all + gate * t_.hidden + i] : 0.0f;
  }
  double from_x(const float* x, int64_t gate, int64_t i) const {
    double sum = bias(0, gate, i);
    for (int64_t d = 0; d < t_.input; ++d) sum += static_cast<double>(x[d]) * b_.w[row(gate, i) * t_.input + d];
    return sum;
  }
  double from_h(const std::vector<double>& state, int64_t gate, int64_t i) const {
    double sum = bias(1, gate, i);
    for (int64_t d = 0; d < t_.hidden; ++d) sum += state[static_cast<size_t>(d)] * b_.r[row(gate, i) * t_.hidden + d];
    return sum;
  }
  double peephole(int64_t which, int64_t i) const {
    return t_.peepholes ? b_.peepholes[(direction_ * 3 + which) * t_.hidden + i] : 0.0f;
  }
  void lstm(const float* x, const std::vector<double>& old, int64_t i) {
    auto sum = [&](int64_t gate) { return from_x(x, gate, i) + from_h(old, gate, i); };
    double before = c[static_cast<size_t>(i)];
    double input = exact(f_[0], sum(0) + peephole(0, i) * before);
    double forget = exact(f_[0], sum(2) + peephole(2, i) * before);
    double now = forget * before + input * exact(f_[1], sum(3));
    set(c, i, now);
    set(h, i, exact(f_[0], sum(1) + peephole(1, i) * now) * exact(f_[2], now));
  }
  void gru(const float* x, const std::vector<double>& old) {
    std::vector<double> reset = old;
    auto gate = [&](int64_t which, int64_t i) { return exact(f_[0], from_x(x, which, i) + from_h(old, which, i)); };
    for (int64_t i = 0; i < t_.hidden; ++i) reset[static_cast<size_t>(i)] *= gate(1, i);
    for (int64_t i = 0; i < t_.hidden; ++i) {
      double product = t_.linear_before_reset ? gate(1, i) * from_h(old, 2, i) : from_h(reset, 2, i);
      double update = gate(0, i);
      set(h, i, (1 - update) * exact(f_[1], from_x(x, 2, i) + product) + update * old[static_cast<size_t>(i)]);
    }
  }

  const Case& t_;
  const Buffers& b_;
  RecurrentFunctions f_;
  int64_t direction_;
};

Recurrent problem_of(const Case& t, Buffers& b, const float* packed) {
  std::string_view why_not;
  auto functions =
      serves({.kind = t.kind, .directions = static_cast<int>(t.directions), .activations = t.activations}, &why_not);
  CHECK(functions.has_value(), "{}", why_not);
  Recurrent recurrent{.shape = {.kind = t.kind,
                                .steps = t.steps,
                                .batch = t.batch,
                                .input = t.input,
                                .hidden = t.hidden,
                                .directions = t.directions,
                                .linear_before_reset = t.linear_before_reset},
                      .functions = *functions,
                      .reversed = {t.reversed, true},
                      .packed = packed,
                      .peepholes = t.peepholes,
                      .x = b.x.data(),
                      .batch_first = t.batch_first,
                      .lengths = t.lengths ? b.lengths.data() : nullptr,
                      .initial_h = t.initial ? b.h.data() : nullptr,
                      .initial_c = t.initial ? b.c.data() : nullptr,
                      .y = b.y.data(),
                      .y_step_stride = t.directions * t.batch * t.hidden,
                      .y_strides = {.direction = t.batch * t.hidden, .batch = t.hidden},
                      .y_h = b.y_h.data(),
                      .y_c = b.y_c.data(),
                      .state_strides = {.direction = t.batch * t.hidden, .batch = t.hidden}};
  if (t.batch_first) {
    recurrent.y_step_stride = t.directions * t.hidden;
    recurrent.y_strides = {.direction = t.hidden, .batch = t.steps * t.directions * t.hidden};
    recurrent.state_strides = {.direction = t.hidden, .batch = t.directions * t.hidden};
  }
  return recurrent;
}

void compare_sequence(const Case& t, const Buffers& b, const Recurrent& recurrent, int64_t direction, int64_t row) {
  int64_t at = direction * recurrent.state_strides.direction + row * recurrent.state_strides.batch;
  int64_t y_at = direction * recurrent.y_strides.direction + row * recurrent.y_strides.batch;
  Reference reference(t, b, recurrent.functions[static_cast<size_t>(direction)], direction, at);
  bool reversed = recurrent.reversed[static_cast<size_t>(direction)];
  int64_t length = b.lengths[static_cast<size_t>(row)];
  for (int64_t step = 0; step < t.steps; ++step) {
    int64_t time = step >= length ? step : reversed ? length - 1 - step : step;
    int64_t x_row = t.batch_first ? row * t.steps + time : time * t.batch + row;
    if (step < length) reference.step(b.x.data() + x_row * t.input);
    for (int64_t i = 0; i < t.hidden; ++i) {
      double want = step < length ? reference.h[static_cast<size_t>(i)] : 0.0;
      ASSERT_NEAR(b.y[time * recurrent.y_step_stride + y_at + i], want, 3e-5)
          << "direction " << direction << " row " << row << " step " << step << " unit " << i;
    }
  }
  for (int64_t i = 0; i < t.hidden; ++i) {
    ASSERT_NEAR(b.y_h[at + i], reference.h[static_cast<size_t>(i)], 3e-5) << direction << " " << row << " " << i;
    if (t.kind == RecurrentKind::lstm)
      ASSERT_NEAR(b.y_c[at + i], reference.c[static_cast<size_t>(i)], 3e-5) << direction << " " << row << " " << i;
  }
}

void check(const KernelTable& table, const Case& t, Random& random) {
  SCOPED_TRACE(fmt::format("{} kind {} steps {} batch {} {}->{} directions {} threads {}", table.name,
                           static_cast<int>(t.kind), t.steps, t.batch, t.input, t.hidden, t.directions, t.threads));
  Buffers b(t, random);
  RecurrentShape shape{.kind = t.kind,
                       .input = t.input,
                       .hidden = t.hidden,
                       .directions = t.directions,
                       .linear_before_reset = t.linear_before_reset};
  Guarded packed(static_cast<int64_t>(packed_recurrent_elements(table, shape)));
  pack_recurrent(table, shape,
                 {.w = b.w.data(),
                  .r = b.r.data(),
                  .bias = t.bias ? b.bias.data() : nullptr,
                  .peepholes = t.peepholes ? b.peepholes.data() : nullptr},
                 packed.data());
  Recurrent recurrent = problem_of(t, b, packed.data());
  RecurrentPlan plan = plan_recurrent(table, recurrent, t.threads);
  TestScratch memory(plan.memory_bytes);
  // Backwards and one at a time: tasks of a stage may not depend on each other.
  for (int64_t stage = 0; stage < plan.stages(); ++stage)
    for (int64_t task = plan.tasks(stage); task-- > 0;) {
      TestScratch scratch(plan.scratch_bytes);
      run_recurrent_stage(table, recurrent, plan, stage, task, task + 1, memory.data(), scratch.data());
    }
  for (int64_t direction = 0; direction < t.directions; ++direction)
    for (int64_t row = 0; row < t.batch; ++row) compare_sequence(t, b, recurrent, direction, row);
}

constexpr RecurrentKind kinds[] = {RecurrentKind::rnn, RecurrentKind::gru, RecurrentKind::lstm};

TEST(Recurrent, EverySize) {
  Random random(1);
  for (const KernelTable* table : tested_tables())
    for (RecurrentKind kind : kinds)
      for (bool linear : {false, true})
        for (int64_t hidden : {0, 1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 40})
          for (int64_t batch : {1, 2, 13})
            check(*table,
                  {.kind = kind,
                   .batch = batch,
                   .input = 1 + hidden % 6,
                   .hidden = hidden,
                   .linear_before_reset = linear},
                  random);
}

TEST(Recurrent, EmptySizes) {
  Random random(2);
  for (const KernelTable* table : tested_tables())
    for (RecurrentKind kind : kinds) {
      check(*table, {.kind = kind, .steps = 0, .batch = 2, .directions = 2}, random);
      check(*table, {.kind = kind, .batch = 0}, random);
      check(*table, {.kind = kind, .input = 0}, random);
    }
}

TEST(Recurrent, DirectionsLengthsAndLayouts) {
  Random random(3);
  for (const KernelTable* table : tested_tables())
    for (RecurrentKind kind : kinds)
      for (int form = 0; form < 32; ++form)
        for (int64_t batch : {1, 7, 100})
          check(*table,
                {.kind = kind,
                 .steps = 6,
                 .batch = batch,
                 .hidden = 11,
                 .directions = form & 1 ? 2 : 1,
                 .reversed = (form & 3) == 2,
                 .batch_first = (form & 4) != 0,
                 .lengths = (form & 8) != 0,
                 .initial = (form & 16) != 0,
                 .bias = (form & 16) == 0,
                 .peepholes = kind == RecurrentKind::lstm && batch == 7},
                random);
}

TEST(Recurrent, Activations) {
  Random random(4);
  for (const KernelTable* table : tested_tables()) {
    check(*table, {.kind = RecurrentKind::rnn, .activations = {"Relu"}}, random);
    check(*table, {.kind = RecurrentKind::rnn, .activations = {"sigmoid"}}, random);
    check(*table, {.kind = RecurrentKind::gru, .activations = {"Sigmoid", "Relu"}}, random);
    check(*table,
          {.kind = RecurrentKind::lstm,
           .directions = 2,
           .activations = {"Tanh", "Sigmoid", "Relu", "Sigmoid", "Relu", "Tanh"}},
          random);
  }
}

// Several tasks, and several pieces of a task where the batch is large.
TEST(Recurrent, LargeStatesAndThreads) {
  Random random(5);
  for (const KernelTable* table : tested_tables())
    for (RecurrentKind kind : kinds)
      for (int threads : {1, 2, 5})
        for (int64_t hidden : {256, 331})
          check(*table,
                {.kind = kind,
                 .steps = 4,
                 .batch = threads == 5 ? 1 : 31,
                 .input = 40,
                 .hidden = hidden,
                 .directions = threads == 2 ? 2 : 1,
                 .threads = threads},
                random);
}

TEST(Recurrent, StepsOfLargeLayersAreCutForThreads) {
  const KernelTable& kernels = table(best_isa());
  Recurrent recurrent{.shape = {.steps = 8, .input = 300, .hidden = 512}, .packed = reinterpret_cast<float*>(64)};
  EXPECT_EQ(plan_recurrent(kernels, recurrent, 1).tasks_of_direction, 1);
  EXPECT_EQ(plan_recurrent(kernels, recurrent, 4).tasks_of_direction, 4);
  recurrent.shape.hidden = 32;
  EXPECT_EQ(plan_recurrent(kernels, recurrent, 4).tasks_of_direction, 1);
}

TEST(Recurrent, RefusesWhatItDoesNotServe) {
  std::string_view why_not;
  const std::string_view elu[] = {"Elu"};
  EXPECT_FALSE(serves({.kind = RecurrentKind::rnn, .activations = elu}, &why_not));
  EXPECT_NE(why_not.find("Sigmoid"), std::string_view::npos);
  EXPECT_FALSE(serves({.clipped = true}, &why_not));
  EXPECT_NE(why_not.find("clipped"), std::string_view::npos);
  EXPECT_FALSE(serves({.input_forget = true}, nullptr));
  const std::string_view few[] = {"Tanh"};
  EXPECT_FALSE(serves({.kind = RecurrentKind::gru, .activations = few}, nullptr));
  EXPECT_TRUE(serves({.kind = RecurrentKind::lstm, .directions = 2}, nullptr));
}

}  // namespace
}  // namespace selkie::kernels
