// DFT and STFT: discrete Fourier transforms along an axis, and of overlapping frames of a signal.
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
  for (int64_t i = 0; i < outer; ++i)
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
      .forward = later::rdp,
      .backward = later::rdp,
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
  op.eval = eval_stft;
  op.upgrades = {};
  op.samples = {{"$(f32[1, 4, 1]{1, 3, 2, 2}, i64[]{2}, f32[2]{1, 1})", "f32[1, 2, 2, 2]{4, 0, -2, 0, 4, 0, 0, 0}"},
                {"$(f32[2, 9, 2], i32[]{2}, _, i32[]{4}) {onesided = 0}", "f32[2, 3, 4, 2]"},
                {"$(f32[0, 4, 1], i64[]{2}, _, i64[]{2})", "f32[0, 2, 2, 2]"},
                {"$(f32[1, 4, 1], i64[]{0}, _, i64[]{2})", "error: 'frame_step' is 0"},
                {"$(f32[1, 4, 1], i64[]{1}, _, i64[]{5})", "error: longer than a signal"}};
  return op;
}

}  // namespace

std::vector<OpDef> dft_family() { return {dft(), stft()}; }

}  // namespace selkie::ops
