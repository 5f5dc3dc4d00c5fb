#include "ops/support/rnn.h"

#include <algorithm>

#include "base/convert.h"
#include "ops/support/gemm.h"
#include "ops/support/rnn_activations.h"
#include "ops/support/shape.h"
#include "ops/support/zeros.h"

namespace selkie::ops {
namespace {

struct Sizes {
  int64_t steps;
  int64_t batch;
  int64_t input;
  int64_t hidden;
  int64_t gates;  // gates · hidden
};

// One direction's parameters, weights transposed for row-major products.
struct Direction {
  std::vector<double> w;  // [input, gates]
  std::vector<double> r;  // [hidden, gates]
  std::vector<double> wb;
  std::vector<double> rb;
  std::vector<double> p;
  std::span<const std::function<double(double)>> f;
  bool reverse;
};

// What one row's step sees: the input's and the state's share of the gates, and the state to update.
struct Row {
  const double* x;
  const double* s;
  double* h;
  double* c;
};

double activate(const RnnOptions& o, const Direction& d, size_t which, double x) {
  return d.f[which](o.clip ? std::clamp(x, -*o.clip, *o.clip) : x);
}

void step_rnn(const RnnOptions& o, const Direction& d, int64_t n, const Row& row) {
  for (int64_t j = 0; j < n; ++j) row.h[j] = activate(o, d, 0, row.x[j] + row.s[j]);
}

void step_gru(const RnnOptions& o, const Direction& d, int64_t n, const Row& row) {
  auto size = static_cast<size_t>(n);
  std::vector<double> r(size), candidate(size);
  for (int64_t j = 0; j < n; ++j) r[static_cast<size_t>(j)] = activate(o, d, 0, row.x[n + j] + row.s[n + j]);
  if (o.linear_before_reset) {
    for (int64_t j = 0; j < n; ++j) candidate[static_cast<size_t>(j)] = r[static_cast<size_t>(j)] * row.s[2 * n + j];
  } else {
    for (int64_t j = 0; j < n; ++j) candidate[static_cast<size_t>(j)] = d.rb[static_cast<size_t>(2 * n + j)];
    for (int64_t k = 0; k < n; ++k) {
      double x = r[static_cast<size_t>(k)] * row.h[k];
      const double* weights = d.r.data() + k * 3 * n + 2 * n;
      for (int64_t j = 0; j < n; ++j) candidate[static_cast<size_t>(j)] += x * weights[j];
    }
  }
  for (int64_t j = 0; j < n; ++j) {
    double z = activate(o, d, 0, row.x[j] + row.s[j]);
    row.h[j] = (1 - z) * activate(o, d, 1, row.x[2 * n + j] + candidate[static_cast<size_t>(j)]) + z * row.h[j];
  }
}

void step_lstm(const RnnOptions& o, const Direction& d, int64_t n, const Row& row) {
  auto peephole = [&](int64_t gate, int64_t j) { return d.p.empty() ? 0 : d.p[static_cast<size_t>(gate * n + j)]; };
  for (int64_t j = 0; j < n; ++j) {
    auto gate = [&](int64_t g) { return row.x[g * n + j] + row.s[g * n + j]; };
    double before = row.c[j];
    double i = activate(o, d, 0, gate(0) + peephole(0, j) * before);
    double f = o.input_forget ? 1 - i : activate(o, d, 0, gate(2) + peephole(2, j) * before);
    row.c[j] = f * before + i * activate(o, d, 1, gate(3));
    row.h[j] = activate(o, d, 0, gate(1) + peephole(1, j) * row.c[j]) * activate(o, d, 2, row.c[j]);
  }
}

void add_bias(std::vector<double>& rows, const std::vector<double>& bias) {
  for (size_t i = 0; i < rows.size(); ++i) rows[i] += bias[i % bias.size()];
}

// Runs one direction over x [steps, batch, input]; h and c [batch, hidden] are the state; y [steps, directions, batch,
// hidden].
void run_direction(const RnnOptions& o, const Direction& d, const Sizes& n, const std::vector<int64_t>& lengths,
                   std::vector<double> x, double* h, double* c, double* y, int64_t y_step) {
  if (o.prepare) o.prepare(x);
  std::vector<double> from_x = zeros<double>({n.steps, n.batch, n.gates});
  gemm(x.data(), d.w.data(), from_x.data(), n.steps * n.batch, n.gates, n.input);
  add_bias(from_x, d.wb);
  std::vector<double> from_h(static_cast<size_t>(n.batch * n.gates));
  auto step = o.cell == RnnCell::rnn ? step_rnn : o.cell == RnnCell::gru ? step_gru : step_lstm;
  for (int64_t s = 0; s < n.steps; ++s) {
    std::vector<double> state(h, h + n.batch * n.hidden);
    if (o.prepare) o.prepare(state);
    gemm(state.data(), d.r.data(), from_h.data(), n.batch, n.gates, n.hidden);
    add_bias(from_h, d.rb);
    for (int64_t b = 0; b < n.batch; ++b) {
      int64_t length = lengths[static_cast<size_t>(b)];
      if (s >= length) continue;
      int64_t t = d.reverse ? length - 1 - s : s;
      double* own = h + b * n.hidden;
      step(o, d, n.hidden,
           {from_x.data() + (t * n.batch + b) * n.gates, from_h.data() + b * n.gates, own, c + b * n.hidden});
      std::copy_n(own, n.hidden, y + t * y_step + b * n.hidden);
    }
  }
}

std::vector<double> transposed_part(const Tensor& t, int64_t part) {
  Tensor matrix = slice_axis(t, 0, part, 1).reshaped({t.dim(1), t.dim(2)});
  return widen<double>(transpose(matrix, std::vector<int64_t>{1, 0}));
}

Direction direction(const RnnOptions& o, const RnnOperands& in, const Sizes& n, int64_t part) {
  Direction d{.w = transposed_part(*in.w, part),
              .r = transposed_part(*in.r, part),
              .wb = {},
              .rb = {},
              .p = {},
              .f = {},
              .reverse = o.reverse && (part == 1 || !o.forward)};
  auto gates = static_cast<size_t>(n.gates);
  d.wb.resize(std::max<size_t>(gates, 1));
  d.rb.resize(std::max<size_t>(gates, 1));
  if (in.b != nullptr) {
    std::vector<double> both = widen<double>(slice_axis(*in.b, 0, part, 1));
    d.wb.assign(both.begin(), both.begin() + n.gates);
    d.rb.assign(both.begin() + n.gates, both.end());
  }
  if (in.p != nullptr) d.p = widen<double>(slice_axis(*in.p, 0, part, 1));
  size_t each = o.activations.size() / static_cast<size_t>(o.directions());
  d.f = std::span(o.activations).subspan(static_cast<size_t>(part) * each, each);
  return d;
}

void expect_shape(const Tensor* t, const Dims& dims, std::string_view what) {
  if (t != nullptr && t->dims() != dims)
    fail("{} has shape {}, but must have {}", what, to_string(t->dims()), to_string(dims));
}

Sizes sizes_of(const RnnOptions& o, const RnnOperands& in) {
  if (in.x->rank() != 3 || in.w->rank() != 3 || in.r->rank() != 3) fail("X, W and R must be of rank 3");
  Sizes n{in.x->dim(o.batch_first ? 1 : 0), in.x->dim(o.batch_first ? 0 : 1), in.x->dim(2), in.r->dim(2), 0};
  if (o.hidden_size && *o.hidden_size != n.hidden)
    fail("'hidden_size' is {}, but R has shape {}", *o.hidden_size, to_string(in.r->dims()));
  n.gates = gate_count(o.cell) * n.hidden;
  int64_t directions = o.directions();
  Dims state = o.batch_first ? Dims{n.batch, directions, n.hidden} : Dims{directions, n.batch, n.hidden};
  expect_shape(in.w, {directions, n.gates, n.input}, "W");
  expect_shape(in.r, {directions, n.gates, n.hidden}, "R");
  expect_shape(in.b, {directions, 2 * n.gates}, "B");
  expect_shape(in.sequence_lens, {n.batch}, "sequence_lens");
  expect_shape(in.initial_h, state, "initial_h");
  expect_shape(in.initial_c, state, "initial_c");
  expect_shape(in.p, {directions, 3 * n.hidden}, "P");
  return n;
}

std::vector<int64_t> lengths_of(const RnnOperands& in, const Sizes& n) {
  if (in.sequence_lens == nullptr) return std::vector<int64_t>(static_cast<size_t>(n.batch), n.steps);
  std::vector<int64_t> lengths = ints_of(*in.sequence_lens);
  for (int64_t length : lengths)
    if (length < 0 || length > n.steps) fail("a sequence length is {}, but there are {} steps", length, n.steps);
  return lengths;
}

}  // namespace

int64_t gate_count(RnnCell cell) { return cell == RnnCell::rnn ? 1 : cell == RnnCell::gru ? 3 : 4; }

RnnOptions rnn_options(const ir::EvalContext& e, RnnCell cell) {
  RnnOptions o{.cell = cell, .clip = std::nullopt, .hidden_size = std::nullopt, .activations = {}, .prepare = {}};
  const std::string& direction = e.attr_string("direction");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    fail("'direction' is '{}', but must be forward, reverse or bidirectional", direction);
  o.forward = direction != "reverse";
  o.reverse = direction != "forward";
  auto has = [&](std::string_view name) { return e.op().find_attr(name) != nullptr && e.has_attr(name); };
  auto flag = [&](std::string_view name) { return has(name) && e.attr_int(name) != 0; };
  o.batch_first = flag("layout");
  o.linear_before_reset = flag("linear_before_reset");
  o.input_forget = flag("input_forget");
  if (has("clip")) o.clip = e.attr_float("clip");
  if (o.clip && !(*o.clip >= 0)) fail("'clip' is {}, but must not be negative", *o.clip);
  if (has("hidden_size")) o.hidden_size = e.attr_int("hidden_size");
  std::vector<std::string> defaults = cell == RnnCell::rnn   ? std::vector<std::string>{"Tanh"}
                                      : cell == RnnCell::gru ? std::vector<std::string>{"Sigmoid", "Tanh"}
                                                             : std::vector<std::string>{"Sigmoid", "Tanh", "Tanh"};
  if (o.directions() == 2) {
    std::vector<std::string> once = defaults;
    defaults.insert(defaults.end(), once.begin(), once.end());
  }
  std::vector<std::string> names = has("activations") ? e.attr<std::vector<std::string>>("activations") : defaults;
  // RNN's default names two functions for either number of directions.
  if (cell == RnnCell::rnn && names.size() == 2 && o.directions() == 1) names.pop_back();
  if (names.size() != defaults.size())
    fail("'activations' has {} names, but {} are needed", names.size(), defaults.size());
  auto reals = [&](std::string_view name) {
    return has(name) ? e.attr<std::vector<float>>(name) : std::vector<float>{};
  };
  o.activations = rnn_activations(names, reals("activation_alpha"), reals("activation_beta"));
  return o;
}

RnnResults run_rnn(const RnnOptions& o, const RnnOperands& in) {
  Sizes n = sizes_of(o, in);
  std::vector<int64_t> lengths = lengths_of(in, n);
  int64_t directions = o.directions();
  const std::vector<int64_t> swap{1, 0, 2};
  auto time_first = [&](const Tensor& t) { return widen<double>(o.batch_first ? transpose(t, swap) : t); };
  Dims state_dims{directions, n.batch, n.hidden};
  auto state = [&](const Tensor* t) {
    return t != nullptr ? time_first(*t) : std::vector<double>(static_cast<size_t>(element_count(state_dims)));
  };
  std::vector<double> x = time_first(*in.x);
  std::vector<double> h = state(in.initial_h);
  std::vector<double> c = state(in.initial_c);
  Dims y_dims{n.steps, directions, n.batch, n.hidden};
  std::vector<double> y = zeros<double>(y_dims);
  int64_t part = n.batch * n.hidden;
  for (int64_t i = 0; i < directions; ++i)
    run_direction(o, direction(o, in, n, i), n, lengths, x, h.data() + i * part, c.data() + i * part,
                  y.empty() ? nullptr : y.data() + i * part, directions * part);
  auto result = [&](const std::vector<double>& values, const Dims& dims, std::vector<int64_t> order) {
    Tensor t = narrow<double>(values, in.x->dtype(), dims);
    return o.batch_first ? transpose(t, order) : t;
  };
  return {result(y, y_dims, {2, 0, 1, 3}), result(h, state_dims, swap),
          o.cell == RnnCell::lstm ? result(c, state_dims, swap) : Tensor()};
}

}  // namespace selkie::ops
