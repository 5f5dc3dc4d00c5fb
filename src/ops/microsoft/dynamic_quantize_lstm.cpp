// DynamicQuantizeLSTM of com.microsoft: LSTM with quantised weights and inputs quantised at run time.
#include "ops/support/blank.h"
#include "ops/support/quantize.h"
#include "ops/support/rnn.h"

namespace selkie::ops {
namespace {

// Weights [directions, inputs, gates] with a scale per direction or per gate, as f64 [directions, gates, inputs].
Tensor weights_of(const EvalContext& e, size_t weights, size_t scale, size_t zero) {
  const Tensor& w = e.tensor(weights);
  if (w.rank() != 3)
    fail("'{}' has shape {}, but must be of rank 3", e.op().operands[weights].name, to_string(w.dims()));
  auto spread = [&](const Tensor& t) {
    if (t.dims() == Dims{w.dim(0)}) return t.reshaped({w.dim(0), 1, 1});
    if (t.dims() == Dims{w.dim(0), w.dim(2)}) return t.reshaped({w.dim(0), 1, w.dim(2)});
    fail("a scale or zero point of shape {} does not fit weights of shape {}", to_string(t.dims()),
         to_string(w.dims()));
  };
  Tensor zeros = spread(e.tensor(zero));
  return transpose(dequantized(w, spread(e.tensor(scale)), &zeros), std::vector<int64_t>{0, 2, 1});
}

// What quantising and dequantising leaves of a matrix.
void round_trip(std::span<double> x) {
  DynamicallyQuantized q =
      quantize_dynamically(narrow<double>(std::span<const double>(x), DType::f32, {static_cast<int64_t>(x.size())}));
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = (q.values.data<uint8_t>()[i] - q.zero_point) * static_cast<double>(q.scale);
}

void eval(EvalContext& e) {
  RnnOptions options = rnn_options(e, RnnCell::lstm);
  options.prepare = round_trip;
  Tensor w = weights_of(e, 1, 8, 9);
  Tensor r = weights_of(e, 2, 10, 11);
  RnnResults results = run_rnn(options, {.x = &e.tensor(0),
                                         .w = &w,
                                         .r = &r,
                                         .b = optional_tensor(e, 3),
                                         .sequence_lens = optional_tensor(e, 4),
                                         .initial_h = optional_tensor(e, 5),
                                         .initial_c = optional_tensor(e, 6),
                                         .p = optional_tensor(e, 7)});
  e.set(0, results.y);
  e.set(1, results.y_h);
  e.set(2, results.y_c);
}

int64_t directions_of(const ir::ShapeContext& c) { return c.attr_string("direction") == "bidirectional" ? 2 : 1; }

// Of x [steps, batch, input] and r [directions, hidden, gates].
struct Sizes {
  sym::Expr steps, batch, input, hidden;
};

Sizes sizes_of(const ir::ShapeContext& c) {
  Sizes n;
  if (c.dims(0) && c.rank(0) == 3) n = {c.dims(0)->at(0), c.dims(0)->at(1), c.dims(0)->at(2), {}};
  if (const ir::Attribute* given = c.find_attr("hidden_size"))
    n.hidden = c.constant(std::get<int64_t>(*given));
  else if (c.dims(2) && c.rank(2) == 3)
    n.hidden = c.dims(2)->at(1);
  return n;
}

std::vector<Type> forward(const ForwardContext& c) {
  Sizes n = sizes_of(c);
  sym::Expr directions = c.constant(directions_of(c));
  if (!n.steps) n.steps = c.unknown(0, 0);
  if (!n.batch) n.batch = c.unknown(0, 2);
  if (!n.hidden) n.hidden = c.unknown(0, 3);
  Type state = Type::tensor(c.dtype(0), SymDims{directions, n.batch, n.hidden});
  return {Type::tensor(c.dtype(0), SymDims{n.steps, directions, n.batch, n.hidden}), state, state};
}

void backward(BackwardContext& c) {
  c.set_rank(0, 3);
  c.set_rank(2, 3);
  Sizes n = sizes_of(c);
  sym::Expr directions = c.constant(directions_of(c));
  sym::Expr gates = n.hidden * gate_count(RnnCell::lstm);
  c.set_dims(1, SymDims{directions, n.input, gates});
  c.set_dims(2, SymDims{directions, n.hidden, gates});
  c.set_dims(3, SymDims{directions, gates * 2});
  c.set_dims(4, SymDims{n.batch});
  for (size_t state : {5, 6}) c.set_dims(state, SymDims{directions, n.batch, n.hidden});
  c.set_dims(7, SymDims{directions, n.hidden * 3});
  // Scales and zero points are per direction, or per direction and gate.
  for (size_t i = 8; i < 12; ++i)
    if (c.dims(i)) c.set_dims(i, c.rank(i) == 1 ? SymDims{directions} : SymDims{directions, gates});
}

}  // namespace

OpDef ms_dynamic_quantize_lstm_op() {
  TypeVar real{"T", dtypes::f32};
  TypeVar byte{"T2", DTypeSet{DType::u8, DType::i8}};
  OpDef op = blank_record(Mapping::many_to_many);
  op.name = "ms_dynamic_quantize_lstm";
  op.onnx = {"com.microsoft", "DynamicQuantizeLSTM", {1}};
  op.doc = "LSTM with quantised weights, whose inputs and states are quantised at run time";
  op.operands = {{"x", real},
                 {"w", byte},
                 {"r", byte},
                 {"b", real, optional},
                 {"sequence_lens", {"T1", DTypeSet{DType::i32}}, optional},
                 {"initial_h", real, optional},
                 {"initial_c", real, optional},
                 {"p", real, optional},
                 {"w_scale", real},
                 {"w_zero_point", byte},
                 {"r_scale", real},
                 {"r_zero_point", byte}};
  op.results = {{"y", real, optional}, {"y_h", real, optional}, {"y_c", real, optional}};
  op.attrs = {optional_attr("activation_alpha", AttrKind::reals),
              optional_attr("activation_beta", AttrKind::reals),
              optional_attr("activations", AttrKind::texts),
              optional_attr("clip", AttrKind::real),
              string_attr("direction", "forward"),
              optional_attr("hidden_size", AttrKind::integer),
              int_attr("input_forget", 0)};
  op.forward = forward;
  op.backward = backward;
  op.eval = eval;
  op.samples = {
      {"$(f32[2, 1, 2]{-0.569999993, 0.129999995, 0.889999986, -0.239999995}, u8[1, 2, 4]{41, 64, 224, 116, 253, 167, "
       "151, 25}, u8[1, 1, 4]{150, 97, 215, 34}, f32[1, 8]{0.319999993, 0.660000026, -0.25, -0.25999999, 0.0799999982, "
       "-0.569999993, -0.50999999, -0.340000004}, _, _, _, _, f32[1, 4]{0.00999999978, 0.0199999996, 0.00499999989, "
       "0.00999999978}, u8[1, 4]{120, 128, 130, 100}, f32[1]{0.00999999978}, u8[1]{128}) {hidden_size = 1}",
       "f32[2, 1, 1, 1]{-0.32246387, -0.0381592773}, f32[1, 1, 1]{-0.0381592773}, f32[1, 1, 1]{-0.158008248}"},
      {"$(f32[3, 2, 4], u8[2, 4, 20], u8[2, 5, 20], _, _, _, _, _, f32[2, 20], u8[2, 20], f32[2], u8[2]) {direction = "
       "\"bidirectional\", hidden_size = 5}",
       "f32[3, 2, 2, 5], f32[2, 2, 5], f32[2, 2, 5]"},
      {"$(f32[0, 2, 4], i8[1, 4, 20], i8[1, 5, 20], _, _, _, _, _, f32[1], i8[1], f32[1], i8[1])", "f32[0, 1, 2, 5]"},
      {"$(f32[3, 2, 4], u8[1, 4, 20], u8[1, 5, 20], _, _, _, _, _, f32[2], u8[1], f32[1], u8[1])",
       "error: does not fit weights"},
      {"$(f32[3, 2, 3], u8[1, 4, 20], u8[1, 5, 20], _, _, _, _, _, f32[1], u8[1], f32[1], u8[1])",
       "error: W has shape"}};
  return op;
}

}  // namespace selkie::ops
