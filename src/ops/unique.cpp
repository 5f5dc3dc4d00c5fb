// Unique: the distinct elements, or slices along an axis, and how they map.
#include <algorithm>
#include <numeric>

#include "ops/support/dims.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

bool before(const auto& a, const auto& b) { return a < b; }
bool before(const std::complex<double>& a, const std::complex<double>& b) {
  return a.real() != b.real() ? a.real() < b.real() : a.imag() < b.imag();
}

// Slices of the tensor as rows, compared element by element.
template <class W>
struct Rows {
  std::vector<W> values;
  int64_t width;

  int compare(int64_t a, int64_t b) const {
    for (int64_t i = 0; i < width; ++i) {
      const W& x = values[static_cast<size_t>(a * width + i)];
      const W& y = values[static_cast<size_t>(b * width + i)];
      if (before(x, y)) return -1;
      if (before(y, x)) return 1;
    }
    return 0;
  }
};

struct Found {
  std::vector<int64_t> first, inverse, counts;
};

template <class W>
Found find(const Rows<W>& rows, int64_t count, bool sorted) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return rows.compare(a, b) < 0; });
  Found found;
  found.inverse.resize(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || rows.compare(order[i - 1], order[i]) != 0) {
      found.first.push_back(order[i]);
      found.counts.push_back(0);
    }
    ++found.counts.back();
    found.inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(found.first.size()) - 1;
  }
  if (sorted) return found;
  // In order of first appearance instead.
  std::vector<int64_t> rank(found.first.size());
  std::iota(rank.begin(), rank.end(), 0);
  std::sort(rank.begin(), rank.end(), [&](int64_t a, int64_t b) {
    return found.first[static_cast<size_t>(a)] < found.first[static_cast<size_t>(b)];
  });
  Found out;
  std::vector<int64_t> place(rank.size());
  for (size_t i = 0; i < rank.size(); ++i) {
    auto r = static_cast<size_t>(rank[i]);
    place[r] = static_cast<int64_t>(i);
    out.first.push_back(found.first[r]);
    out.counts.push_back(found.counts[r]);
  }
  for (int64_t i : found.inverse) out.inverse.push_back(place[static_cast<size_t>(i)]);
  return out;
}

void eval(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  bool flat = !e.has_attr("axis");
  int64_t axis = flat ? 0 : normalize_axis(e.attr_int("axis"), x.rank());
  Tensor data = flat ? x.reshaped({x.count()}) : x;
  std::vector<int64_t> order{axis};
  for (int64_t i = 0; i < data.rank(); ++i)
    if (i != axis) order.push_back(i);
  Tensor rows = transpose(data, order);
  int64_t count = data.dim(axis);
  dispatch_wide(x.dtype(), [&](auto tag) {
    using W = typename decltype(tag)::type;
    Found found =
        find(Rows<W>{widen<W>(rows), count == 0 ? 0 : rows.count() / count}, count, e.attr_int("sorted") != 0);
    std::vector<Tensor> parts{slice_axis(data, axis, 0, 0)};
    for (int64_t at : found.first) parts.push_back(slice_axis(data, axis, at, 1));
    e.set(0, concat(parts, axis));
    e.set(1, Tensor::of_i64(found.first));
    e.set(2, Tensor::of_i64(found.inverse));
    e.set(3, Tensor::of_i64(found.counts));
  });
}

std::vector<Type> forward(const ForwardContext& c) {
  const ir::Attribute* axis = c.find_attr("axis");
  sym::Expr places;  // how many elements or slices there are
  size_t along = 0;
  if (c.dims(0)) {
    if (axis != nullptr)
      along = static_cast<size_t>(normalize_axis(std::get<int64_t>(*axis), static_cast<int64_t>(c.rank(0))));
    places = axis != nullptr ? (*c.dims(0))[along] : product(c, *c.dims(0));
  }
  bool placed = axis == nullptr || c.dims(0);  // else which dim of the first result it is, is not known
  sym::Expr count = c.unknown(placed ? 0 : 1, along, {.least = {}, .most = places});
  Type list = Type::tensor(DType::i64, SymDims{count});
  Type inverse = Type::tensor(DType::i64, SymDims{places ? places : c.unknown(2, 0)});
  if (axis == nullptr) return {Type::tensor(c.dtype(0), SymDims{count}), list, inverse, list};
  if (!c.dims(0)) return {Type::tensor(c.dtype(0)), list, inverse, list};
  SymDims dims = *c.dims(0);
  dims[along] = count;
  return {Type::tensor(c.dtype(0), dims), list, inverse, list};
}

}  // namespace

OpDef unique_op() {
  return {
      .name = "unique",
      .onnx = {"", "Unique", {11}},
      .doc = "the distinct elements or slices, their first places, the way back, and how often each occurs",
      .operands = {{"x", any_tensor}},
      .results = {{"y", any_tensor},
                  {"indices", i64_tensor, optional},
                  {"inverse_indices", i64_tensor, optional},
                  {"counts", i64_tensor, optional}},
      .attrs = {optional_attr("axis", AttrKind::integer), int_attr("sorted", 1)},
      .dynamism = edo({"x"}),
      .mapping = Mapping::opaque,
      .forward = forward,
      .backward = absent("what is the same is not known"),
      .value = absent("elements are compared for constants only, which are folded"),
      .eval = eval,
      .lower = absent("how many results there are shows only while they are found"),
      .grad = later::training,
      .samples = {{"$(i32[4]{3, 1, 3, 2})", "i32[3]{1, 2, 3}, i64[3]{1, 3, 0}, i64[4]{2, 0, 2, 1}, i64[3]{1, 1, 2}"},
                  {"$(i32[4]{3, 1, 3, 2}) {sorted = 0}",
                   "i32[3]{3, 1, 2}, i64[3]{0, 1, 3}, i64[4]{0, 1, 0, 2}, i64[3]{2, 1, 1}"},
                  {"$(i32[3, 1]{2, 2, 1}) {axis = 0}", "i32[2, 1]{1, 2}"},
                  {"$(f32[0])", "f32[0]"},
                  {"$(f32[2]) {axis = 1}", "error: axis 1 is outside"}},
  };
}

}  // namespace selkie::ops
