// DFT and STFT: discrete Fourier transforms along an axis, and of overlapping frames of a signal.
#include "ops/support/dims.h"
#include "ops/support/fourier.h"
#include "ops/support/record.h"
#include "ops/support/zeros.h"

namespace selkie::ops {
namespace {

using Complex = std::complex<double>;

constexpr TypeVar type{"T1", dtypes::floats};
constexpr TypeVar size_type{"T2", dtypes::indices};

// The numbers of a tensor whose last axis holds real, or real and imaginary parts.
std::vector<Complex> complex_values(const Tensor& x, std::string_view what) {
  if (x.rank() < 2 || (x.dims().back() != 1 && x.dims().back() != 2))
    fail("{} has shape {}, but its last axis must hold one or two parts", what, to_string(x.dims()));
  std::vector<double> parts = widen<double>(x);
  auto each = static_cast<size_t>(x.dims().back());
  std::vector<Complex> out(parts.size() / each);
  for (size_t i = 0; i < out.size(); ++i) out[i] = {parts[i * each], each == 2 ? parts[i * each + 1] : 0};
  return out;
}

int64_t checked_length(int64_t length) {
  if (length < 1 || length > int64_t{1} << 30) fail("a transform of length {} cannot be made", length);
  return length;
}

// The whole spectrum of a real signal from its first half.
void mirror(std::vector<Complex>& line, size_t known) {
  for (size_t k = line.size() / 2 + 1; k < line.size(); ++k)
    if (line.size() - k < known) line[k] = std::conj(line[line.size() - k]);
  line[0].imag(0);
  if (line.size() % 2 == 0) line[line.size() / 2].imag(0);
}

void eval_dft(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  std::vector<Complex> values = complex_values(x, "the input");
  int64_t axis = normalize_axis(e.has(2) ? int_of(e.tensor(2)) : -2, x.rank());
  if (axis == x.rank() - 1) fail("the last axis holds the parts of numbers and is not transformed");
  bool inverse = e.attr_int("inverse") != 0;
  bool onesided = e.attr_int("onesided") != 0;
  if (onesided && !inverse && x.dims().back() != 1) fail("a one-sided transform needs a real signal");
  int64_t size = x.dim(axis);
  int64_t length = checked_length(e.has(1) ? int_of(e.tensor(1)) : onesided && inverse ? 2 * (size - 1) : size);
  Dims dims = x.dims();
  dims.back() = onesided && inverse ? 1 : 2;
  int64_t kept = onesided && !inverse ? length / 2 + 1 : length;
  dims[static_cast<size_t>(axis)] = kept;
  std::vector<double> out = zeros<double>(dims);
  int64_t inner = product(x.dims(), axis + 1, x.rank() - 1);
  int64_t outer = product(x.dims(), 0, axis);
  int64_t parts = dims.back();
  for (int64_t i = 0; i < outer && inner > 0; ++i)
    for (int64_t j = 0; j < inner; ++j) {
      std::vector<Complex> line(static_cast<size_t>(length));
      int64_t used = std::min(onesided && inverse ? std::min(size, length / 2 + 1) : size, length);
      for (int64_t k = 0; k < used; ++k)
        line[static_cast<size_t>(k)] = values[static_cast<size_t>((i * size + k) * inner + j)];
      if (onesided && inverse) mirror(line, static_cast<size_t>(used));
      line = fourier(std::move(line), inverse);
      for (int64_t k = 0; k < kept; ++k) {
        auto at = static_cast<size_t>(((i * kept + k) * inner + j) * parts);
        out[at] = line[static_cast<size_t>(k)].real();
        if (parts == 2) out[at + 1] = line[static_cast<size_t>(k)].imag();
      }
    }
  e.set(0, narrow<double>(out, x.dtype(), dims));
}

void eval_stft(EvalContext& e) {
  const Tensor& signal = e.tensor(0);
  if (signal.rank() != 3) fail("the signal has shape {}, but must be of rank 3", to_string(signal.dims()));
  std::vector<Complex> values = complex_values(signal, "the signal");
  bool onesided = e.attr_int("onesided") != 0;
  if (onesided && signal.dim(2) != 1) fail("a one-sided transform needs a real signal");
  int64_t step = int_of(e.tensor(1));
  if (step < 1) fail("'frame_step' is {}, but must be at least 1", step);
  if (e.has(2) && e.tensor(2).rank() != 1)
    fail("'window' has shape {}, but must be of rank 1", to_string(e.tensor(2).dims()));
  int64_t length = checked_length(e.has(3) ? int_of(e.tensor(3)) : e.has(2) ? e.tensor(2).dim(0) : signal.dim(1));
  if (e.has(2) && e.tensor(2).dim(0) != length)
    fail("'window' has {} elements for frames of {}", e.tensor(2).dim(0), length);
  if (length > signal.dim(1)) fail("frames of {} are longer than a signal of {}", length, signal.dim(1));
  std::vector<double> window =
      e.has(2) ? widen<double>(e.tensor(2)) : std::vector<double>(static_cast<size_t>(length), 1);
  int64_t frames = 1 + (signal.dim(1) - length) / step;
  int64_t kept = onesided ? length / 2 + 1 : length;
  Dims dims{signal.dim(0), frames, kept, 2};
  std::vector<double> out;
  out.reserve(affordable(dims, sizeof(double)));
  for (int64_t b = 0; b < signal.dim(0); ++b)
    for (int64_t f = 0; f < frames; ++f) {
      std::vector<Complex> line(static_cast<size_t>(length));
      for (size_t i = 0; i < line.size(); ++i)
        line[i] = values[static_cast<size_t>(b * signal.dim(1) + f * step) + i] * window[i];
      line = fourier(std::move(line), false);
      for (int64_t k = 0; k < kept; ++k) {
        out.push_back(line[static_cast<size_t>(k)].real());
        out.push_back(line[static_cast<size_t>(k)].imag());
      }
    }
  e.set(0, narrow<double>(out, signal.dtype(), dims));
}

// The transformed axis, where it is known.
std::optional<size_t> dft_axis(const ir::ShapeContext& c, size_t rank) {
  std::optional<std::vector<int64_t>> given = c.has(2) ? c.numbers(2) : std::vector<int64_t>{-2};
  if (!given || given->size() != 1) return rank == 2 ? std::optional(size_t{0}) : std::nullopt;
  return static_cast<size_t>(normalize_axis((*given)[0], static_cast<int64_t>(rank)));
}

std::optional<sym::Expr> scalar(const std::optional<ir::SymElements>& elements) {
  return elements && elements->size() == 1 ? std::optional(elements->at(0)) : std::nullopt;
}

std::vector<Type> forward_dft(const ForwardContext& c) {
  if (!c.dims(0) || c.rank(0) < 2) return {Type::tensor(c.dtype(0))};
  bool inverse = c.attr_int("inverse") != 0;
  bool onesided = c.attr_int("onesided") != 0;
  std::optional<sym::Expr> given = scalar(c.elements(1));
  SymDims dims = *c.dims(0);
  auto transformed = [&](sym::Expr size) {
    if (!c.has(1)) given = onesided && inverse ? (size - 1) * 2 : size;
    return onesided && !inverse ? sym::floordiv(*given, 2) + 1 : *given;
  };
  bool decided = !c.has(1) || given;
  if (std::optional<size_t> axis = dft_axis(c, dims.size())) {
    dims[*axis] = decided ? transformed(dims[*axis]) : c.unknown(0, *axis);
  } else if (c.has(1) || onesided) {  // else the length is that of the axis, whichever it is
    for (size_t i = 0; i + 1 < dims.size(); ++i) dims[i] = c.unknown(0, i);
  }
  dims.back() = c.constant(onesided && inverse ? 1 : 2);
  return {Type::tensor(c.dtype(0), dims)};
}

// The last axis holds one or two parts; one-sided transforms need real numbers.
void require_parts(BackwardContext& c, sym::Expr parts, bool real) {
  c.less_equal(c.constant(1), parts);
  c.less_equal(parts, c.constant(real ? 1 : 2));
}

void backward_dft(BackwardContext& c) {
  if (std::optional<sym::Expr> length = scalar(c.contents(1))) c.less_equal(c.constant(1), *length);
  if (c.result_dims(0)) {
    SymDims dims = *c.result_dims(0);
    std::optional<size_t> axis = dft_axis(c, dims.size());
    for (size_t i = 0; i < dims.size(); ++i)
      if (i + 1 == dims.size() || axis.value_or(i) == i) dims[i] = {};
    c.set_dims(0, dims);
  }
  if (!c.dims(0) || c.rank(0) < 2) return;
  const SymDims x = *c.dims(0);
  bool inverse = c.attr_int("inverse") != 0;
  bool onesided = c.attr_int("onesided") != 0;
  require_parts(c, x.back(), onesided && !inverse);
  std::optional<size_t> axis = dft_axis(c, x.size());
  if (axis && !c.has(1)) c.less_equal(c.constant(onesided && inverse ? 2 : 1), x[*axis]);
}

// The length of a frame: given, or that of the window, or of the whole signal.
std::optional<sym::Expr> frame_length(const ir::ShapeContext& c, const std::optional<ir::SymElements>& given) {
  if (c.has(3)) return scalar(given);
  size_t from = c.has(2) ? 2 : 0;
  size_t axis = c.has(2) ? 0 : 1;
  return c.dims(from) && c.rank(from) > axis ? std::optional(c.dims(from)->at(axis)) : std::nullopt;
}

std::vector<Type> forward_stft(const ForwardContext& c) {
  std::optional<sym::Expr> length = frame_length(c, c.elements(3));
  std::optional<sym::Expr> step = scalar(c.elements(1));
  bool known = c.dims(0) && c.rank(0) == 3;
  bool onesided = c.attr_int("onesided") != 0;
  SymDims dims{known ? c.dims(0)->at(0) : c.unknown(0, 0),
               known && length && step ? sym::floordiv(c.dims(0)->at(1) - *length, *step) + 1 : c.unknown(0, 1),
               !length    ? c.unknown(0, 2)
               : onesided ? sym::floordiv(*length, 2) + 1
                          : *length,
               c.constant(2)};
  return {Type::tensor(c.dtype(0), dims)};
}

void backward_stft(BackwardContext& c) {
  c.set_rank(0, 3);
  if (c.has(2)) c.set_rank(2, 1);
  const SymDims signal = *c.dims(0);
  require_parts(c, signal[2], c.attr_int("onesided") != 0);
  if (std::optional<sym::Expr> step = scalar(c.contents(1))) c.less_equal(c.constant(1), *step);
  std::optional<sym::Expr> length = frame_length(c, c.contents(3));
  if (!length) return;
  c.less_equal(c.constant(1), *length);
  c.less_equal(*length, signal[1]);
  c.set_dims(2, SymDims{*length});
}

// Opset 17 had the axis as an attribute, by default 1.
void axis_to_operand(UpgradeContext& c) {
  set_default("axis", int64_t{1})(c);
  attr_to_operand("axis", 2)(c);
}

OpDef dft() {
  return {
      .name = "dft",
      .onnx = {"", "DFT", {17, 20}},
      .doc = "the discrete Fourier transform along one axis; the last axis holds real and imaginary parts",
      .operands = {{"input", type}, {"dft_length", size_type, optional}, {"axis", i64_tensor, optional}},
      .results = {{"output", type}},
      .attrs = {int_attr("inverse", 0), int_attr("onesided", 0)},
      .dynamism = isvdos({"dft_length", "axis"}),
      .mapping = Mapping::many_to_many,
      .forward = forward_dft,
      .backward = backward_dft,
      .value = absent("transforms do not occur in shape arithmetic"),
      .eval = eval_dft,
      .lower = later::cpu,
      .grad = later::training,
      .upgrades = {{20, axis_to_operand}},
      .samples = {{"$(f32[1, 2, 1]{1, 3})", "f32[1, 2, 2]{4, 0, -2, 0}"},
                  {"$(f32[1, 3, 1]{1, 1, 1}, _, i64[]{1}) {onesided = 1}", "f32[1, 2, 2]{3, 0, 0, 0}"},
                  {"$(f32[1, 2, 2]{4, 0, -2, 0}) {inverse = 1, onesided = 1}", "f32[1, 2, 1]{1, 3}"},
                  {"$(f32[2, 3, 4, 1], i64[]{6}, i64[]{1})", "f32[2, 6, 4, 2]"},
                  {"$(f32[0, 3, 1])", "f32[0, 3, 2]"},
                  {"$(f32[2, 3, 5, 1], i32[]{7}, i64[]{-3}) {onesided = 1}", "f32[2, 4, 5, 2]"},
                  {"$(f32[1, 2, 2], i64[]{5}) {inverse = 1, onesided = 1}", "f32[1, 5, 1]"},
                  {"$(f32[1, 1], _, i64[1]{0})", "f32[1, 2]"},
                  {"$(f32[1, 3, 3])", "error: one or two parts"},
                  {"$(f32[1, 3, 1], i64[]{0})", "error: length 0"}},
  };
}

OpDef stft() {
  OpDef op = dft();
  op.name = "stft";
  op.onnx = {"", "STFT", {17}};
  op.doc = "the discrete Fourier transforms of overlapping, windowed frames of a signal";
  op.operands = {
      {"signal", type}, {"frame_step", size_type}, {"window", type, optional}, {"frame_length", size_type, optional}};
  op.attrs = {int_attr("onesided", 1)};
  op.dynamism = isvdos({"frame_step", "frame_length"});
  op.forward = forward_stft;
  op.backward = backward_stft;
  op.eval = eval_stft;
  op.upgrades = {};
  op.samples = {{"$(f32[1, 4, 1]{1, 3, 2, 2}, i64[]{2}, f32[2]{1, 1})", "f32[1, 2, 2, 2]{4, 0, -2, 0, 4, 0, 0, 0}"},
                {"$(f32[2, 9, 2], i32[]{2}, _, i32[]{4}) {onesided = 0}", "f32[2, 3, 4, 2]"},
                {"$(f32[0, 4, 1], i64[]{2}, _, i64[]{2})", "f32[0, 2, 2, 2]"},
                {"$(f32[1, 4, 1], i64[]{3})", "f32[1, 1, 3, 2]"},
                {"$(f32[1, 5, 1], i64[1]{1}, f32[3], i64[1]{3})", "f32[1, 3, 2, 2]"},
                {"$(f32[1, 4, 1], i64[]{0}, _, i64[]{2})", "error: 'frame_step' is 0"},
                {"$(f32[1, 4, 1], i64[]{1}, _, i64[]{5})", "error: longer than a signal"}};
  return op;
}

}  // namespace

std::vector<OpDef> dft_family() { return {dft(), stft()}; }

}  // namespace selkie::ops
