// ConvTranspose: the adjoint of a convolution; each input element adds a scaled kernel to the output.
#include <algorithm>

#include "ops/support/conv.h"
#include "ops/support/dims.h"
#include "ops/support/gemm.h"
#include "ops/support/lower.h"
#include "ops/support/record.h"
#include "ops/support/zeros.h"

namespace selkie::ops {
namespace {

// The entry of a list attribute for spatial axis i, if the attribute is there and not empty.
std::optional<int64_t> entry_of(const std::vector<int64_t>* values, std::string_view name, size_t i, size_t axes) {
  if (values == nullptr || values->empty()) return std::nullopt;
  // Some models give output_shape with batch and channels.
  size_t skip = values->size() == axes + 2 && name == "output_shape" ? 2 : 0;
  if (values->size() != axes + skip) fail("'{}' has {} elements for {} spatial axes", name, values->size(), axes);
  int64_t v = (*values)[i + skip];
  if (v < 0 || v > int64_t{1} << 40) fail("'{}' contains {}", name, v);
  return v;
}

// The window of the convolution whose adjoint this is: its input is our output.
WindowAxis axis_of(const EvalContext& e, const WindowAttrs& attrs, size_t i, size_t axes, int64_t input,
                   int64_t kernel) {
  auto list = [&](std::string_view name) {
    return entry_of(e.has_attr(name) ? &e.attr_ints(name) : nullptr, name, i, axes);
  };
  if (kernel < 1) fail("the kernel has size {} along axis {}", kernel, i);
  WindowAxis a{0, kernel, attrs.strides[i], attrs.dilations[i], attrs.pads[i], attrs.pads[axes + i], input};
  if (a.stride > int64_t{1} << 30 || input > int64_t{1} << 30)
    fail("a stride of {} over {} elements is too large", a.stride, input);
  int64_t full = a.stride * (input - 1) + list("output_padding").value_or(0) + a.extent();
  std::optional<int64_t> size = list("output_shape");
  bool same = attrs.auto_pad.starts_with("SAME");
  if (!size && same) size = input * a.stride;
  if (size) {
    int64_t total = std::max<int64_t>(full - *size, 0);
    a.pad_begin = attrs.auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
    a.pad_end = total - a.pad_begin;
  }
  a.input = size.value_or(full - a.pad_begin - a.pad_end);
  if (a.input < 0) fail("axis {} of the output would have size {}", i, a.input);
  return a;
}

ConvShape shape_of(const EvalContext& e, const Tensor& x, const Tensor& w) {
  if (x.rank() < 3 || w.rank() != x.rank())
    fail("an input of shape {} cannot be convolved with weights of shape {}", to_string(x.dims()), to_string(w.dims()));
  int64_t group = e.attr_int("group");
  if (group < 1 || x.dim(1) % group != 0 || w.dim(0) != x.dim(1))
    fail("{} input channels in {} groups do not fit weights of shape {}", x.dim(1), group, to_string(w.dims()));
  auto axes = static_cast<size_t>(x.rank() - 2);
  ConvShape s{x.dim(0), x.dim(1), w.dim(1) * group, group, {}};
  std::vector<int64_t> kernel = kernel_shape(e, std::span(w.dims()).subspan(2));
  WindowAttrs attrs = window_attrs(e, axes);
  for (size_t i = 0; i < axes; ++i) s.window.push_back(axis_of(e, attrs, i, axes, x.dims()[i + 2], kernel[i]));
  return s;
}

// [group, c, m] → [group, m, c], so that a product gives columns of all output channels and kernel elements.
std::vector<double> transposed_weights(const Tensor& w, int64_t group) {
  int64_t c = w.dim(0) / group;
  int64_t m = c == 0 ? 0 : w.count() / w.dim(0);
  return widen<double>(transpose(w.reshaped({group, c, m}), std::vector<int64_t>{0, 2, 1}));
}

std::vector<double> run(const ConvShape& s, const std::vector<double>& x, const std::vector<double>& w) {
  int64_t from = element_count(output_dims(s.window));
  int64_t to = element_count(input_dims(s.window));
  int64_t channels = s.in_channels / s.group;
  int64_t outputs = s.out_channels / s.group;
  int64_t kernel = kernel_count(s.window);
  std::vector<double> y = zeros<double>(Dims{s.batch, s.out_channels, to});
  constexpr int64_t block = 4096;
  for (int64_t begin = 0; begin < from; begin += block) {
    int64_t count = std::min(block, from - begin);
    std::vector<double> part(static_cast<size_t>(channels * count));
    std::vector<double> columns(static_cast<size_t>(outputs * kernel * count));
    for (int64_t n = 0; n < s.batch; ++n)
      for (int64_t g = 0; g < s.group; ++g) {
        for (int64_t c = 0; c < channels; ++c)
          std::copy_n(x.data() + (n * s.in_channels + g * channels + c) * from + begin, count, part.data() + c * count);
        gemm(w.data() + g * outputs * kernel * channels, part.data(), columns.data(), outputs * kernel, count,
             channels);
        for (int64_t m = 0; m < outputs; ++m)
          scatter_windows(s.window, columns.data() + m * kernel * count, begin, count,
                          y.data() + (n * s.out_channels + g * outputs + m) * to);
      }
  }
  return y;
}

void eval(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  const Tensor& w = e.tensor(1);
  ConvShape s = shape_of(e, x, w);
  std::vector<double> y = run(s, widen<double>(x), transposed_weights(w, s.group));
  Dims dims{s.batch, s.out_channels};
  for (const WindowAxis& a : s.window) dims.push_back(a.input);
  if (e.has(2)) {
    if (e.tensor(2).dims() != Dims{s.out_channels}) fail("the bias has shape {}", to_string(e.tensor(2).dims()));
    add_channel_bias<double>(y, widen<double>(e.tensor(2)), element_count(input_dims(s.window)));
  }
  e.set(0, narrow<double>(y, x.dtype(), dims));
}

// The spatial dims of the result, as `axis_of` finds them.
SymDims spatial_dims(const ir::ShapeContext& c, std::span<const sym::Expr> input, std::span<const sym::Expr> kernel) {
  size_t axes = input.size();
  if (kernel.size() != axes) fail("the kernel has {} axes, but the input has {} spatial ones", kernel.size(), axes);
  WindowAttrs attrs = window_attrs(c, axes);
  SymDims out;
  for (size_t i = 0; i < axes; ++i) {
    auto list = [&](std::string_view name) {
      const ir::Attribute* found = c.find_attr(name);
      return entry_of(found == nullptr ? nullptr : &std::get<std::vector<int64_t>>(*found), name, i, axes);
    };
    sym::Expr extent = (kernel[i] - 1) * attrs.dilations[i] + 1;
    sym::Expr full = (input[i] - 1) * attrs.strides[i] + list("output_padding").value_or(0) + extent;
    if (std::optional<int64_t> size = list("output_shape"))
      out.push_back(c.constant(*size));
    else if (attrs.auto_pad.starts_with("SAME"))
      out.push_back(input[i] * attrs.strides[i]);
    else
      out.push_back(full - attrs.pads[i] - attrs.pads[axes + i]);
  }
  return out;
}

// What the convolution whose adjoint this is has before its first element on each axis, as `axis_of` finds it.
SymDims pads_before(const LowerContext& c, const WindowAttrs& attrs, std::span<const sym::Expr> kernel) {
  SymDims pads;
  for (size_t i = 0; i < kernel.size(); ++i) {
    auto list = [&](std::string_view name) {
      const ir::Attribute* found = c.find_attr(name);
      return entry_of(found == nullptr ? nullptr : &std::get<std::vector<int64_t>>(*found), name, i, kernel.size());
    };
    pads.push_back(c.constant(attrs.pads[i]));
    if (!list("output_shape") && !attrs.auto_pad.starts_with("SAME")) continue;
    sym::Expr extent = (kernel[i] - 1) * attrs.dilations[i] + 1;
    sym::Expr full = ((*c.dims(0))[i + 2] - 1) * attrs.strides[i] + list("output_padding").value_or(0) + extent;
    sym::Expr total = sym::max(full - c.result_dims()[i + 2], 0);
    sym::Expr half = sym::floordiv(total, 2);
    pads.back() = attrs.auto_pad == "SAME_UPPER" ? half : total - half;
  }
  return pads;
}

// An element of the result gathers what inputs would add to it: those from which some element of the kernel reaches it.
void lower(LowerContext& c) {
  if (c.rank(0) < 3 || c.rank(1) != c.rank(0)) c.refuse("of such ranks");
  SymDims kernel(c.dims(1)->begin() + 2, c.dims(1)->end());
  WindowAttrs attrs = window_attrs(c, kernel.size());
  SymDims pads = pads_before(c, attrs, kernel);
  c.define(0, [&c, attrs, pads](const Index& at) {
    kir::Builder& b = c.builder();
    DType dtype = compute_dtype(c.dtype(0));
    const SymDims& weights = *c.dims(1);
    kir::Value channels = b.integer(sym::floordiv(weights[0], c.attr_int("group")));
    kir::Value outputs = b.integer(weights[1]);
    kir::Value group = floordiv(at[1], outputs);
    SymDims extents{sym::floordiv(weights[0], c.attr_int("group"))};
    extents.insert(extents.end(), weights.begin() + 2, weights.end());
    kir::Value sum = b.reduce(kir::Op::add, b.number(dtype, 0), extents, [&](const Index& tap) {
      kir::Value channel = group * channels + tap[0];
      Index from{at[0], channel};
      Index weight{channel, at[1] - group * outputs};
      kir::Value reached;
      for (size_t i = 0; i < pads.size(); ++i) {
        kir::Value distance = at[i + 2] + b.integer(pads[i]) - tap[i + 1] * b.integer(attrs.dilations[i]);
        kir::Value stride = b.integer(attrs.strides[i]);
        kir::Value place = floordiv(distance, stride);
        kir::Value here =
            (b.integer(0) <= distance) & (place * stride == distance) & (place < b.integer((*c.dims(0))[i + 2]));
        reached = reached ? reached & here : here;
        from.push_back(place);
        weight.push_back(tap[i + 1]);
      }
      kir::Value product = cast(c.operand_if(reached, 0, from), dtype) * cast(c.operand(1, weight), dtype);
      return select(reached, product, b.number(dtype, 0));
    });
    if (c.has(2)) sum = sum + cast(c.operand(2, {at[1]}), dtype);
    return cast(sum, c.result_dtype());
  });
}

std::vector<Type> forward(const ForwardContext& c) {
  if (!c.dims(0) && !c.dims(1)) return {Type::tensor(c.dtype(0))};
  size_t rank = c.dims(0) ? c.rank(0) : c.rank(1);
  if (rank < 3 || (c.dims(1) && c.rank(1) != rank)) return {Type::tensor(c.dtype(0))};
  std::optional<SymDims> kernel = kernel_dims(c, 1);
  SymDims dims = c.dims(0) && kernel ? spatial_dims(c, std::span(*c.dims(0)).subspan(2), *kernel) : SymDims{};
  dims.insert(dims.begin(), {c.dims(0) ? c.dims(0)->at(0) : c.unknown(0, 0),
                             c.dims(1) ? c.dims(1)->at(1) * c.attr_int("group") : c.unknown(0, 1)});
  while (dims.size() < rank) dims.push_back(c.unknown(0, dims.size()));
  return {Type::tensor(c.dtype(0), dims)};
}

void backward(BackwardContext& c) {
  require_conv_ranks(c, 1);
  if (!c.dims(0)) return;
  require_kernel_shape(c, 1);
  const SymDims x = *c.dims(0);
  const SymDims w = *c.dims(1);
  int64_t group = c.attr_int("group");
  if (group < 1) fail("'group' is {}", group);
  c.equal(x[1], w[0]);
  c.equal(sym::mod(x[1], group), c.constant(0));
  std::span<const sym::Expr> kernel = std::span(w).subspan(2);
  for (sym::Expr size : kernel) c.less_equal(c.constant(1), size);
  require_natural(c, spatial_dims(c, std::span(x).subspan(2), kernel));
  if (c.has(2)) c.set_dims(2, SymDims{w[1] * group});
}

}  // namespace

OpDef conv_transpose_op() {
  std::vector<ir::AttrDef> attrs = conv_attrs();
  attrs.push_back(optional_attr("output_padding", AttrKind::integers));
  attrs.push_back(optional_attr("output_shape", AttrKind::integers));
  return {
      .name = "conv_transpose",
      .onnx = {"", "ConvTranspose", {1, 11, 22}},
      .doc = "the adjoint of a convolution: each input element adds a scaled kernel to the output",
      .operands = {{"x", float_tensor}, {"w", float_tensor}, {"b", float_tensor, optional}},
      .results = {{"y", float_tensor}},
      .attrs = std::move(attrs),
      .dynamism = isdos(),
      .mapping = Mapping::many_to_many,
      .forward = forward,
      .backward = backward,
      .value = absent("convolutions do not occur in shape arithmetic"),
      .eval = eval,
      .lower = lower,
      .grad = later::training,
      .samples = {{"$(f32[1, 1, 2]{1, 2}, f32[1, 1, 2]{1, 10}) {strides = [2]}", "f32[1, 1, 4]{1, 10, 2, 20}"},
                  {"$(f32[1, 1, 2]{1, 2}, f32[1, 1, 2]{1, 10}, f32[1]{100}) {pads = [1, 0]}", "f32[1, 1, 2]{112, 120}"},
                  {"$(f32[2, 4, 3, 3], f32[4, 2, 3, 2]) {group = 2, strides = [3, 2], output_shape = [10, 8]}",
                   "f32[2, 4, 10, 8]"},
                  {"$(f32[1, 1, 3], f32[1, 2, 3]) {strides = [2], auto_pad = \"SAME_UPPER\"}", "f32[1, 2, 6]"},
                  {"$(f32[0, 1, 2], f32[1, 1, 2])", "f32[0, 1, 3]"},
                  {"$(f32[1, 2, 3], f32[2, 1, 2], f32[1]) {strides = [3], output_padding = [2], kernel_shape = [2]}",
                   "f32[1, 1, 10]"},
                  {"$(f32[1, 1, 0], f32[1, 1, 3]) {strides = [2], dilations = [2], pads = [1, 0]}", "f32[1, 1, 2]"},
                  {"$(f32[2, 2, 1, 1], f32[2, 1, 2, 2]) {output_shape = [2, 1, 5, 1]}", "f32[2, 1, 5, 1]"},
                  {"$(f32[1, 2, 2], f32[1, 1, 2])", "error: do not fit weights"},
                  {"$(f32[1, 1, 1], f32[1, 1, 1]) {pads = [1, 1]}", "error: would have size -1"}},
  };
}

}  // namespace selkie::ops
