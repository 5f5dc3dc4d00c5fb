// AffineGrid: the positions of an image's elements under affine maps, for grid_sample.
#include "ops/support/dims.h"
#include "ops/support/record.h"
#include "ops/support/zeros.h"

namespace selkie::ops {
namespace {

constexpr TypeVar type{"T1", dtypes::floats};

// The place of element i of n between −1 and 1.
double place(int64_t i, int64_t n, bool align_corners) {
  if (!align_corners) return (2 * static_cast<double>(i) + 1) / static_cast<double>(n) - 1;
  return n == 1 ? -1 : 2 * static_cast<double>(i) / static_cast<double>(n - 1) - 1;
}

void eval(EvalContext& e) {
  const Tensor& theta = e.tensor(0);
  std::vector<int64_t> size = ints_of(e.tensor(1));
  auto axes = static_cast<int64_t>(size.size()) - 2;
  if (axes != 2 && axes != 3) fail("'size' has {} elements, but must have 4 or 5", size.size());
  if (theta.dims() != Dims{size[0], axes, axes + 1})
    fail("'theta' has shape {}, but must have [{}, {}, {}]", to_string(theta.dims()), size[0], axes, axes + 1);
  bool align = e.attr_int("align_corners") != 0;
  Dims spatial(size.begin() + 2, size.end());
  Dims dims{size[0]};
  dims.insert(dims.end(), spatial.begin(), spatial.end());
  dims.push_back(axes);
  std::vector<double> maps = widen<double>(theta);
  std::vector<double> out;
  out.reserve(affordable(dims, sizeof(double)));
  for (int64_t n = 0; n < size[0]; ++n)
    for (Walk<1> walk(spatial, {strides_of(spatial)}); !walk.done(); walk.next())
      for (int64_t row = 0; row < axes; ++row) {
        const double* map = maps.data() + (n * axes + row) * (axes + 1);
        double sum = map[axes];
        // Coordinates are named from the innermost axis outwards.
        for (int64_t i = 0; i < axes; ++i) {
          auto axis = static_cast<size_t>(axes - 1 - i);
          sum += map[i] * place(walk.index()[axis], spatial[axis], align);
        }
        out.push_back(sum);
      }
  e.set(0, narrow<double>(out, theta.dtype(), dims));
}

std::vector<Type> forward(const ForwardContext& c) {
  std::optional<ir::SymElements> size = c.elements(1);
  bool known = c.dims(0) && c.rank(0) == 3;
  std::optional<int64_t> axes = known ? c.dims(0)->at(1).constant() : std::nullopt;
  if (size) axes = std::ssize(*size) - 2;
  if (!axes) return {Type::tensor(c.dtype(0))};
  if (*axes != 2 && *axes != 3) fail("a grid of {} axes cannot be made", *axes);
  SymDims dims{size ? size->at(0) : c.dims(0)->at(0)};
  for (size_t i = 1; i <= static_cast<size_t>(*axes); ++i) dims.push_back(size ? size->at(i + 1) : c.unknown(0, i));
  dims.push_back(c.constant(*axes));
  return {Type::tensor(c.dtype(0), dims)};
}

void backward(BackwardContext& c) {
  c.set_rank(0, 3);
  const SymDims theta = *c.dims(0);
  c.equal(theta[2], theta[1] + 1);
  if (std::optional<ir::SymElements> size = c.contents(1)) {
    c.equal(theta[1], c.constant(std::ssize(*size) - 2));
    c.equal(theta[0], size->at(0));
    require_natural(c, std::span(*size).subspan(2));
  }
}

}  // namespace

OpDef affine_grid_op() {
  return {
      .name = "affine_grid",
      .onnx = {"", "AffineGrid", {20}},
      .doc = "the positions of an image's elements, −1…1 along each axis, under one affine map per sample",
      .operands = {{"theta", type}, {"size", i64_tensor}},
      .results = {{"grid", type}},
      .attrs = {int_attr("align_corners", 0)},
      .dynamism = isvdos({"size"}),
      .mapping = Mapping::one_to_many,
      .forward = forward,
      .backward = backward,
      .value = absent("images do not occur in shape arithmetic"),
      .eval = eval,
      .lower = later::cpu,
      .grad = later::training,
      .samples = {{"$(f32[1, 2, 3]{1, 0, 0, 0, 2, 0.5}, i64[4]{1, 1, 1, 2})", "f32[1, 1, 2, 2]{-0.5, 0.5, 0.5, 0.5}"},
                  {"$(f32[2, 3, 4], i64[5]{2, 1, 3, 4, 5}) {align_corners = 1}", "f32[2, 3, 4, 5, 3]"},
                  {"$(f32[1, 2, 3], i64[4]{1, 1, 0, 2})", "f32[1, 0, 2, 2]"},
                  {"$(f32[1, 2, 3], i64[3]{1, 1, 2})", "error: must have 4 or 5"},
                  {"$(f32[1, 2, 3], i64[4]{2, 1, 2, 2})", "error: 'theta' has shape"}},
  };
}

}  // namespace selkie::ops
