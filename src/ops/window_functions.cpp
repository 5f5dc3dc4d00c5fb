// BlackmanWindow, HammingWindow and HannWindow, and the matrix of mel filters.
#include <cmath>
#include <numbers>

#include "ops/support/record.h"

namespace selkie::ops {
namespace {

constexpr TypeVar size_type{"T1", dtypes::indices};
constexpr TypeVar result_type{"T2", dtypes::numeric};

// a − b·cos x + c·cos 2x.
struct Row {
  std::string_view name;
  std::string_view onnx;
  std::string_view doc;
  double a, b, c;
  std::string_view expect;  // of size 2, periodic
};

const Row rows[] = {
    {"blackman_window", "BlackmanWindow", "the Blackman window", 0.42, 0.5, 0.08, "f32[2]{0, 1}"},
    {"hamming_window", "HammingWindow", "the Hamming window", 25.0 / 46, 21.0 / 46, 0, "f32[2]{0.08695652, 1}"},
    {"hann_window", "HannWindow", "the Hann window", 0.5, 0.5, 0, "f32[2]{0, 1}"},
};

DType result_dtype(const EvalContext& e) {
  DType dtype = e.attr_dtype("output_datatype");
  if (!dtypes::numeric.contains(dtype)) fail("a result of type {} cannot be made", name(dtype));
  return dtype;
}

void eval_window(const Row& row, EvalContext& e) {
  int64_t size = int_of(e.tensor(0));
  DType dtype = result_dtype(e);
  if (size < 0) fail("the size is {}", size);
  double period = static_cast<double>(e.attr_int("periodic") != 0 ? size : size - 1);
  Tensor out(dtype, {size});
  std::vector<double> values(static_cast<size_t>(size));
  for (size_t i = 0; i < values.size(); ++i) {
    double x = period == 0 ? 0 : 2 * std::numbers::pi * static_cast<double>(i) / period;
    values[i] = row.a - row.b * std::cos(x) + row.c * std::cos(2 * x);
  }
  // A window of integers is cut, not rounded, as a cast does.
  e.set(0, narrow<double>(values, dtype, out.dims()));
}

// The element of a size operand, which has one; null where even its rank is not known.
sym::Expr size_of(const ForwardContext& c, size_t operand) {
  std::optional<ir::SymElements> elements = c.elements(operand);
  return elements && elements->size() == 1 ? elements->front() : sym::Expr();
}

std::vector<Type> result_of(const ForwardContext& c, SymDims dims) {
  std::optional<DType> dtype = dtype_from_onnx(c.attr_int("output_datatype"));
  if (!dtype) return {Type{}};
  for (size_t i = 0; i < dims.size(); ++i)
    if (!dims[i]) dims[i] = c.unknown(0, i);
  return {Type::tensor(*dtype, std::move(dims))};
}

std::vector<Type> forward_window(const ForwardContext& c) { return result_of(c, {size_of(c, 0)}); }

std::vector<Type> forward_mel(const ForwardContext& c) {
  sym::Expr length = size_of(c, 1);
  return result_of(c, {length ? sym::floordiv(length, 2) + 1 : length, size_of(c, 0)});
}

// Sizes are natural.
template <size_t count>
void backward(BackwardContext& c) {
  for (size_t i = 0; i < count; ++i)
    for (sym::Expr e : c.contents(i).value_or(ir::SymElements{})) c.less_equal(c.constant(0), e);
}

OpDef record(const Row& row) {
  return {
      .name = row.name,
      .onnx = {"", row.onnx, {17}},
      .doc = row.doc,
      .operands = {{"size", size_type}},
      .results = {{"output", result_type}},
      .attrs = {int_attr("output_datatype", 1), int_attr("periodic", 1)},
      .dynamism = isvdos({"size"}),
      .mapping = Mapping::one_to_many,
      .forward = forward_window,
      .backward = backward<1>,
      .value = absent("windows do not occur in shape arithmetic"),
      .eval = [row](EvalContext& e) { eval_window(row, e); },
      .lower = later::cpu,
      .grad = absent("the operand is an integer"),
      .samples = {{"$(i64[]{2})", row.expect},
                  {"$(i32[]{5}) {periodic = 0, output_datatype = 11}", "f64[5]"},
                  {"$(i64[]{1}) {periodic = 0}", "f32[1]"},
                  {"$(i64[]{0})", "f32[0]"},
                  {"$(i64[]{-1})", "error: the size is -1"},
                  {"$(i64[]{1}) {output_datatype = 8}", "error: type str"}},
  };
}

double to_mel(double hertz) { return 2595 * std::log10(1 + hertz / 700); }
double from_mel(double mel) { return 700 * (std::pow(10, mel / 2595) - 1); }

// The bins of the spectrum between which the triangles of the filters stand.
std::vector<int64_t> edges(int64_t filters, double low, double high, int64_t length, int64_t rate) {
  std::vector<int64_t> out;
  double step = (to_mel(high) - to_mel(low)) / static_cast<double>(filters + 2);
  for (int64_t i = 0; i < filters + 2; ++i) {
    double bin = std::floor((static_cast<double>(length) + 1) * from_mel(static_cast<double>(i) * step + to_mel(low)) /
                            static_cast<double>(rate));
    if (!(bin >= 0 && bin < 0x1p40)) fail("edges of {} and {} Hz do not give bins of the spectrum", low, high);
    out.push_back(static_cast<int64_t>(bin));
  }
  return out;
}

void eval_mel(EvalContext& e) {
  int64_t filters = int_of(e.tensor(0));
  int64_t length = int_of(e.tensor(1));
  int64_t rate = int_of(e.tensor(2));
  DType dtype = result_dtype(e);
  if (filters < 0 || length < 0 || rate < 1)
    fail("{} filters of length {} at rate {} cannot be made", filters, length, rate);
  Dims dims{length / 2 + 1, filters};
  std::vector<double> out(static_cast<size_t>(Tensor(dtype, dims).count()));
  std::vector<int64_t> at = edges(filters, double_of(e.tensor(3)), double_of(e.tensor(4)), length, rate);
  for (size_t i = 0; i + 2 < at.size(); ++i) {
    int64_t low = at[i], centre = at[i + 1], high = at[i + 2];
    if (low > centre || centre > high || high > dims[0])
      fail("the edges of filter {} are {}, {} and {} in a spectrum of {}", i, low, centre, high, dims[0]);
    auto set = [&](int64_t bin, double v) {
      if (bin >= dims[0]) fail("filter {} reaches bin {} of a spectrum of {}", i, bin, dims[0]);
      out[static_cast<size_t>(bin * filters) + i] = v;
    };
    if (low == centre)
      set(centre, 1);
    else
      for (int64_t j = low; j <= centre; ++j) set(j, static_cast<double>(j - low) / static_cast<double>(centre - low));
    for (int64_t j = centre; j < high; ++j) set(j, static_cast<double>(high - j) / static_cast<double>(high - centre));
  }
  e.set(0, narrow<double>(out, dtype, dims));
}

OpDef mel() {
  TypeVar edge_type{"T2", dtypes::floats};
  OpDef op = record(rows[0]);
  op.name = "mel_weight_matrix";
  op.onnx = {"", "MelWeightMatrix", {17}};
  op.doc = "the weights of triangular filters on the mel scale, one column each, for the bins of a spectrum";
  op.operands = {{"num_mel_bins", size_type},
                 {"dft_length", size_type},
                 {"sample_rate", size_type},
                 {"lower_edge_hertz", edge_type},
                 {"upper_edge_hertz", edge_type}};
  op.results = {{"output", {"T3", dtypes::numeric}}};
  op.attrs = {int_attr("output_datatype", 1)};
  op.dynamism = isvdos({"num_mel_bins", "dft_length"});
  op.forward = forward_mel;
  op.backward = backward<2>;
  op.eval = eval_mel;
  op.samples = {{"$(i64[]{8}, i64[]{16}, i64[]{8192}, f32[]{0}, f32[]{4096})", "f32[9, 8]"},
                {"$(i64[]{0}, i64[]{16}, i64[]{8192}, f32[]{0}, f32[]{4096})", "f32[9, 0]"},
                {"$(i64[]{8}, i64[]{16}, i64[]{0}, f32[]{0}, f32[]{4096})", "error: at rate 0"},
                {"$(i64[]{8}, i64[]{16}, i64[]{8192}, f32[]{4096}, f32[]{0})", "error: the edges of filter"}};
  return op;
}

}  // namespace

std::vector<OpDef> window_functions_family() {
  std::vector<OpDef> family{mel()};
  for (const Row& row : rows) family.push_back(record(row));
  return family;
}

}  // namespace selkie::ops
