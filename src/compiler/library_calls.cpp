// Products and convolutions: calls of library kernels, with what is computed on their results while those are in cache.
#include <algorithm>

#include "compiler/emitter.h"
#include "compiler/layouts.h"
#include "kernels/depthwise.h"
#include "kernels/gemm.h"
#include "kernels/winograd.h"

namespace selkie::compiler {
namespace {

using program::Opcode;

const kernels::KernelTable& table() { return kernels::table(kernels::best_isa()); }

// Transformed weights that are larger than this would be read from memory, not from a cache, each time.
constexpr size_t most_winograd_bytes = size_t{1} << 24;

// Whether Winograd's algorithm is an alternative at some sizes: at the given ones, or where they are not known at those
// of common images.
bool winograd_may_win(kernels::ConvolutionShape shape, const std::array<std::optional<int64_t>, 3>& output) {
  if (!kernels::winograd_applies(table(), shape)) return false;
  if (kernels::winograd_weight_elements(table(), shape) * sizeof(float) > most_winograd_bytes) return false;
  for (int64_t side : {8, 16, 32, 64, 128}) {
    for (size_t i = 1; i < 3; ++i) shape.output[i] = shape.input[i] = output[i].value_or(side);
    if (kernels::winograd_wins(table(), shape)) return true;
  }
  return false;
}

// The three spatial axes from those that there are, `fill` before them.
template <class T, class Items>
std::array<T, 3> spatial(const Items& items, size_t first, T fill) {
  std::array<T, 3> out{fill, fill, fill};
  size_t count = items.size() - first;
  for (size_t i = 0; i < count; ++i) out[3 - count + i] = items[first + i];
  return out;
}

}  // namespace

bool Emitter::is_library_call(const Node& node) {
  if (!computable_.contains(&node)) return false;
  const codegen::NodeForm& form = stitcher_.form(node);
  if (form.product) return true;
  // Weights are packed before the run.
  return form.convolution && node.operands[1]->constant != nullptr && dims_of(*node.operands[0])[1].constant() &&
         element_count(node.operands[1]->constant->dims) > 0;
}

const ir::Node* Emitter::library_call(const std::set<const Node*>& inlined) {
  auto at = std::ranges::find_if(inlined, [&](const Node* node) { return is_library_call(*node); });
  return at == inlined.end() ? nullptr : *at;
}

size_t Emitter::column_axis(const Node& node) {
  const auto& product = stitcher_.form(node).product;
  return product ? product->c.columns.at(0) : 1;
}

void Emitter::emit_library_call(const Node& node, const Value& stored, const std::set<const Node*>& inlined) {
  if (stitcher_.form(node).product)
    emit_product(node, stored, inlined);
  else
    emit_convolution(node, stored, inlined);
  bind_symbols(stored, registers_.at(&stored), false);
}

Emitter::Destination Emitter::destination(const Node& node, const Value& stored, const std::set<const Node*>& inlined) {
  if (inlined.size() == 1) return {.output = new_stored(stored), .epilogue = {}};
  auto epilogue = stitcher_.stitch_epilogue(stored, inlined, *node.results[0], column_axis(node));
  CHECK(epilogue && is_sized(*epilogue), "{} has no epilogue any more", node.describe());
  Register output = new_stored(stored);
  return {.output = output, .epilogue = add_launch(output, std::move(*epilogue), stored.node->source)};
}

Emitter::Factor Emitter::strided(Register r, const Layout& layout, const ir::SymDims& dims,
                                 const ir::ProductForm::Matrix& matrix) {
  ir::SymDims strides = codegen::strides(layout, dims, module_.symbols());
  auto stride = [&](const std::vector<size_t>& axes) {
    return slot(axes.empty() ? module_.symbols().constant(1) : strides[axes.back()]);
  };
  Factor out{
      .value = r, .row_stride = stride(matrix.rows), .column_stride = stride(matrix.columns), .batch_strides = {}};
  for (const auto& [axis, times] : matrix.batch)
    out.batch_strides.push_back(slot(axis ? strides[*axis] * times : module_.symbols().constant(0)));
  return out;
}

Emitter::Factor Emitter::factor(const Value& value, const ir::ProductForm::Matrix& matrix) {
  const ir::SymDims& dims = dims_of(value);
  Layout layout = stitcher_.placement().layout(value);
  if (!is_one_line(codegen::strides(layout, dims, module_.symbols()), dims, matrix.rows)) layout = {};
  return strided(register_in(value, layout), layout, dims, matrix);
}

// A constant factor is brought into the library's layout once.
std::optional<program::Register> Emitter::packed_factor(const Value& b, const ir::ProductForm& form) {
  std::optional<int64_t> k = form.k.constant();
  std::optional<int64_t> n = form.n.constant();
  if (b.constant == nullptr || !form.batch.empty() || !k || !n) return std::nullopt;
  Tensor from = b.constant->tensor();
  Tensor packed(DType::f32, {static_cast<int64_t>(kernels::packed_b_elements(table(), *k, *n))});
  bool swapped = !form.b.columns.empty() && form.b.columns[0] < form.b.rows[0];
  kernels::pack_b(table(), from.data<float>(), swapped ? 1 : *n, swapped ? *k : 1, *k, *n,
                  packed.mutable_data<float>());
  return constant_register(std::move(packed), b.name);
}

void Emitter::emit_product(const Node& node, const Value& stored, const std::set<const Node*>& inlined) {
  const ir::ProductForm& form = *stitcher_.form(node).product;
  program::MatrixProduct product{.m = slot(form.m), .n = slot(form.n), .k = slot(form.k), .node = node.source};
  auto convert = [](Factor f) {
    return program::MatrixProduct::Factor{f.value, f.row_stride, f.column_stride, std::move(f.batch_strides)};
  };
  product.a = convert(factor(*node.operands[0], form.a));
  if (std::optional<Register> packed = packed_factor(*node.operands[1], form)) {
    product.packed = true;
    product.b = {.value = *packed, .row_stride = slot(0), .column_stride = slot(0), .batch_strides = {}};
  } else {
    product.b = convert(factor(*node.operands[1], form.b));
  }
  if (form.bias) product.bias = register_of(*node.operands[*form.bias]);
  for (sym::Expr extent : form.batch) product.batch.push_back(slot(extent));
  Destination to = destination(node, stored, inlined);
  const Value& result = *node.results[0];
  product.c = convert(strided(to.output, stitcher_.placement().layout(result), dims_of(result), form.c));
  product.epilogue = to.epilogue;
  program().products.push_back(std::move(product));
  instruction(Opcode::product, static_cast<uint32_t>(program().products.size() - 1));
}

void Emitter::pack_weights(const ir::Constant& weights, const std::array<sym::Expr, 3>& output, const std::string& name,
                           program::Convolution& call) {
  kernels::ConvolutionShape shape{.input_channels = call.input_channels,
                                  .output_channels = call.output_channels,
                                  .groups = call.groups,
                                  .kernel = call.kernel,
                                  .stride = call.stride,
                                  .dilation = call.dilation};
  Tensor from = weights.tensor();
  auto packed = [&](size_t elements, auto pack) {
    Tensor to(DType::f32, {static_cast<int64_t>(elements)});
    pack(from.data<float>(), to.mutable_data<float>());
    return constant_register(std::move(to), name);
  };
  call.depthwise = kernels::is_depthwise(shape);
  if (call.depthwise) {
    call.weights = packed(kernels::packed_depthwise_elements(shape),
                          [&](const float* w, float* to) { kernels::pack_depthwise(shape, w, to); });
    return;
  }
  call.weights = packed(kernels::packed_convolution_elements(table(), shape),
                        [&](const float* w, float* to) { kernels::pack_convolution(table(), shape, w, to); });
  std::array<std::optional<int64_t>, 3> sizes;
  std::ranges::transform(output, sizes.begin(), [](sym::Expr e) { return e.constant(); });
  if (winograd_may_win(shape, sizes))
    call.winograd = packed(kernels::winograd_weight_elements(table(), shape), [&](const float* w, float* to) {
      kernels::winograd_transform_weights(table(), shape, w, to);
    });
}

void Emitter::emit_convolution(const Node& node, const Value& stored, const std::set<const Node*>& inlined) {
  const ir::ConvolutionForm& form = *stitcher_.form(node).convolution;
  const ir::SymDims& input = dims_of(*node.operands[0]);
  const ir::SymDims& output = dims_of(*node.results[0]);
  const ir::Constant& weights = *node.operands[1]->constant;
  sym::Expr one = module_.symbols().constant(1);
  auto slots = [&](const ir::SymDims& dims, size_t first, sym::Expr fill) {
    std::array<Slot, 3> out;
    std::array<sym::Expr, 3> parts = spatial<sym::Expr>(dims, first, fill);
    std::ranges::transform(parts, out.begin(), [&](sym::Expr e) { return slot(e); });
    return out;
  };
  program::Convolution call{.input = register_in(*node.operands[0], codegen::channels_last(input)),
                            .output = 0,
                            .weights = 0,
                            .input_channels = *input[1].constant(),
                            .output_channels = weights.dims[0],
                            .groups = form.groups,
                            .kernel = spatial<int64_t>(weights.dims, 2, 1),
                            .stride = spatial<int64_t>(form.strides, 0, 1),
                            .dilation = spatial<int64_t>(form.dilations, 0, 1),
                            .batch = slot(input[0]),
                            .input_dims = slots(input, 2, one),
                            .output_dims = slots(output, 2, one),
                            .pads = slots(form.pads, 0, one * 0),
                            .node = node.source};
  pack_weights(weights, spatial<sym::Expr>(output, 2, one), node.operands[1]->name, call);
  if (node.operands.size() > 2 && node.operands[2] != nullptr) call.bias = register_of(*node.operands[2]);
  Destination to = destination(node, stored, inlined);
  call.output = to.output;
  call.epilogue = to.epilogue;
  program().convolutions.push_back(std::move(call));
  instruction(Opcode::convolution, static_cast<uint32_t>(program().convolutions.size() - 1));
}

}  // namespace selkie::compiler
