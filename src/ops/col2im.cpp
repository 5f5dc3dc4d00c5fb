// Col2Im: blocks of columns, added up into the image that they were cut from.
#include "ops/support/conv.h"
#include "ops/support/dims.h"
#include "ops/support/record.h"
#include "ops/support/zeros.h"

namespace selkie::ops {
namespace {

constexpr TypeVar type{"T", dtypes::numeric | dtypes::boolean | dtypes::string | dtypes::complex};

void eval(EvalContext& e) {
  const Tensor& input = e.tensor(0);
  std::vector<int64_t> image = ints_of(e.tensor(1));
  std::vector<int64_t> blocks = ints_of(e.tensor(2));
  if (input.rank() != 3) fail("the input has shape {}, but must be of rank 3", to_string(input.dims()));
  element_count(image);
  Window window = make_window(window_attrs(e, image.size()), image, blocks);
  int64_t kernel = kernel_count(window);
  int64_t positions = element_count(output_dims(window));
  if (input.dim(1) % kernel != 0 || input.dim(2) != positions)
    fail("columns of shape {} do not fit {} blocks of {} elements", to_string(input.dims()), positions, kernel);
  Dims dims{input.dim(0), input.dim(1) / kernel};
  dims.insert(dims.end(), image.begin(), image.end());
  int64_t size = element_count(image);
  dispatch_wide(input.dtype(), [&](auto tag) {
    using W = typename decltype(tag)::type;
    std::vector<W> columns = widen<W>(input);
    std::vector<W> out = zeros<W>(dims);
    for (int64_t plane = 0; plane < dims[0] * dims[1]; ++plane)
      scatter_windows(window, columns.data() + plane * kernel * positions, 0, positions, out.data() + plane * size);
    e.set(0, narrow<W>(out, input.dtype(), dims));
  });
}

std::vector<Type> forward(const ForwardContext& c) {
  std::optional<ir::SymElements> image = c.elements(1);
  std::optional<ir::SymElements> blocks = c.elements(2);
  std::optional<int64_t> axes = image ? std::ssize(*image) : blocks ? std::ssize(*blocks) : count_of(c, 1);
  if (!axes) axes = count_of(c, 2);
  if (!axes) return {Type::tensor(c.dtype(0))};
  bool known = c.dims(0) && c.rank(0) == 3;
  SymDims dims{known ? c.dims(0)->at(0) : c.unknown(0, 0),
               known && blocks ? sym::floordiv(c.dims(0)->at(1), product(c, *blocks)) : c.unknown(0, 1)};
  for (size_t i = 0; i < static_cast<size_t>(*axes); ++i) dims.push_back(image ? (*image)[i] : c.unknown(0, i + 2));
  return {Type::tensor(c.dtype(0), dims)};
}

void backward(BackwardContext& c) {
  c.set_rank(0, 3);
  std::optional<ir::SymElements> image = c.contents(1);
  std::optional<ir::SymElements> blocks = c.contents(2);
  if (image) require_natural(c, *image);
  if (!image || !blocks) return;
  const SymDims columns = *c.dims(0);
  require_windows_fit(c, *image, *blocks);
  c.equal(sym::mod(columns[1], product(c, *blocks)), c.constant(0));
  c.equal(columns[2], product(c, window_dims(c, *image, *blocks)));
}

}  // namespace

OpDef col2im_op() {
  return {
      .name = "col2im",
      .onnx = {"", "Col2Im", {18}},
      .doc = "blocks given as columns, added up at their places in an image",
      .operands = {{"input", type}, {"image_shape", i64_tensor}, {"block_shape", i64_tensor}},
      .results = {{"output", type}},
      .attrs = {optional_attr("dilations", AttrKind::integers), optional_attr("pads", AttrKind::integers),
                optional_attr("strides", AttrKind::integers)},
      .dynamism = isvdos({"image_shape", "block_shape"}),
      .mapping = Mapping::many_to_many,
      .forward = forward,
      .backward = backward,
      .value = absent("images do not occur in shape arithmetic"),
      .eval = eval,
      .lower = later::cpu,
      .grad = later::training,
      .samples = {{"$(f32[1, 2, 2]{1, 2, 3, 4}, i64[1]{3}, i64[1]{2})", "f32[1, 1, 3]{1, 5, 4}"},
                  {"$(f32[2, 12, 9], i64[2]{5, 5}, i64[2]{2, 3}) {strides = [2, 1], pads = [0, 0, 1, 0]}",
                   "f32[2, 2, 5, 5]"},
                  {"$(f32[0, 2, 2], i64[1]{3}, i64[1]{2})", "f32[0, 1, 3]"},
                  {"$(f32[1, 2, 0], i64[1]{0}, i64[1]{2}) {strides = [2]}", "f32[1, 1, 0]"},
                  {"$(f32[1, 4, 2], i64[2]{1, 5}, i64[2]{1, 2}) {strides = [1, 2], dilations = [1, 2]}",
                   "f32[1, 2, 1, 5]"},
                  {"$(f32[1, 3, 2], i64[1]{3}, i64[1]{2})", "error: do not fit 2 blocks"},
                  {"$(f32[1, 2, 2], i64[1]{3}, i64[2]{1, 2})", "error: the kernel has 2 axes"}},
  };
}

}  // namespace selkie::ops
