// CenterCropPad: some axes cropped or zero-padded around their centre to a given size.
#include "ops/support/dims.h"
#include "ops/support/lower.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

std::vector<int64_t> axes_of(const EvalContext& e, int64_t rank) {
  std::vector<int64_t> axes;
  if (!e.has_attr("axes")) {
    for (int64_t i = 0; i < rank; ++i) axes.push_back(i);
    return axes;
  }
  normalize_axes(e.attr_ints("axes"), rank);
  for (int64_t axis : e.attr_ints("axes")) axes.push_back(normalize_axis(axis, rank));
  return axes;
}

void eval(EvalContext& e) {
  Tensor x = e.tensor(0);
  std::vector<int64_t> axes = axes_of(e, x.rank());
  std::vector<int64_t> sizes = ints_of(e.tensor(1));
  if (sizes.size() != axes.size()) fail("{} sizes are given for {} axes", sizes.size(), axes.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t have = x.dim(axes[i]);
    if (sizes[i] < 0) fail("size {} is negative", sizes[i]);
    if (sizes[i] <= have) {
      x = slice_axis(x, axes[i], (have - sizes[i]) / 2, sizes[i]);
    } else {
      Dims dims = x.dims();
      dims[static_cast<size_t>(axes[i])] = sizes[i];
      Tensor padded(x.dtype(), std::move(dims));
      write_axis(padded, x, axes[i], (sizes[i] - have) / 2);
      x = std::move(padded);
    }
  }
  e.set(0, std::move(x));
}

const std::vector<int64_t>* given_axes(const ir::ShapeContext& c) {
  const ir::Attribute* axes = c.find_attr("axes");
  return axes == nullptr ? nullptr : &std::get<std::vector<int64_t>>(*axes);
}

// Without axes there is one size for each.
std::optional<size_t> rank_from_sizes(const ir::ShapeContext& c) {
  std::optional<int64_t> count = given_axes(c) == nullptr ? count_of(c, 1) : std::nullopt;
  return count ? std::optional(static_cast<size_t>(*count)) : std::nullopt;
}

std::vector<Type> forward(const ForwardContext& c) {
  std::optional<size_t> rank = c.dims(0) ? c.rank(0) : rank_from_sizes(c);
  if (!rank) return {Type::tensor(c.dtype(0))};
  std::vector<size_t> axes = positions_of(given_axes(c), *rank);
  std::optional<ir::SymElements> sizes = c.elements(1);
  if (sizes && sizes->size() != axes.size()) fail("{} sizes are given for {} axes", sizes->size(), axes.size());
  SymDims dims = c.dims(0) ? *c.dims(0) : SymDims(*rank);
  for (size_t i = 0; i < axes.size(); ++i) dims[axes[i]] = sizes ? (*sizes)[i] : c.unknown(0, axes[i]);
  return {Type::tensor(c.dtype(0), dims)};
}

void backward(BackwardContext& c) {
  if (std::optional<ir::SymElements> sizes = c.contents(1)) require_natural(c, *sizes);
  if (c.result_dims(0))
    require_same_outside(c, 0, positions_of(given_axes(c), c.result_dims(0)->size()));
  else if (std::optional<size_t> rank = rank_from_sizes(c))
    c.set_rank(0, *rank);
}

void lower(LowerContext& c) {
  c.define(0, [&c](const Index& at) {
    kir::Value zero = c.builder().integer(0);
    kir::Value inside = c.builder().number(DType::boolean, 1);
    Index from = at;
    for (size_t axis : positions_of(given_axes(c), c.rank(0))) {
      sym::Expr have = (*c.dims(0))[axis];
      sym::Expr want = c.result_dims()[axis];
      sym::Expr cropped = sym::floordiv(sym::max(have - want, 0), 2);
      sym::Expr padded = sym::floordiv(sym::max(want - have, 0), 2);
      from[axis] = at[axis] + c.size(cropped - padded);
      if (!c.proves_less_equal(want, have)) inside = inside & (zero <= from[axis]) & (from[axis] < c.size(have));
    }
    return select(inside, c.operand_if(inside, 0, from), c.builder().number(c.result_dtype(), 0));
  });
}

}  // namespace

OpDef center_crop_pad_op() {
  return {
      .name = "center_crop_pad",
      .onnx = {"", "CenterCropPad", {18}},
      .doc = "axes cropped or zero-padded around their centre",
      .operands = {{"input_data",
                    {"T", dtypes::all - dtypes::float8 - dtypes::small_ints - DTypeSet{DType::f4e2m1, DType::f8e8m0}}},
                   {"shape", index_tensor}},
      .results = {{"output_data", {"T", dtypes::all}}},
      .attrs = {optional_attr("axes", AttrKind::integers)},
      .dynamism = isvdos({"shape"}),
      .mapping = Mapping::reorganize,
      .forward = forward,
      .backward = backward,
      .value = absent("shape arithmetic has no centres"),
      .eval = eval,
      .lower = lower,
      .grad = later::training,
      .samples = {{"$(i32[5]{1, 2, 3, 4, 5}, i64[1]{3})", "i32[3]{2, 3, 4}"},
                  {"$(i32[2]{1, 2}, i64[1]{5})", "i32[5]{0, 1, 2, 0, 0}"},
                  {"$(f32[4, 3], i64[1]{0}) {axes = [-1]}", "f32[4, 0]"},
                  {"$(f32[0, 3, 1], i32[2]{2, 5}) {axes = [2, 0]}", "f32[5, 3, 2]"},
                  {"$(f32[4, 3], i64[1]{2})", "error: 1 sizes are given for 2 axes"}},
  };
}

}  // namespace selkie::ops
