// MaxUnpool: puts each element back to where MaxPool found it, zeros elsewhere.
#include "ops/support/dims.h"
#include "ops/support/record.h"
#include "ops/support/window.h"

namespace selkie::ops {
namespace {

constexpr TypeVar type{"T1", dtypes::floats};

Dims default_dims(const EvalContext& e, const Tensor& x) {
  if (x.rank() < 3) fail("the input has shape {}, but needs a batch, channels and spatial axes", to_string(x.dims()));
  auto axes = static_cast<size_t>(x.rank() - 2);
  WindowAttrs attrs = window_attrs(e, axes);
  const std::vector<int64_t>& kernel = e.attr_ints("kernel_shape");
  if (kernel.size() != axes) fail("'kernel_shape' has {} elements for {} spatial axes", kernel.size(), axes);
  Dims dims{x.dim(0), x.dim(1)};
  for (size_t i = 0; i < axes; ++i) {
    int64_t size = (x.dims()[i + 2] - 1) * attrs.strides[i] - attrs.pads[i] - attrs.pads[axes + i] + kernel[i];
    if (kernel[i] < 1 || size < 0) fail("a kernel of {} gives size {} along axis {}", kernel[i], size, i + 2);
    dims.push_back(size);
  }
  return dims;
}

void eval(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  if (e.tensor(1).dims() != x.dims())
    fail("indices have shape {}, but the input has {}", to_string(e.tensor(1).dims()), to_string(x.dims()));
  Dims pooled = default_dims(e, x);
  Dims dims = e.has(2) ? ints_of(e.tensor(2)) : pooled;
  if (dims.size() != pooled.size())
    fail("'output_shape' has {} elements for an input of rank {}", dims.size(), x.rank());
  Tensor out(x.dtype(), dims);
  std::vector<int64_t> indices = ints_of(e.tensor(1));
  // Indices count in the tensor that was pooled; a larger output holds it in its corner.
  std::vector<int64_t> strides = strides_of(dims);
  std::vector<int64_t> from = strides_of(pooled);
  int64_t count = element_count(pooled);
  dispatch_storage(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] < 0 || indices[i] >= count) fail("index {} is outside {} elements", indices[i], count);
      int64_t at = 0;
      for (size_t axis = 0; axis < dims.size(); ++axis) {
        int64_t index = indices[i] / from[axis] % pooled[axis];
        if (index >= dims[axis]) fail("index {} is outside an output of shape {}", indices[i], to_string(dims));
        at += index * strides[axis];
      }
      out.mutable_data<T>()[at] = x.data<T>()[i];
    }
  });
  e.set(0, std::move(out));
}

// The dims of the tensor that was pooled, for an input of known dims.
SymDims pooled_dims(const ir::ShapeContext& c) {
  const SymDims& x = *c.dims(0);
  const std::vector<int64_t>& kernel = c.attr_ints("kernel_shape");
  size_t axes = kernel.size();
  if (axes < 1 || x.size() != axes + 2) fail("'kernel_shape' has {} elements for rank {}", axes, x.size());
  WindowAttrs attrs = window_attrs(c, axes);
  SymDims dims{x[0], x[1]};
  for (size_t i = 0; i < axes; ++i)
    dims.push_back((x[i + 2] - 1) * attrs.strides[i] - attrs.pads[i] - attrs.pads[axes + i] + kernel[i]);
  return dims;
}

std::vector<Type> forward(const ForwardContext& c) {
  size_t rank = c.attr_ints("kernel_shape").size() + 2;
  if (!c.has(2)) return {Type::tensor(c.dtype(0), c.dims(0) ? pooled_dims(c) : c.unknown_dims(0, rank))};
  std::optional<ir::SymElements> given = c.elements(2);
  if (given && given->size() != rank) fail("'output_shape' has {} elements for rank {}", given->size(), rank);
  return {Type::tensor(c.dtype(0), given ? *given : c.unknown_dims(0, rank))};
}

void backward(BackwardContext& c) {
  c.set_rank(0, c.attr_ints("kernel_shape").size() + 2);
  require_same_dims(c, 0, 1);
  require_natural(c, pooled_dims(c));
  if (std::optional<ir::SymElements> given = c.contents(2)) require_natural(c, *given);
}

}  // namespace

OpDef max_unpool_op() {
  return {
      .name = "max_unpool",
      .onnx = {"", "MaxUnpool", {9, 11, 22}},
      .doc = "elements at the places that indices give, zeros elsewhere",
      .operands = {{"x", type}, {"i", i64_tensor}, {"output_shape", i64_tensor, optional}},
      .results = {{"output", type}},
      .attrs = {required_attr("kernel_shape", AttrKind::integers), optional_attr("pads", AttrKind::integers),
                optional_attr("strides", AttrKind::integers)},
      .dynamism = isvdos({"output_shape"}),
      .mapping = Mapping::shuffle,
      .forward = forward,
      .backward = backward,
      .value = absent("pools do not occur in shape arithmetic"),
      .eval = eval,
      .lower = later::cpu,
      .grad = later::training,
      .samples = {{"$(f32[1, 1, 2]{5, 6}, i64[1, 1, 2]{1, 2}) {kernel_shape = [2], strides = [2]}",
                   "f32[1, 1, 4]{0, 5, 6, 0}"},
                  {"$(f32[1, 1, 1, 1]{5}, i64[1, 1, 1, 1]{3}, i64[4]{1, 1, 3, 3}) {kernel_shape = [2, 2]}",
                   "f32[1, 1, 3, 3]{0, 0, 0, 0, 5, 0, 0, 0, 0}"},
                  {"$(f32[0, 1, 2], i64[0, 1, 2]) {kernel_shape = [2]}", "f32[0, 1, 3]"},
                  {"$(f32[1, 1, 2], i64[1, 1, 2]{0, 3}) {kernel_shape = [2]}", "error: index 3 is outside"},
                  {"$(f32[1, 1, 2], i64[1, 1, 1]) {kernel_shape = [2]}", "error: indices have shape"}},
  };
}

}  // namespace selkie::ops
