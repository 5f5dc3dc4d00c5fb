// GridSample: elements of an image, interpolated at the positions that a grid gives.
#include "ops/support/interpolate.h"
#include "ops/support/record.h"
#include "ops/support/zeros.h"

namespace selkie::ops {
namespace {

constexpr TypeVar type{"T1", dtypes::numeric | dtypes::boolean | dtypes::string | dtypes::complex};
constexpr TypeVar grid_type{"T2", dtypes::floats};

enum class Padding : uint8_t { zeros, border, reflection };

struct Options {
  std::string mode;
  Padding padding;
  bool align_corners;
};

// Mirrors x at the borders until it lies between them.
double reflect(double x, double low, double high) {
  double range = high - low;
  if (range <= 0) return low;
  double beyond = std::fmod(std::fabs(x - low), 2 * range);
  return low + (beyond > range ? 2 * range - beyond : beyond);
}

// A coordinate of the grid as one of the image, brought inside as the padding asks.
double locate(const Options& o, double at, int64_t size) {
  auto n = static_cast<double>(size);
  double x = o.align_corners ? (at + 1) / 2 * (n - 1) : ((at + 1) * n - 1) / 2;
  if (o.mode == "nearest") x = std::nearbyint(x);
  double low = o.align_corners ? 0 : -0.5;
  double high = o.align_corners ? n - 1 : n - 0.5;
  if (std::isnan(x)) return -1;
  if (x >= low && x <= high) return x;
  if (o.padding == Padding::border) return std::clamp(x, 0.0, n - 1);
  // Far outside is as good as a little outside, and fits an integer.
  return o.padding == Padding::reflection ? reflect(x, low, high) : std::clamp(x, -4.0, n + 4);
}

// The neighbour at an index that may be outside: nothing if it counts as zero.
void add(const Options& o, std::vector<Weighted>& out, int64_t index, double weight, int64_t size) {
  if (index < 0 || index >= size) {
    if (o.padding == Padding::zeros) return;
    if (o.padding == Padding::reflection) {
      double low = o.align_corners ? 0 : -0.5;
      index = static_cast<int64_t>(reflect(static_cast<double>(index), low, static_cast<double>(size - 1) - low));
    }
    index = std::clamp<int64_t>(index, 0, size - 1);
  }
  out.push_back({index, weight});
}

std::vector<Weighted> neighbours(const Options& o, double at, int64_t size) {
  double x = locate(o, at, size);
  std::vector<Weighted> out;
  if (o.mode == "nearest") {
    add(o, out, static_cast<int64_t>(x), 1, size);
    return out;
  }
  auto base = static_cast<int64_t>(std::floor(x));
  bool linear = o.mode == "linear";
  for (int64_t i = linear ? 0 : -1; i <= (linear ? 1 : 2); ++i) {
    double distance = x - static_cast<double>(base + i);
    add(o, out, base + i, linear ? linear_kernel(distance) : cubic_kernel(distance, -0.75), size);
  }
  return out;
}

Options options_of(const EvalContext& e) {
  Options o{e.attr_string("mode"), Padding::zeros, e.attr_int("align_corners") != 0};
  const std::string& padding = e.attr_string("padding_mode");
  if (padding == "border")
    o.padding = Padding::border;
  else if (padding == "reflection")
    o.padding = Padding::reflection;
  else if (padding != "zeros")
    fail("there is no padding mode '{}'", padding);
  if (o.mode != "linear" && o.mode != "nearest" && o.mode != "cubic") fail("there is no mode '{}'", o.mode);
  return o;
}

void eval(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  const Tensor& grid = e.tensor(1);
  Options o = options_of(e);
  if (x.rank() < 3 || grid.rank() != x.rank() || grid.dim(0) != x.dim(0) || grid.dims().back() != x.rank() - 2)
    fail("a grid of shape {} does not fit an image of shape {}", to_string(grid.dims()), to_string(x.dims()));
  auto spatial = std::span(x.dims()).subspan(2);
  Dims dims{x.dim(0), x.dim(1)};
  dims.insert(dims.end(), grid.dims().begin() + 1, grid.dims().end() - 1);
  int64_t size = product(x.dims(), 2, x.rank());
  int64_t points = product(dims, 2, x.rank());
  if (size == 0 && element_count(dims) > 0) fail("an image of shape {} has no elements to sample", to_string(x.dims()));
  std::vector<double> at = widen<double>(grid);
  auto run = [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<T> values = widen<T>(x);
    std::vector<T> out = zeros<T>(dims);
    std::vector<std::vector<Weighted>> axes(spatial.size());
    for (int64_t n = 0; n < x.dim(0); ++n)
      for (int64_t p = 0; p < points; ++p) {
        // The grid names coordinates from the innermost axis outwards.
        for (size_t i = 0; i < axes.size(); ++i) {
          double c = at[static_cast<size_t>(n * points + p) * axes.size() + axes.size() - 1 - i];
          axes[i] = neighbours(o, c, spatial[i]);
        }
        for (int64_t c = 0; c < x.dim(1); ++c) {
          const T* plane = values.data() + (n * x.dim(1) + c) * size;
          T& to = out[static_cast<size_t>((n * x.dim(1) + c) * points + p)];
          if constexpr (std::is_same_v<T, std::string>) {
            int64_t offset = 0;
            bool outside = false;
            for (size_t i = 0; i < axes.size(); ++i) {
              outside |= axes[i].empty();
              if (!outside) offset = offset * spatial[i] + axes[i][0].index;
            }
            if (!outside) to = plane[offset];
          } else {
            to = weighted_sum(plane, spatial, std::span<const std::vector<Weighted>>(axes));
          }
        }
      }
    if constexpr (std::is_same_v<T, std::string>)
      return narrow<T>(out, x.dtype(), dims);
    else
      return from_reals(out, x.dtype(), dims);
  };
  if (x.dtype() == DType::str && o.mode != "nearest") fail("strings can only be sampled in mode nearest");
  if (x.dtype() == DType::str)
    e.set(0, run(TypeTag<std::string>{}));
  else
    e.set(0, is_complex(x.dtype()) ? run(TypeTag<std::complex<double>>{}) : run(TypeTag<double>{}));
}

std::vector<Type> forward(const ForwardContext& c) {
  if (!c.dims(0) && !c.dims(1)) return {Type::tensor(c.dtype(0))};
  size_t rank = c.dims(0) ? c.rank(0) : c.rank(1);
  if (rank < 3 || (c.dims(1) && c.rank(1) != rank)) return {Type::tensor(c.dtype(0))};
  SymDims dims{(c.dims(0) ? *c.dims(0) : *c.dims(1))[0], c.dims(0) ? c.dims(0)->at(1) : c.unknown(0, 1)};
  for (size_t i = 2; i < rank; ++i) dims.push_back(c.dims(1) ? (*c.dims(1))[i - 1] : c.unknown(0, i));
  return {Type::tensor(c.dtype(0), dims)};
}

void backward(BackwardContext& c) {
  std::optional<size_t> rank;
  for (const auto* dims : {&c.result_dims(0), &c.dims(1), &c.dims(0)})
    if (*dims) rank = (*dims)->size();
  if (!rank || *rank < 3) return;
  c.set_rank(0, *rank);
  c.set_rank(1, *rank);
  const SymDims x = *c.dims(0);
  const SymDims grid = *c.dims(1);
  c.equal(x[0], grid[0]);
  c.equal(grid.back(), c.constant(std::ssize(x) - 2));
}

// Opset 16 called the modes after two axes.
void rename_modes(UpgradeContext& c) {
  const ir::Attribute* found = c.node().attrs.find("mode");
  const auto* mode = found == nullptr ? nullptr : std::get_if<std::string>(found);
  if (mode == nullptr) return;
  if (*mode == "bilinear")
    c.node().attrs.set("mode", std::string("linear"));
  else if (*mode == "bicubic")
    c.node().attrs.set("mode", std::string("cubic"));
}

}  // namespace

OpDef grid_sample_op() {
  return {
      .name = "grid_sample",
      .onnx = {"", "GridSample", {16, 20, 22}},
      .doc = "elements of an image, interpolated at the positions of a grid",
      .operands = {{"x", type}, {"grid", grid_type}},
      .results = {{"y", type}},
      .attrs = {int_attr("align_corners", 0), string_attr("mode", "linear"), string_attr("padding_mode", "zeros")},
      .dynamism = isdos(),
      .mapping = Mapping::shuffle,
      .forward = forward,
      .backward = backward,
      .value = absent("images do not occur in shape arithmetic"),
      .eval = eval,
      .lower = later::cpu,
      .grad = later::training,
      .upgrades = {{20, rename_modes}},
      .samples = {{"$(f32[1, 1, 3]{1, 2, 4}, f32[1, 4, 1]{-1, 0.5, 1, 3}) {align_corners = 1}",
                   "f32[1, 1, 4]{1, 3, 4, 0}"},
                  {"$(str[1, 1, 2]{\"a\", \"b\"}, f32[1, 2, 1]{-1, 1}) {align_corners = 1, mode = \"nearest\"}",
                   "str[1, 1, 2]{\"a\", \"b\"}"},
                  {"$(f32[2, 3, 4, 5], f32[2, 6, 7, 2]) {mode = \"cubic\", padding_mode = \"reflection\"}",
                   "f32[2, 3, 6, 7]"},
                  {"$(f32[1, 2, 4, 5], f32[1, 0, 7, 2]) {padding_mode = \"border\"}", "f32[1, 2, 0, 7]"},
                  {"$(f32[1, 2, 4, 5], f32[1, 6, 7, 3])", "error: does not fit an image"},
                  {"$(f32[1, 2, 4, 5], f32[1, 6, 7, 2]) {mode = \"odd\"}", "error: no mode 'odd'"}},
  };
}

}  // namespace selkie::ops
