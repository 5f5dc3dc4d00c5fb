// RNN, GRU and LSTM: one recurrent layer over a batch of sequences.
#include "ops/support/rnn.h"

#include <algorithm>
#include <cctype>

#include "ops/support/lower.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

constexpr TypeVar length_type{"T1", DTypeSet{DType::i32}};

void eval(RnnCell cell, EvalContext& e) {
  auto operand = [&](size_t i) { return e.has(i) ? &e.tensor(i) : nullptr; };
  RnnResults results = run_rnn(rnn_options(e, cell), {.x = operand(0),
                                                      .w = operand(1),
                                                      .r = operand(2),
                                                      .b = operand(3),
                                                      .sequence_lens = operand(4),
                                                      .initial_h = operand(5),
                                                      .initial_c = operand(6),
                                                      .p = operand(7)});
  e.set(0, results.y);
  e.set(1, results.y_h);
  if (cell == RnnCell::lstm) e.set(2, results.y_c);
}

int64_t direction_count(const ir::ShapeContext& c) {
  const std::string& direction = c.attr_string("direction");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    fail("'direction' is '{}', but must be forward, reverse or bidirectional", direction);
  return direction == "bidirectional" ? 2 : 1;
}

// From the attribute, or the weights; null where neither tells.
sym::Expr hidden_size(RnnCell cell, const ir::ShapeContext& c) {
  if (const ir::Attribute* given = c.find_attr("hidden_size")) {
    if (std::get<int64_t>(*given) < 0) fail("'hidden_size' is {}", std::get<int64_t>(*given));
    return c.constant(std::get<int64_t>(*given));
  }
  if (c.dims(2) && c.rank(2) == 3) return c.dims(2)->at(2);
  if (c.dims(1) && c.rank(1) == 3) return sym::floordiv(c.dims(1)->at(1), gate_count(cell));
  return {};
}

std::vector<Type> forward(RnnCell cell, const ForwardContext& c) {
  bool batch_first = c.attr_int("layout") != 0;
  bool known = c.dims(0) && c.rank(0) == 3;
  sym::Expr steps = known ? c.dims(0)->at(batch_first ? 1 : 0) : c.unknown(0, batch_first ? 1 : 0);
  sym::Expr batch = known ? c.dims(0)->at(batch_first ? 0 : 1) : c.unknown(0, batch_first ? 0 : 2);
  sym::Expr directions = c.constant(direction_count(c));
  sym::Expr hidden = hidden_size(cell, c);
  if (!hidden) hidden = c.unknown(0, 3);
  Type y = Type::tensor(
      c.dtype(0), batch_first ? SymDims{batch, steps, directions, hidden} : SymDims{steps, directions, batch, hidden});
  Type state =
      Type::tensor(c.dtype(0), batch_first ? SymDims{batch, directions, hidden} : SymDims{directions, batch, hidden});
  return {y, state, state};
}

void backward(RnnCell cell, BackwardContext& c) {
  c.set_rank(0, 3);
  c.set_rank(2, 3);
  bool batch_first = c.attr_int("layout") != 0;
  const SymDims x = *c.dims(0);
  sym::Expr batch = x[batch_first ? 0 : 1];
  sym::Expr directions = c.constant(direction_count(c));
  sym::Expr hidden = hidden_size(cell, c);
  sym::Expr gates = hidden * gate_count(cell);
  SymDims state = batch_first ? SymDims{batch, directions, hidden} : SymDims{directions, batch, hidden};
  c.set_dims(1, SymDims{directions, gates, x[2]});
  c.set_dims(2, SymDims{directions, gates, hidden});
  c.set_dims(3, SymDims{directions, gates * 2});
  c.set_dims(4, SymDims{batch});
  c.set_dims(5, state);
  c.set_dims(6, state);
  c.set_dims(7, SymDims{directions, hidden * 3});
}

// What kernels serve; other layers run on the host.
void lower(RnnCell cell, LowerContext& c) {
  using Cell = ir::RecurrentForm::Cell;
  const std::string& direction = c.attr_string("direction");
  if (c.dtype(0) != DType::f32) c.refuse("of such a dtype");
  if (c.find_attr("clip") || (cell == RnnCell::lstm && c.attr_int("input_forget") != 0))
    c.refuse("with clip or input_forget");
  ir::RecurrentForm form{.cell = cell == RnnCell::rnn   ? Cell::rnn
                                 : cell == RnnCell::gru ? Cell::gru
                                                        : Cell::lstm,
                         .directions = direction_count(c),
                         .reversed = direction == "reverse",
                         .activations = {},
                         .linear_before_reset = cell == RnnCell::gru && c.attr_int("linear_before_reset") != 0,
                         .batch_first = c.attr_int("layout") != 0};
  if (const ir::Attribute* given = c.find_attr("activations")) {
    form.activations = std::get<std::vector<std::string>>(*given);
    for (std::string& name : form.activations) {
      std::ranges::transform(name, name.begin(), [](unsigned char letter) { return std::tolower(letter); });
      if (name != "sigmoid" && name != "tanh" && name != "relu") c.refuse("with activation " + name);
    }
  }
  c.set_recurrent(std::move(form));
}

OpDef base(RnnCell cell) {
  return {
      .name = {},
      .onnx = {},
      .doc = {},
      .operands = {{"x", float_tensor},
                   {"w", float_tensor},
                   {"r", float_tensor},
                   {"b", float_tensor, optional},
                   {"sequence_lens", length_type, optional},
                   {"initial_h", float_tensor, optional}},
      .results = {{"y", float_tensor, optional}, {"y_h", float_tensor, optional}},
      .attrs = {optional_attr("activation_alpha", AttrKind::reals), optional_attr("activation_beta", AttrKind::reals),
                optional_attr("activations", AttrKind::texts), optional_attr("clip", AttrKind::real),
                string_attr("direction", "forward"), optional_attr("hidden_size", AttrKind::integer),
                int_attr("layout", 0)},
      .dynamism = isdos(),
      .mapping = Mapping::many_to_many,
      .forward = [cell](const ForwardContext& c) { return forward(cell, c); },
      .backward = [cell](BackwardContext& c) { backward(cell, c); },
      .value = absent("recurrent layers do not occur in shape arithmetic"),
      .eval = [cell](EvalContext& e) { eval(cell, e); },
      .lower = [cell](LowerContext& c) { lower(cell, c); },
      .grad = later::training,
      .upgrades = {{7, drop_attrs({"output_sequence"})}},
      .samples = {},
  };
}

OpDef rnn() {
  OpDef op = base(RnnCell::rnn);
  op.name = "rnn";
  op.onnx = {"", "RNN", {1, 7, 14, 22}};
  op.doc = "h = f(x·Wᵀ + h·Rᵀ + b), step by step";
  op.samples = {
      {"$(f32[3, 2, 4], f32[1, 5, 4], f32[1, 5, 5])", "f32[3, 1, 2, 5], f32[1, 2, 5]"},
      {"$(f32[2, 1, 1]{1, 2}, f32[1, 1, 1]{2}, f32[1, 1, 1]{1}, f32[1, 2]{3, 1}) {activations = [\"Relu\"]}",
       "f32[2, 1, 1, 1]{6, 14}, f32[1, 1, 1]{14}"},
      {"$(f32[2, 3, 4], f32[2, 5, 4], f32[2, 5, 5], _, i32[2]{3, 1}) {direction = \"bidirectional\", layout = 1}",
       "f32[2, 3, 2, 5], f32[2, 2, 5]"},
      {"$(f32[0, 2, 4], f32[1, 5, 4], f32[1, 5, 5])", "f32[0, 1, 2, 5], f32[1, 2, 5]"},
      {"$(f32[3, 2, 4], f32[1, 5, 3], f32[1, 5, 5])", "error: W has shape [1, 5, 3]"},
      {"$(f32[3, 2, 4], f32[1, 5, 4], f32[1, 5, 5]) {activations = [\"Cube\"]}", "error: no activation 'cube'"}};
  return op;
}

OpDef gru() {
  OpDef op = base(RnnCell::gru);
  op.name = "gru";
  op.onnx = {"", "GRU", {1, 3, 7, 14, 22}};
  op.doc = "gated recurrent unit: update and reset gates over one hidden state";
  op.attrs.push_back(int_attr("linear_before_reset", 0));
  // Opset 1's default was spelled "foward".
  op.upgrades = {{3, set_default("direction", std::string("forward"))}, {7, drop_attrs({"output_sequence"})}};
  op.samples = {
      {"$(f32[3, 2, 4], f32[1, 15, 4], f32[1, 15, 5])", "f32[3, 1, 2, 5], f32[1, 2, 5]"},
      {"$(f32[1, 1, 1]{1}, f32[1, 3, 1]{0, 0, 4}, f32[1, 3, 1]{0, 0, 2}, _, _, f32[1, 1, 1]{8}) "
       "{activations = [\"Sigmoid\", \"Relu\"]}",
       "f32[1, 1, 1, 1]{10}, f32[1, 1, 1]{10}"},
      {"$(f32[3, 2, 4], f32[1, 15, 4], f32[1, 15, 5], f32[1, 30]) {linear_before_reset = 1, direction = \"reverse\"}",
       "f32[3, 1, 2, 5], f32[1, 2, 5]"},
      {"$(f32[3, 2, 4], f32[1, 15, 4], f32[1, 15, 5], _, i32[2]{3, 1})", "f32[3, 1, 2, 5], f32[1, 2, 5]"},
      {"$(f32[3, 0, 4], f32[1, 15, 4], f32[1, 15, 5])", "f32[3, 1, 0, 5], f32[1, 0, 5]"},
      {"$(f32[3, 2, 4], f32[1, 15, 4], f32[1, 15, 5]) {direction = \"up\"}", "error: 'direction' is 'up'"}};
  return op;
}

OpDef lstm() {
  OpDef op = base(RnnCell::lstm);
  op.name = "lstm";
  op.onnx = {"", "LSTM", {1, 7, 14, 22}};
  op.doc = "long short-term memory: input, output and forget gates over a hidden and a cell state";
  op.operands.push_back({"initial_c", float_tensor, optional});
  op.operands.push_back({"p", float_tensor, optional});
  op.results.push_back({"y_c", float_tensor, optional});
  op.attrs.push_back(int_attr("input_forget", 0));
  op.samples = {{"$(f32[3, 2, 4], f32[1, 20, 4], f32[1, 20, 5])", "f32[3, 1, 2, 5], f32[1, 2, 5], f32[1, 2, 5]"},
                {"$(f32[1, 1, 1]{1}, f32[1, 4, 1]{0, 0, 0, 4}, f32[1, 4, 1]{0, 0, 0, 0}, _, _, _, f32[1, 1, 1]{2}) "
                 "{activations = [\"Sigmoid\", \"Relu\", \"Relu\"]}",
                 "f32[1, 1, 1, 1]{1.5}, f32[1, 1, 1]{1.5}, f32[1, 1, 1]{3}"},
                {"$(f32[3, 2, 4], f32[2, 20, 4], f32[2, 20, 5], f32[2, 40], i32[2]{3, 0}, _, _, f32[2, 15]) "
                 "{direction = \"bidirectional\", clip = 0.5, input_forget = 1}",
                 "f32[3, 2, 2, 5], f32[2, 2, 5], f32[2, 2, 5]"},
                {"$(f32[2, 3, 4], f32[2, 20, 4], f32[2, 20, 5], _, _, f32[2, 2, 5], f32[2, 2, 5]) {direction = "
                 "\"bidirectional\", layout = 1, hidden_size = 5}",
                 "f32[2, 3, 2, 5], f32[2, 2, 5], f32[2, 2, 5]"},
                {"$(f32[3, 1, 4], f32[1, 0, 4], f32[1, 0, 0])", "f32[3, 1, 1, 0], f32[1, 1, 0], f32[1, 1, 0]"},
                {"$(f32[3, 2, 0], f32[1, 20, 0], f32[1, 20, 5])", "f32[3, 1, 2, 5], f32[1, 2, 5], f32[1, 2, 5]"},
                {"$(f32[3, 2, 4], f32[1, 20, 4], f32[1, 20, 5], _, i32[2]{3, 4})", "error: there are 3 steps"}};
  return op;
}

}  // namespace

std::vector<OpDef> rnn_family() { return {gru(), lstm(), rnn()}; }

}  // namespace selkie::ops
