// LinearAttention: a recurrent state of outer products of keys and values, read by queries.
#include <cmath>

#include "ops/support/attention.h"
#include "ops/support/head_dims.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

constexpr DTypeSet reals{DType::f32, DType::f16, DType::bf16};
constexpr TypeVar type{"T", reals};
constexpr TypeVar state_type{"S", reals};

// A gate of one number per step and head, or `wide` per key element, or else one for all heads; empty if the rule has
// none.
Heads gate(const EvalContext& e, size_t operand, const Heads& key, bool needed, bool wide) {
  std::string_view name = e.op().operands[operand].name;
  if (e.has(operand) != needed)
    fail("update rule '{}' {} operand '{}'", e.attr_string("update_rule"), needed ? "needs" : "takes no", name);
  if (!needed) return {};
  const Tensor& t = e.tensor(operand);
  int64_t last = t.rank() == 3 ? t.dim(2) : -1;
  bool fits = t.rank() == 3 && t.dim(0) == key.batch && t.dim(1) == key.length &&
              (last == key.heads || last == (wide ? key.heads * key.size : 1));
  if (!fits) fail("operand '{}' of shape {} does not fit the key", name, to_string(t.dims()));
  return split_heads(t, last == 1 && !wide ? 1 : key.heads, name);
}

struct Gates {
  Heads decay;
  Heads beta;
};

// One step of one head: state [keys, values] is decayed, and k ⊗ v (or its correction) is added.
void update(const Gates& gates, const Heads& k, int64_t b, int64_t h, int64_t t, double* state, std::vector<double> v) {
  const double* key = k.matrix(b, h) + t * k.size;
  auto width = static_cast<int64_t>(v.size());
  if (gates.decay.size > 0) {
    const double* decay = gates.decay.matrix(b, h) + t * gates.decay.size;
    for (int64_t i = 0; i < k.size; ++i)
      for (int64_t j = 0; j < width; ++j) state[i * width + j] *= std::exp(decay[gates.decay.size == 1 ? 0 : i]);
  }
  if (gates.beta.size > 0) {
    double beta = gates.beta.matrix(b, gates.beta.heads == 1 ? 0 : h)[t];
    for (int64_t j = 0; j < width; ++j) {
      double known = 0;
      for (int64_t i = 0; i < k.size; ++i) known += state[i * width + j] * key[i];
      v[static_cast<size_t>(j)] = beta * (v[static_cast<size_t>(j)] - known);
    }
  }
  for (int64_t i = 0; i < k.size; ++i)
    for (int64_t j = 0; j < width; ++j) state[i * width + j] += key[i] * v[static_cast<size_t>(j)];
}

void eval(EvalContext& e) {
  for (size_t i = 0; i < 3; ++i)
    if (e.tensor(i).rank() != 3) fail("operand '{}' must be of rank 3", e.op().operands[i].name);
  const std::string& rule = e.attr_string("update_rule");
  if (rule != "linear" && rule != "gated" && rule != "delta" && rule != "gated_delta")
    fail("there is no update rule '{}'", rule);
  Heads q = split_heads(e.tensor(0), e.attr_int("q_num_heads"), "query");
  Heads k = split_heads(e.tensor(1), e.attr_int("kv_num_heads"), "key");
  Heads v = split_heads(e.tensor(2), e.attr_int("kv_num_heads"), "value");
  check_attention(q, k, v);
  if (q.length != k.length) fail("the query has {} steps and the key {}", q.length, k.length);
  bool gated = rule.starts_with("gated");
  bool delta = rule.ends_with("delta");
  Gates gates{gate(e, 4, k, gated, true), gate(e, 5, k, delta, false)};
  Heads state = e.has(3) ? heads_of(e.tensor(3), "past_state") : Heads(q.batch, k.heads, k.size, v.size);
  if (state.dims() != Dims{q.batch, k.heads, k.size, v.size})
    fail("'past_state' has the shape {}", to_string(state.dims()));
  double scale = e.attr_float("scale") != 0 ? e.attr_float("scale") : 1 / std::sqrt(static_cast<double>(k.size));

  Heads out(q.batch, q.heads, q.length, v.size);
  int64_t group = q.heads / k.heads;
  for (int64_t b = 0; b < q.batch; ++b)
    for (int64_t h = 0; h < k.heads; ++h)
      for (int64_t t = 0; t < q.length; ++t) {
        const double* row = v.matrix(b, h) + t * v.size;
        double* s = state.matrix(b, h);
        update(gates, k, b, h, t, s, {row, row + v.size});
        for (int64_t g = h * group; g < (h + 1) * group; ++g)
          for (int64_t i = 0; i < k.size; ++i)
            for (int64_t j = 0; j < v.size; ++j)
              out.matrix(b, g)[t * v.size + j] += scale * q.matrix(b, g)[t * k.size + i] * s[i * v.size + j];
      }
  e.set(0, merge_heads(out, e.tensor(0).dtype()));
  e.set(1, to_tensor(state, e.has(3) ? e.tensor(3).dtype() : e.tensor(0).dtype()));
}

struct Parts {
  HeadDims q, k, v;
};

Parts parts_of(const ir::ShapeContext& c) {
  int64_t kv_heads = c.attr_int("kv_num_heads");
  return {split_dims(c, c.dims(0), c.attr_int("q_num_heads")), split_dims(c, c.dims(1), kv_heads),
          split_dims(c, c.dims(2), kv_heads)};
}

std::vector<Type> forward(const ForwardContext& c) {
  auto [q, k, v] = parts_of(c);
  HeadDims y = attended(q, k, v);
  y.heads = c.constant(c.attr_int("q_num_heads"));
  y.length = either(q.length, either(k.length, v.length));
  SymDims state{y.batch, c.constant(c.attr_int("kv_num_heads")), either(k.size, q.size), v.size};
  return {Type::tensor(c.dtype(0), named(c, 0, merged_dims(y))),
          Type::tensor(c.dtype(c.has(3) ? 3 : 0), named(c, 1, std::move(state)))};
}

void backward(BackwardContext& c) {
  for (size_t i = 0; i < 3; ++i) {
    c.set_rank(i, 3);
    require_split(c, i, c.attr_int(i == 0 ? "q_num_heads" : "kv_num_heads"));
  }
  auto [q, k, v] = parts_of(c);
  require_attention(c, q, k, v);
  require_equal_known(c, q.length, k.length);
  c.set_dims(3, SymDims{q.batch, k.heads, k.size, v.size});
  for (size_t gate : {4, 5}) c.set_dims(gate, SymDims{k.batch, k.length, sym::Expr()});
}

}  // namespace

OpDef linear_attention_op() {
  return {
      .name = "linear_attention",
      .onnx = {"", "LinearAttention", {27}},
      .doc = "o = scale · q · S, where the state S gathers k ⊗ v step by step under decay and correction",
      .operands = {{"query", type},
                   {"key", type},
                   {"value", type},
                   {"past_state", state_type, optional},
                   {"decay", type, optional},
                   {"beta", type, optional}},
      .results = {{"output", type}, {"present_state", state_type}},
      .attrs = {int_attr("chunk_size", 64), required_attr("kv_num_heads", AttrKind::integer),
                required_attr("q_num_heads", AttrKind::integer), float_attr("scale", 0),
                string_attr("update_rule", "gated_delta")},
      .dynamism = isdos(),
      .mapping = Mapping::many_to_many,
      .forward = forward,
      .backward = backward,
      .value = absent("attention does not occur in shape arithmetic"),
      .eval = eval,
      .lower = later::cpu,
      .grad = later::training,
      .samples =
          {{"$(f32[1, 2, 1]{1, 1}, f32[1, 2, 1]{1, 2}, f32[1, 2, 1]{3, 4}) "
            "{q_num_heads = 1, kv_num_heads = 1, update_rule = \"linear\"}",
            "f32[1, 2, 1]{3, 11}, f32[1, 1, 1, 1]{11}"},
           {"$(f32[2, 3, 8], f32[2, 3, 4], f32[2, 3, 6], f32[2, 2, 2, 3], f32[2, 3, 4], f32[2, 3, 1]) "
            "{q_num_heads = 4, kv_num_heads = 2}",
            "f32[2, 3, 12], f32[2, 2, 2, 3]"},
           {"$(f32[2, 0, 8], f32[2, 0, 4], f32[2, 0, 6]) {q_num_heads = 4, kv_num_heads = 2, update_rule = \"linear\"}",
            "f32[2, 0, 12], f32[2, 2, 2, 3]"},
           {"$(f32[2, 3, 8], f32[2, 3, 4], f32[2, 3, 6]) {q_num_heads = 4, kv_num_heads = 2}",
            "error: needs operand 'decay'"},
           {"$(f32[2, 3, 8], f32[2, 3, 4], f32[2, 3, 6]) {q_num_heads = 3, kv_num_heads = 2}", "error: 3 heads"}},
  };
}

}  // namespace selkie::ops
