// CenterCropPad: some axes cropped or zero-padded around their centre to a given size.
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
      .forward = later::rdp,
      .backward = later::rdp,
      .value = absent("shape arithmetic has no centres"),
      .eval = eval,
      .lower = later::cpu,
      .grad = later::training,
      .samples = {{"$(i32[5]{1, 2, 3, 4, 5}, i64[1]{3})", "i32[3]{2, 3, 4}"},
                  {"$(i32[2]{1, 2}, i64[1]{5})", "i32[5]{0, 1, 2, 0, 0}"},
                  {"$(f32[4, 3], i64[1]{0}) {axes = [-1]}", "f32[4, 0]"},
                  {"$(f32[4, 3], i64[1]{2})", "error: 1 sizes are given for 2 axes"}},
  };
}

}  // namespace selkie::ops
