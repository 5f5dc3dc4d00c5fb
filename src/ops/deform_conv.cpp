// DeformConv: a convolution whose window elements are moved by learnt offsets and weighted by a mask.
#include "ops/support/conv.h"
#include "ops/support/dims.h"
#include "ops/support/interpolate.h"
#include "ops/support/record.h"
#include "ops/support/zeros.h"

namespace selkie::ops {
namespace {

// The neighbours of a real coordinate; what lies outside counts as zero.
std::vector<Weighted> neighbours(double x, int64_t size) {
  std::vector<Weighted> out;
  if (!(x > -1 && x < static_cast<double>(size))) return out;
  auto base = static_cast<int64_t>(std::floor(x));
  for (int64_t i = base; i <= base + 1; ++i)
    if (i >= 0 && i < size) out.push_back({i, linear_kernel(x - static_cast<double>(i))});
  return out;
}

struct Offsets {
  int64_t groups;
  std::vector<double> values;  // [batch, groups, kernel, axes, positions]
  std::vector<double> mask;    // [batch, groups, kernel, positions], or empty
};

Offsets offsets_of(const EvalContext& e, const ConvShape& s) {
  Offsets o{e.attr_int("offset_group"), {}, {}};
  if (o.groups < 1 || s.in_channels % o.groups != 0)
    fail("{} channels do not fall into {} offset groups", s.in_channels, o.groups);
  auto axes = static_cast<int64_t>(s.window.size());
  auto expect = [&](size_t i, int64_t channels) {
    Dims dims = s.output();
    dims[1] = channels;
    if (e.tensor(i).dims() != dims)
      fail("operand '{}' has shape {}, but must have {}", e.op().operands[i].name, to_string(e.tensor(i).dims()),
           to_string(dims));
    return widen<double>(e.tensor(i));
  };
  int64_t kernel = kernel_count(s.window);
  o.values = expect(2, o.groups * kernel * axes);
  if (e.has(4)) o.mask = expect(4, o.groups * kernel);
  return o;
}

// The columns [kernel, positions] of one plane, sampled at moved positions.
void gather_plane(const ConvShape& s, const Offsets& o, int64_t n, int64_t group, const double* plane,
                  double* columns) {
  Dims input = input_dims(s.window);
  Dims output = output_dims(s.window);
  int64_t positions = element_count(output);
  int64_t kernel = kernel_count(s.window);
  auto axes = s.window.size();
  std::vector<std::vector<Weighted>> at(axes);
  std::vector<int64_t> strides = strides_of(output);
  for (int64_t k = 0; k < kernel; ++k)
    for (int64_t p = 0; p < positions; ++p) {
      int64_t row = (n * o.groups + group) * kernel + k;
      int64_t rest = k;
      for (size_t i = axes; i-- > 0; rest /= s.window[i].kernel) {
        const WindowAxis& a = s.window[i];
        int64_t fixed = p / strides[i] % a.output * a.stride - a.pad_begin + rest % a.kernel * a.dilation;
        double moved =
            o.values[static_cast<size_t>((row * static_cast<int64_t>(axes) + static_cast<int64_t>(i)) * positions + p)];
        at[i] = neighbours(static_cast<double>(fixed) + moved, a.input);
      }
      double weight = o.mask.empty() ? 1 : o.mask[static_cast<size_t>(row * positions + p)];
      *columns++ = weight * weighted_sum(plane, input, std::span<const std::vector<Weighted>>(at));
    }
}

void eval(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  ConvShape s = conv_shape(e, x, e.tensor(1));
  Offsets o = offsets_of(e, s);
  Dims dims = s.output();
  int64_t from = product(x.dims(), 2, x.rank());
  int64_t to = product(dims, 2, x.rank());
  int64_t kernel = kernel_count(s.window);
  std::vector<double> values = widen<double>(x);
  std::vector<double> columns = zeros<double>(Dims{s.batch, s.in_channels, kernel, to});
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t c = 0; c < s.in_channels; ++c) {
      int64_t plane = n * s.in_channels + c;
      gather_plane(s, o, n, c / (s.in_channels / o.groups), values.data() + plane * from,
                   columns.data() + plane * kernel * to);
    }
  // What is left is a convolution over columns whose window is the whole kernel.
  ConvShape rest{
      s.batch, s.in_channels, s.out_channels, s.group, {{kernel, kernel, 1, 1, 0, 0, 1}, {to, 1, 1, 1, 0, 0, to}}};
  std::vector<double> y = zeros<double>(dims);
  convolve(rest, columns.data(), widen<double>(e.tensor(1)).data(), y.data());
  if (e.has(3)) {
    if (e.tensor(3).dims() != Dims{s.out_channels}) fail("the bias has shape {}", to_string(e.tensor(3).dims()));
    add_channel_bias<double>(y, widen<double>(e.tensor(3)), to);
  }
  e.set(0, narrow<double>(y, x.dtype(), dims));
}

// Offsets and mask have the result's dims, but for as many channels as there are window elements to move.
void backward(BackwardContext& c) {
  conv_backward(c, 1, 3);
  if (!c.dims(0)) return;
  const SymDims x = *c.dims(0);
  const SymDims w = *c.dims(1);
  int64_t groups = c.attr_int("offset_group");
  if (groups < 1) fail("'offset_group' is {}", groups);
  c.equal(sym::mod(x[1], groups), c.constant(0));
  std::span<const sym::Expr> kernel = std::span(w).subspan(2);
  SymDims dims = window_dims(c, std::span(x).subspan(2), kernel);
  dims.insert(dims.begin(), {x[0], product(c, kernel) * groups});
  c.set_dims(4, dims);
  dims[1] = dims[1] * static_cast<int64_t>(kernel.size());
  c.set_dims(2, dims);
}

}  // namespace

OpDef deform_conv_op() {
  return {
      .name = "deform_conv",
      .onnx = {"", "DeformConv", {19, 22}},
      .doc = "convolution whose window elements are moved by offsets and weighted by a mask",
      .operands = {{"x", float_tensor},
                   {"w", float_tensor},
                   {"offset", float_tensor},
                   {"b", float_tensor, optional},
                   {"mask", float_tensor, optional}},
      .results = {{"y", float_tensor}},
      .attrs = {optional_attr("dilations", AttrKind::integers), int_attr("group", 1),
                optional_attr("kernel_shape", AttrKind::integers), int_attr("offset_group", 1),
                optional_attr("pads", AttrKind::integers), optional_attr("strides", AttrKind::integers)},
      .dynamism = isdos(),
      .mapping = Mapping::many_to_many,
      .forward =
          [](const ForwardContext& c) { return std::vector<Type>{Type::tensor(c.dtype(0), conv_forward(c, 1))}; },
      .backward = backward,
      .value = absent("convolutions do not occur in shape arithmetic"),
      .eval = eval,
      .lower = later::cpu,
      .grad = later::training,
      .samples =
          {{"$(f32[1, 1, 3]{1, 2, 4}, f32[1, 1, 1]{10}, f32[1, 1, 3]{0.5, 0, 0.5}, f32[1]{100}, f32[1, 1, 3]{1, 2, 1})",
            "f32[1, 1, 3]{115, 140, 120}"},
           {"$(f32[2, 4, 5, 6], f32[6, 2, 2, 3], f32[2, 24, 4, 4]) {group = 2, offset_group = 2}", "f32[2, 6, 4, 4]"},
           {"$(f32[0, 1, 3], f32[1, 1, 2], f32[0, 2, 2])", "f32[0, 1, 2]"},
           {"$(f32[1, 1, 3], f32[1, 1, 2], f32[1, 2, 3])", "error: 'offset' has shape"},
           {"$(f32[1, 1, 3], f32[1, 1, 2], f32[1, 4, 2]) {offset_group = 2}", "error: 2 offset groups"}},
  };
}

}  // namespace selkie::ops
