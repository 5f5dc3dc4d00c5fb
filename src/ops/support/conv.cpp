#include "ops/support/conv.h"

#include <algorithm>

#include "base/convert.h"
#include "ops/support/dims.h"
#include "ops/support/gemm.h"
#include "ops/support/shape.h"
#include "ops/support/zeros.h"

namespace selkie::ops {
namespace {

// Positions whose windows are gathered at a time: bounds the memory of a large convolution.
constexpr int64_t block = 4096;

// For each kernel element and position, where the window's element is in a plane of the input; −1 in the padding.
std::vector<int64_t> window_offsets(const Window& window, int64_t begin, int64_t count) {
  std::vector<int64_t> out(affordable({kernel_count(window), count}, sizeof(int64_t)), -1);
  for_each_window(window, begin, begin + count, [&](int64_t position, std::span<const Tap> taps, int64_t) {
    for (const Tap& t : taps) out[static_cast<size_t>(t.kernel * count + position - begin)] = t.input;
  });
  return out;
}

}  // namespace

Dims ConvShape::output() const {
  Dims dims{batch, out_channels};
  for (const WindowAxis& a : window) dims.push_back(a.output);
  return dims;
}

ConvShape conv_shape(const ir::EvalContext& e, const Tensor& x, const Tensor& w) {
  if (x.rank() < 3 || w.rank() != x.rank())
    fail("an input of shape {} cannot be convolved with weights of shape {}", to_string(x.dims()), to_string(w.dims()));
  ConvShape s{x.dim(0), x.dim(1), w.dim(0), e.attr_int("group"), {}};
  if (s.group < 1 || s.in_channels % s.group != 0 || s.out_channels % s.group != 0 ||
      w.dim(1) != s.in_channels / s.group)
    fail("{} input channels in {} groups do not fit weights of shape {}", s.in_channels, s.group, to_string(w.dims()));
  auto spatial = std::span(x.dims()).subspan(2);
  s.window = make_window(window_attrs(e, spatial.size()), spatial, kernel_shape(e, std::span(w.dims()).subspan(2)));
  return s;
}

template <class T>
void convolve(const ConvShape& s, const T* x, const T* w, T* y) {
  int64_t from = element_count(input_dims(s.window));
  int64_t to = element_count(output_dims(s.window));
  int64_t channels = s.in_channels / s.group;
  int64_t outputs = s.out_channels / s.group;
  int64_t depth = channels * kernel_count(s.window);
  if (s.batch == 0 || outputs == 0) return;
  for (int64_t begin = 0; begin < to; begin += block) {
    int64_t count = std::min(block, to - begin);
    std::vector<int64_t> offsets = window_offsets(s.window, begin, count);
    std::vector<T> columns = zeros<T>({depth, count});
    std::vector<T> product(static_cast<size_t>(outputs * count));
    for (int64_t n = 0; n < s.batch; ++n)
      for (int64_t g = 0; g < s.group; ++g) {
        T* column = columns.data();
        for (int64_t c = 0; c < channels; ++c) {
          const T* plane = x + (n * s.in_channels + g * channels + c) * from;
          for (int64_t at : offsets) *column++ = at < 0 ? T{} : plane[at];
        }
        gemm(w + g * outputs * depth, columns.data(), product.data(), outputs, count, depth);
        for (int64_t m = 0; m < outputs; ++m)
          std::copy_n(product.data() + m * count, count, y + (n * s.out_channels + g * outputs + m) * to + begin);
      }
  }
}
template void convolve(const ConvShape&, const float*, const float*, float*);
template void convolve(const ConvShape&, const double*, const double*, double*);
template void convolve(const ConvShape&, const int64_t*, const int64_t*, int64_t*);

std::optional<ir::SymDims> kernel_dims(const ir::ShapeContext& c, size_t w) {
  if (const ir::Attribute* given = c.find_attr("kernel_shape"))
    return constants(c, std::get<std::vector<int64_t>>(*given));
  if (!c.dims(w) || c.rank(w) < 3) return std::nullopt;
  return ir::SymDims(c.dims(w)->begin() + 2, c.dims(w)->end());
}

std::optional<ir::SymDims> conv_forward(const ir::ForwardContext& c, size_t w) {
  if (c.dims(0) && c.dims(w) && (c.rank(0) < 3 || c.rank(0) != c.rank(w)))
    fail("the input has rank {} and the weights rank {}, but both must have the same, at least 3", c.rank(0),
         c.rank(w));
  std::optional<ir::SymDims> kernel = kernel_dims(c, w);
  if (!c.dims(0) && !c.dims(w) && !kernel) return std::nullopt;
  size_t rank = c.dims(0) ? c.rank(0) : c.dims(w) ? c.rank(w) : kernel->size() + 2;
  if (rank < 3 || (c.dims(w) && c.rank(w) != rank)) return std::nullopt;
  ir::SymDims dims = c.dims(0) && kernel ? window_dims(c, std::span(*c.dims(0)).subspan(2), *kernel) : ir::SymDims{};
  dims.insert(dims.begin(),
              {c.dims(0) ? c.dims(0)->at(0) : c.unknown(0, 0), c.dims(w) ? c.dims(w)->at(0) : c.unknown(0, 1)});
  while (dims.size() < rank) dims.push_back(c.unknown(0, dims.size()));
  return dims;
}

void require_conv_ranks(ir::BackwardContext& c, size_t w) {
  const ir::Attribute* kernel = c.find_attr("kernel_shape");
  std::optional<size_t> rank;
  if (c.dims(0))
    rank = c.rank(0);
  else if (c.dims(w))
    rank = c.rank(w);
  else if (c.result_dims(0))
    rank = c.result_dims(0)->size();
  else if (kernel != nullptr)
    rank = std::get<std::vector<int64_t>>(*kernel).size() + 2;
  if (!rank) return;
  if (*rank < 3) fail("an input of rank {} cannot be convolved", *rank);
  c.set_rank(0, *rank);
  c.set_rank(w, *rank);
}

void require_kernel_shape(ir::BackwardContext& c, size_t w) {
  const ir::Attribute* given = c.find_attr("kernel_shape");
  if (given == nullptr) return;
  ir::SymDims dims = constants(c, std::get<std::vector<int64_t>>(*given));
  dims.insert(dims.begin(), 2, sym::Expr());
  c.set_dims(w, dims);
}

void conv_backward(ir::BackwardContext& c, size_t w, std::optional<size_t> bias) {
  require_conv_ranks(c, w);
  if (!c.dims(0)) return;
  require_kernel_shape(c, w);
  const ir::SymDims x = *c.dims(0);
  const ir::SymDims weights = *c.dims(w);
  int64_t group = c.attr_int("group");
  if (group < 1) fail("'group' is {}", group);
  c.equal(x[1], weights[1] * group);
  c.equal(mod(weights[0], group), c.constant(0));
  require_windows_fit(c, std::span(x).subspan(2), std::span(weights).subspan(2));
  if (bias) c.set_dims(*bias, std::span(weights).first(1));
  if (!c.result_dims(0) || c.result_dims(0)->size() != x.size()) return;
  c.equal(x[0], c.result_dims(0)->at(0));
  c.equal(weights[0], c.result_dims(0)->at(1));
}

std::vector<ir::AttrDef> conv_attrs() {
  using ir::AttrKind;
  return {ir::string_attr("auto_pad", "NOTSET"),
          ir::optional_attr("dilations", AttrKind::integers),
          ir::int_attr("group", 1),
          ir::optional_attr("kernel_shape", AttrKind::integers),
          ir::optional_attr("pads", AttrKind::integers),
          ir::optional_attr("strides", AttrKind::integers)};
}

namespace {

template <class T>
Tensor run(const ir::EvalContext& e, const ConvShape& shape, const T* x, const T* w) {
  Dims dims = shape.output();
  std::vector<T> y = zeros<T>(dims);
  convolve(shape, x, w, y.data());
  if (e.has(2)) add_channel_bias<T>(y, widen<T>(e.tensor(2)), product(dims, 2, static_cast<int64_t>(dims.size())));
  return narrow<T>(y, e.tensor(0).dtype(), dims);
}

}  // namespace

Tensor convolve_operands(const ir::EvalContext& e) {
  const Tensor& x = e.tensor(0);
  const Tensor& w = e.tensor(1);
  ConvShape shape = conv_shape(e, x, w);
  if (e.has(2) && e.tensor(2).dims() != Dims{shape.out_channels})
    fail("the bias has shape {}, but there are {} output channels", to_string(e.tensor(2).dims()), shape.out_channels);
  if (x.dtype() == DType::f32) return run(e, shape, x.data<float>(), w.data<float>());
  return run(e, shape, widen<double>(x).data(), widen<double>(w).data());
}

}  // namespace selkie::ops
