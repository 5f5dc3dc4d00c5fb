// TopK: the k largest or smallest elements along one axis, and where they are.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/support/record.h"

namespace selkie::ops {
namespace {

constexpr TypeVar type{"T", dtypes::numeric};

void check_count(int64_t k, int64_t axis, int64_t extent) {
  if (k < 0 || k > extent) fail("k is {}, but axis {} has {} elements", k, axis, extent);
}

void eval(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  if (x.rank() == 0) fail("the input is a scalar");
  int64_t axis = normalize_axis(e.attr_int("axis"), x.rank());
  int64_t k = int_of(e.tensor(1));
  int64_t extent = x.dim(axis);
  check_count(k, axis, extent);
  bool largest = e.attr_int("largest") != 0;
  int64_t outer = product(x.dims(), 0, axis);
  int64_t inner = product(x.dims(), axis + 1, x.rank());
  Dims dims = x.dims();
  dims[static_cast<size_t>(axis)] = k;
  dispatch_number(x.dtype(), [&](auto tag) {
    using W = typename decltype(tag)::type;
    std::vector<W> values = widen<W>(x);
    std::vector<W> found(static_cast<size_t>(element_count(dims)));
    std::vector<int64_t> places(found.size());
    std::vector<int64_t> order(static_cast<size_t>(extent));
    for (int64_t o = 0; o < outer && inner > 0; ++o)
      for (int64_t i = 0; i < inner; ++i) {
        auto at = [&](int64_t p) { return values[static_cast<size_t>((o * extent + p) * inner + i)]; };
        std::iota(order.begin(), order.end(), 0);
        // Equal elements keep their order, NaN counts as the largest.
        std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
          W p = at(a), q = at(b);
          if constexpr (std::is_same_v<W, double>)
            if (std::isnan(p) || std::isnan(q))
              return largest ? std::isnan(p) && !std::isnan(q) : !std::isnan(p) && std::isnan(q);
          return largest ? p > q : p < q;
        });
        for (int64_t n = 0; n < k; ++n) {
          auto to = static_cast<size_t>((o * k + n) * inner + i);
          found[to] = at(order[static_cast<size_t>(n)]);
          places[to] = order[static_cast<size_t>(n)];
        }
      }
    e.set(0, narrow<W>(found, x.dtype(), dims));
    e.set(1, narrow<int64_t>(places, DType::i64, dims));
  });
}

std::vector<Type> forward(const ForwardContext& c) {
  std::optional<ir::SymElements> k = c.elements(1);
  if (!c.dims(0)) return {Type::tensor(c.dtype(0)), Type::tensor(DType::i64)};
  SymDims dims = *c.dims(0);
  auto axis = static_cast<size_t>(normalize_axis(c.attr_int("axis"), static_cast<int64_t>(dims.size())));
  bool given = k && k->size() == 1;
  if (given && k->at(0).constant() && dims[axis].constant())
    check_count(*k->at(0).constant(), static_cast<int64_t>(axis), *dims[axis].constant());
  dims[axis] = given ? k->at(0) : c.unknown(0, axis, {.least = {}, .most = dims[axis]});
  return {Type::tensor(c.dtype(0), dims), Type::tensor(DType::i64, dims)};
}

// 0 ≤ k ≤ the dim it is taken from.
void backward(BackwardContext& c) {
  std::optional<ir::SymElements> k = c.contents(1);
  if (!c.dims(0) && c.result_dims(0)) c.set_rank(0, c.result_dims(0)->size());
  if (!c.dims(0)) return;
  const SymDims dims = *c.dims(0);
  auto axis = static_cast<size_t>(normalize_axis(c.attr_int("axis"), static_cast<int64_t>(dims.size())));
  if (k && k->size() == 1) {
    c.less_equal(c.constant(0), k->at(0));
    c.less_equal(k->at(0), dims[axis]);
  }
  if (!c.result_dims(0)) return;
  for (size_t i = 0; i < dims.size(); ++i)
    if (i != axis) c.equal(dims[i], (*c.result_dims(0))[i]);
}

}  // namespace

OpDef top_k_op() {
  return {
      .name = "top_k",
      .onnx = {"", "TopK", {1, 10, 11, 24}},
      .doc = "the k largest or smallest elements along one axis, in order, and their indices",
      .operands = {{"x", type}, {"k", i64_tensor}},
      .results = {{"values", type}, {"indices", i64_tensor}},
      .attrs = {int_attr("axis", -1), int_attr("largest", 1), int_attr("sorted", 1)},
      .dynamism = isvdos({"k"}),
      .mapping = Mapping::many_to_many,
      .forward = forward,
      .backward = backward,
      .value = absent("shape arithmetic has no sorting"),
      .eval = eval,
      .lower = absent("sorting is no function of single elements"),
      .grad = later::training,
      .upgrades = {{10, attr_to_operand("k", 1)}},
      .samples = {{"$(i32[4]{3, 1, 3, 2}, i64[1]{2})", "i32[2]{3, 3}, i64[2]{0, 2}"},
                  {"$(f32[2, 3], i64[1]{2}) {axis = 0, largest = 0}", "f32[2, 3], i64[2, 3]"},
                  {"$(f32[2, 3], i64[1]{0})", "f32[2, 0], i64[2, 0]"},
                  {"$(f32[3], i64[1]{4})", "error: k is 4"},
                  {"$(f32[3], i64[1]{-1})", "error: k is -1"}},
  };
}

}  // namespace selkie::ops
