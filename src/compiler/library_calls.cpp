// Products, convolutions, attention and recurrent layers: calls of library kernels, with what is computed on their
// results while those are in cache.
#include <algorithm>

#include "codegen/finish.h"
#include "compiler/emitter.h"
#include "compiler/layouts.h"
#include "compiler/packing.h"
#include "compiler/winograd_layers.h"
#include "kernels/depthwise.h"
#include "kernels/grouped.h"
#include "kernels/half_gemm.h"
#include "kernels/recurrent.h"
#include "kernels/subnormals.h"

namespace selkie::compiler {
namespace {

using program::Opcode;

const kernels::KernelTable& table() { return kernels::table(kernels::best_isa()); }

// Transformed weights of a model may take this much in any case: compiling it takes more.
constexpr size_t least_winograd_budget = size_t{2} << 20;

}  // namespace

bool Emitter::is_library_call(const Node& node) {
  if (!computable_.contains(&node)) return false;
  const codegen::NodeForm& form = stitcher_.form(node);
  if (form.attention) return true;
  if (form.product || form.convolution) {
    DType dtype = rdp_.known(*node.operands[0]).type.dtype;
    if (dtype != DType::f32) return is_integer_call(node);
  }
  if (form.product) return true;
  // Weights are packed before the run, or if only that knows them in each call.
  return form.convolution && dims_of(*node.operands[0])[1].constant() &&
         std::ranges::all_of(dims_of(*node.operands[1]), [](sym::Expr d) { return d.constant().value_or(0) > 0; });
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
  const codegen::NodeForm& form = stitcher_.form(node);
  for (const codegen::SizeCheck& check : form.size_checks) add_size_check(check, node.describe());
  if (!form.attention && is_integer_call(node))
    emit_integer(node, stored, inlined);
  else if (form.product)
    emit_product(node, stored, inlined);
  else if (form.attention)
    emit_attention(node);
  else
    emit_convolution(node, stored, inlined);
  bind_symbols(stored, registers_.at(&stored), false);
}

Emitter::Destination Emitter::destination(const Node& node, const Value& stored, const std::set<const Node*>& inlined,
                                          Finishes finishes) {
  if (inlined.size() == 1) return {.output = new_stored(stored)};
  const Value& produced = *node.results[0];
  auto epilogue = stitcher_.stitch_epilogue(stored, inlined, produced, column_axis(node));
  CHECK(epilogue && is_sized(*epilogue), "{} has no epilogue any more", node.describe());
  Register output = new_stored(stored);
  if (auto finish = finish_of(*epilogue, finishes)) return {.output = output, .finish = *finish};
  Register written = producer_register(produced, stored, output);
  return {.output = written, .epilogue = add_launch(output, std::move(*epilogue), stored.node->source)};
}

std::optional<program::Finish> Emitter::finish_of(const codegen::StitchedKernel& epilogue, Finishes finishes) {
  if (!finishes.clamps || !epilogue.index_checks.empty() || !epilogue.size_checks.empty()) return std::nullopt;
  std::optional<codegen::Finish> found = codegen::find_finish(epilogue.kernel);
  if (!found || (found->addend && !finishes.adds)) return std::nullopt;
  Register addend = found->addend ? register_of(*epilogue.inputs.at(*found->addend - 1)) : program::no_register;
  return program::Finish{.addend = addend, .low = found->low, .high = found->high};
}

// Elements of one size are turned into others where they are.
Emitter::Register Emitter::producer_register(const Value& produced, const Value& stored, Register output) {
  DType from = rdp_.known(produced).type.dtype;
  DType to = rdp_.known(stored).type.dtype;
  if (from == to) return output;
  if (element_size(from) != element_size(to)) return registers_[&produced] = new_tensor(produced, true);
  program::RegisterInfo info{.name = produced.name,
                             .storage = program::RegisterInfo::Storage::view,
                             .is_tensor = true,
                             .dtype = from,
                             .dims = program().registers[output].dims,
                             .viewed = output};
  return registers_[&produced] = add_register(std::move(info));
}

Emitter::Factor Emitter::strided(Register r, const Layout& layout, const ir::SymDims& dims,
                                 const ir::ProductForm::Matrix& matrix) {
  ir::SymDims strides = codegen::strides(layout, dims, module_.symbols());
  // Axes of one line: from one element to the next along the last that has more than one.
  auto stride = [&](const std::vector<size_t>& axes) {
    for (size_t i = axes.size(); i-- > 0;)
      if (dims[axes[i]].constant() != 1) return slot(strides[axes[i]]);
    return slot(1);
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

// A constant factor is brought into the library's layout once, in small floats if these are as exact.
std::optional<program::Register> Emitter::packed_factor(const Value& b, const ir::ProductForm& form) {
  std::optional<int64_t> k = form.k.constant();
  std::optional<int64_t> n = form.n.constant();
  if (b.constant == nullptr || !form.batch.empty() || !k || !n) return std::nullopt;
  bool swapped = !form.b.columns.empty() && form.b.columns[0] < form.b.rows[0];
  return packed_once(*b.constant, {swapped, *k, *n}, [&] { return pack_factor(b, *k, *n, swapped); });
}

program::Register Emitter::bias_of(const Value& bias) {
  if (options_.exact || bias.constant == nullptr || bias.constant->dtype != DType::f32) return register_of(bias);
  Tensor given = bias.constant->tensor();
  if (!kernels::has_subnormals(given.values<float>())) return register_of(bias);
  return packed_once(*bias.constant, {}, [&] {
    Tensor flushed(DType::f32, given.dims());
    std::ranges::copy(given.values<float>(), flushed.mutable_data<float>());
    kernels::flush_subnormals({flushed.mutable_data<float>(), static_cast<size_t>(flushed.count())});
    return constant_register(std::move(flushed), bias.name);
  });
}

program::Register Emitter::packed_once(const ir::Constant& constant, std::vector<int64_t> form,
                                       const std::function<Register()>& pack) {
  auto [at, fresh] = packed_forms_.try_emplace({&constant, std::move(form)});
  if (fresh) at->second = pack();
  return at->second;
}

program::Register Emitter::pack_factor(const Value& b, int64_t k, int64_t n, bool swapped) {
  int64_t row_stride = swapped ? 1 : n;
  int64_t column_stride = swapped ? k : 1;
  std::optional<kernels::HalfKind> half = kernels::half_kind(table(), b.constant->tensor().values<float>());
  DType dtype = !half ? DType::f32 : *half == kernels::HalfKind::f16 ? DType::f16 : DType::bf16;
  Tensor packed = packed_.tensor(dtype, {static_cast<int64_t>(kernels::packed_b_elements(table(), k, n))});
  std::byte* to = packed.mutable_bytes();
  if (half) {
    packings().add(packed, {*b.constant, whole(*b.constant)}, [=](const float* from) {
      kernels::pack_half(table(), *half, from, row_stride, column_stride, k, n, reinterpret_cast<uint16_t*>(to));
    });
    return constant_register(std::move(packed), b.name);
  }
  // Columns that lie one after the other are packed some at a time: panels of them are neighbours in both forms.
  int64_t columns = swapped ? std::max<int64_t>(piece_bytes / sizeof(float) / std::max<int64_t>(k, 1), 1) : n;
  columns = std::max<int64_t>((columns + table().tile_columns - 1) / table().tile_columns * table().tile_columns, 1);
  for (int64_t first = 0; first < n; first += columns) {
    int64_t count = std::min(columns, n - first);
    ElementRange range{.first = static_cast<size_t>(first * k), .count = static_cast<size_t>(count * k)};
    packings().add(packed, {*b.constant, range}, [=, exact = options_.exact](const float* from) {
      float* panels = reinterpret_cast<float*>(to) + first * k;
      kernels::pack_b(table(), from, row_stride, column_stride, k, count, panels);
      if (!exact) kernels::flush_subnormals({panels, kernels::packed_b_elements(table(), k, count)});
    });
  }
  return constant_register(std::move(packed), b.name);
}

void Emitter::emit_product(const Node& node, const Value& stored, const std::set<const Node*>& inlined) {
  const ir::ProductForm& form = *stitcher_.form(node).product;
  program::MatrixProduct product{.m = slot(form.m), .n = slot(form.n), .k = slot(form.k), .node = node.source};
  product.exact = options_.exact;
  product.a = factor(*node.operands[0], form.a);
  if (std::optional<Register> packed = packed_factor(*node.operands[1], form)) {
    product.packed = true;
    product.b = {.value = *packed, .row_stride = slot(0), .column_stride = slot(0), .batch_strides = {}};
  } else {
    product.b = factor(*node.operands[1], form.b);
  }
  if (form.bias) product.bias = bias_of(*node.operands[*form.bias]);
  for (sym::Expr extent : form.batch) product.batch.push_back(slot(extent));
  bool is_f32 = program().registers[product.b.value].dtype == DType::f32;
  Destination to = destination(node, stored, inlined, {.adds = is_f32, .clamps = is_f32});
  product.finish = to.finish;
  const Value& result = *node.results[0];
  product.c = strided(to.output, stitcher_.placement().layout(result), dims_of(result), form.c);
  product.epilogue = to.epilogue;
  program().products.push_back(std::move(product));
  instruction(Opcode::product, static_cast<uint32_t>(program().products.size() - 1));
}

namespace {

kernels::ConvolutionShape shape_of(const program::Convolution& call) {
  return {.input_channels = call.input_channels,
          .output_channels = call.output_channels,
          .groups = call.groups,
          .kernel = call.kernel,
          .stride = call.stride,
          .dilation = call.dilation};
}

size_t weight_bytes(const ir::Module& module) {
  size_t bytes = 0;
  for (const auto& constant : module.constants())
    bytes += static_cast<size_t>(element_count(constant->dims)) * element_size(constant->dtype);
  return bytes;
}

}  // namespace

program::Register Emitter::packed_weights(const Unpacked& unpacked, const FilterPacking& packing) {
  kernels::ConvolutionShape shape = shape_of(program().convolutions[unpacked.call]);
  const ir::Constant& weights = *unpacked.weights;
  std::vector<int64_t> key{static_cast<int64_t>(packing.form), shape.groups};
  for (const auto& list : {shape.kernel, shape.stride, shape.dilation}) key.insert(key.end(), list.begin(), list.end());
  return packed_once(weights, std::move(key), [&] {
    Tensor packed = packed_.tensor(DType::f32, {static_cast<int64_t>(packing.elements(shape))});
    float* to = packed.mutable_data<float>();
    auto filter = static_cast<size_t>(shape.input_channels / shape.groups * shape.taps());
    for (int64_t first = 0; first < shape.output_channels; first += packing.filters_at_once) {
      kernels::ConvolutionShape part = shape;
      part.output_channels = std::min(packing.filters_at_once, shape.output_channels - first);
      ElementRange range{.first = static_cast<size_t>(first) * filter,
                         .count = static_cast<size_t>(part.output_channels) * filter};
      size_t elements = packing.elements(part);
      packings().add(packed, {weights, range},
                     [part, elements, to, pack = packing.pack, exact = options_.exact](const float* from) {
                       pack(part, from, to);
                       if (!exact) kernels::flush_subnormals({to, elements});
                     });
      to += elements;
    }
    return constant_register(std::move(packed), unpacked.name);
  });
}

void Emitter::pack_convolutions() {
  std::vector<WinogradLayer> layers;
  std::vector<const Unpacked*> dense;
  for (const Unpacked& unpacked : unpacked_) {
    program::Convolution& call = program().convolutions[unpacked.call];
    kernels::ConvolutionShape shape = shape_of(call);
    if (call.depthwise) {
      call.weights = packed_weights(unpacked, {.form = WeightForm::depthwise,
                                               .elements = kernels::packed_depthwise_elements,
                                               .pack = kernels::pack_depthwise,
                                               .filters_at_once = shape.output_channels});
    } else if (call.grouped) {
      call.weights = packed_weights(
          unpacked,
          {.form = WeightForm::grouped,
           .elements = [](const auto& all) { return kernels::packed_grouped_elements(table(), all); },
           .pack = [](const auto& all, const float* from, float* to) { kernels::pack_grouped(table(), all, from, to); },
           .filters_at_once = shape.output_channels});
    } else {
      dense.push_back(&unpacked);
      layers.push_back({.weights = unpacked.weights, .shape = shape, .output = {}});
      std::ranges::transform(unpacked.output, layers.back().output.begin(), [](sym::Expr e) { return e.constant(); });
    }
  }
  size_t budget = std::max(least_winograd_budget,
                           static_cast<size_t>(options_.winograd_share * static_cast<double>(weight_bytes(module_))));
  std::vector<KeptWeights> kept = choose_winograd(layers, options_.exact ? 0 : budget);
  for (size_t i = 0; i < dense.size(); ++i) pack_dense(*dense[i], kept[i]);
}

void Emitter::pack_dense(const Unpacked& unpacked, const KeptWeights& kept) {
  program::Convolution& call = program().convolutions[unpacked.call];
  kernels::ConvolutionShape shape = shape_of(call);
  if (kept.direct) {
    // Panels of filters are neighbours in both forms.
    auto filter_bytes = static_cast<int64_t>(sizeof(float)) * shape.input_channels * shape.taps();
    int64_t panels = static_cast<int64_t>(piece_bytes) / std::max<int64_t>(table().tile_columns * filter_bytes, 1);
    bool has_groups = shape.groups > 1;
    call.weights = packed_weights(
        unpacked,
        {.form = WeightForm::direct,
         .elements = [](const auto& part) { return kernels::packed_convolution_elements(table(), part); },
         .pack = [](const auto& part, const float* from,
                    float* to) { kernels::pack_convolution(table(), part, from, to); },
         .filters_at_once = has_groups ? shape.output_channels : std::max<int64_t>(panels, 1) * table().tile_columns});
  }
  if (!kept.transformed) return;
  kernels::WinogradWeights form = *kept.transformed;
  call.wide_winograd = form == kernels::WinogradWeights::transformed_for_six;
  call.winograd = packed_weights(
      unpacked, {.form = call.wide_winograd ? WeightForm::wide_winograd : WeightForm::winograd,
                 .elements = [form](const auto& all) { return kernels::winograd_weight_elements(table(), all, form); },
                 .pack = [form](const auto& all, const float* from,
                                float* to) { kernels::winograd_transform_weights(table(), all, form, from, to); },
                 .filters_at_once = shape.output_channels});
}

std::array<program::Slot, 3> Emitter::spatial_slots(const ir::SymDims& dims, size_t first, int64_t fill) {
  std::array<Slot, 3> out;
  std::array<sym::Expr, 3> parts = spatial<sym::Expr>(dims, first, module_.symbols().constant(fill));
  std::ranges::transform(parts, out.begin(), [&](sym::Expr e) { return slot(e); });
  return out;
}

void Emitter::emit_convolution(const Node& node, const Value& stored, const std::set<const Node*>& inlined) {
  const ir::ConvolutionForm& form = *stitcher_.form(node).convolution;
  const ir::SymDims& input = dims_of(*node.operands[0]);
  const ir::SymDims& output = dims_of(*node.results[0]);
  const Value& weights = *node.operands[1];
  Dims weight_dims;
  for (sym::Expr dim : dims_of(weights)) weight_dims.push_back(*dim.constant());
  program::Convolution call{.input = register_in(*node.operands[0], codegen::channels_last(input)),
                            .output = 0,
                            .input_channels = *input[1].constant(),
                            .output_channels = weight_dims[0],
                            .groups = form.groups,
                            .kernel = spatial<int64_t>(weight_dims, 2, 1),
                            .stride = spatial<int64_t>(form.strides, 0, 1),
                            .dilation = spatial<int64_t>(form.dilations, 0, 1),
                            .batch = slot(input[0]),
                            .input_dims = spatial_slots(input, 2, 1),
                            .output_dims = spatial_slots(output, 2, 1),
                            .pads = spatial_slots(form.pads, 0, 0),
                            .node = node.source};
  kernels::ConvolutionShape shape = shape_of(call);
  call.depthwise = kernels::is_depthwise(shape);
  call.grouped = !call.depthwise && kernels::takes_grouped(table(), shape);
  // Filters made by the run may be equal, and then give equal results by the direct kernel alone.
  call.exact = options_.exact || weights.constant == nullptr;
  if (node.operands.size() > 2 && node.operands[2] != nullptr) call.bias = bias_of(*node.operands[2]);
  Destination to = destination(node, stored, inlined, {.adds = !call.depthwise, .clamps = true});
  call.output = to.output;
  call.finish = to.finish;
  call.epilogue = to.epilogue;
  call.packs_weights = weights.constant == nullptr;
  if (call.packs_weights) call.weights = register_in(weights, {});
  auto index = static_cast<uint32_t>(program().convolutions.size());
  if (!call.packs_weights)
    unpacked_.push_back({.call = index,
                         .weights = weights.constant,
                         .output = spatial<sym::Expr>(output, 2, module_.symbols().constant(1)),
                         .name = weights.name});
  program().convolutions.push_back(std::move(call));
  instruction(Opcode::convolution, index);
}

program::Attention::Heads Emitter::heads(const Value& value) {
  const ir::SymDims& dims = dims_of(value);
  Layout layout = stitcher_.placement().layout(value);
  bool neighbours = dims[3].constant() == 1 || codegen::strides(layout, dims, module_.symbols())[3].constant() == 1;
  if (!neighbours) layout = {};
  ir::SymDims strides = codegen::strides(layout, dims, module_.symbols());
  return {.value = register_in(value, layout), .strides = {slot(strides[0]), slot(strides[1]), slot(strides[2])}};
}

void Emitter::emit_attention(const Node& node) {
  const ir::AttentionForm& form = *stitcher_.form(node).attention;
  const ir::SymDims& q = dims_of(*node.operands[0]);
  const ir::SymDims& k = dims_of(*node.operands[1]);
  const ir::SymDims& v = dims_of(*node.operands[2]);
  program::Attention call{.query = heads(*node.operands[0]),
                          .key = heads(*node.operands[1]),
                          .value = heads(*node.operands[2]),
                          .output = {},
                          .batch = slot(q[0]),
                          .heads = slot(q[1]),
                          .key_heads = slot(k[1]),
                          .queries = slot(q[2]),
                          .keys = slot(k[2]),
                          .depth = slot(q[3]),
                          .columns = slot(v[3]),
                          .mask_strides = {},
                          .scale = form.scale,
                          .causal = form.causal,
                          .masked_score = form.masked_score,
                          .node = node.source};
  if (node.operands.size() > 3 && node.operands[3] != nullptr) {
    const Value& mask = *node.operands[3];
    const ir::SymDims& dims = dims_of(mask);
    call.mask = register_in(mask, {});
    ir::SymDims strides = codegen::strides({}, dims, module_.symbols());
    call.mask_strides.fill(slot(0));
    // An axis of size 1 is broadcast; whether it is may be known only in the run.
    const ir::SymDims& to = dims_of(*node.results[0]);
    for (size_t i = 0; i < dims.size(); ++i) {
      bool is_key = i + 1 == dims.size();
      sym::Expr full = to[4 - dims.size() + i];
      if (!is_key && dims[i].constant() != 1 && stitcher_.facts_of(node).prove_equal(dims[i], full) != sym::Truth::yes)
        add_size_check({dims[i], ops::broadcast_size(dims[i], full)}, node.describe());
      sym::Expr times = is_key ? module_.symbols().constant(1) : sym::min(sym::max(dims[i] - 1, 0), 1);
      call.mask_strides[4 - dims.size() + i] = slot(strides[i] * times);
    }
  }
  call.output.value = new_stored(*node.results[0]);
  const ir::SymDims& y = dims_of(*node.results[0]);
  ir::SymDims strides = codegen::strides(stitcher_.placement().layout(*node.results[0]), y, module_.symbols());
  call.output.strides = {slot(strides[0]), slot(strides[1]), slot(strides[2])};
  program().attentions.push_back(std::move(call));
  instruction(Opcode::attention, static_cast<uint32_t>(program().attentions.size() - 1));
}

bool Emitter::has_constant_weights(const Node& node) {
  if (!stitcher_.form(node).recurrent) return true;
  auto constant = [&](size_t i) {
    return i >= node.operands.size() || node.operands[i] == nullptr || node.operands[i]->constant != nullptr;
  };
  return constant(1) && constant(2) && constant(3) && constant(7);
}

program::Register Emitter::pack_recurrent(const kernels::RecurrentShape& shape,
                                          const std::array<const ir::Constant*, 4>& weights, const std::string& name) {
  Tensor packed =
      packed_.tensor(DType::f32, {static_cast<int64_t>(kernels::packed_recurrent_elements(table(), shape))});
  auto elements = static_cast<size_t>(packed.count());
  Packings::Several sources;
  for (size_t i = 0; i < weights.size(); ++i)
    if (weights[i] != nullptr) sources[i].emplace(*weights[i], whole(*weights[i]));
  packings().add(packed, std::move(sources),
                 [shape, elements, to = packed.mutable_data<float>(), exact = options_.exact](auto given) {
                   auto [w, r, bias, peepholes] = given;
                   kernels::pack_recurrent(table(), shape, {.w = w, .r = r, .bias = bias, .peepholes = peepholes}, to);
                   if (!exact) kernels::flush_subnormals({to, elements});
                 });
  return constant_register(std::move(packed), name);
}

void Emitter::emit_recurrent(const Node& node) {
  const ir::RecurrentForm& form = *stitcher_.form(node).recurrent;
  auto operand = [&](size_t i) { return i < node.operands.size() ? node.operands[i] : nullptr; };
  auto plain = [&](size_t i) { return operand(i) ? register_in(*operand(i), {}) : program::no_register; };
  const ir::SymDims& x = dims_of(*node.operands[0]);
  const Dims& r = operand(2)->constant->dims;
  program::Recurrent call{.cell = static_cast<program::Recurrent::Cell>(form.cell),
                          .directions = form.directions,
                          .input = operand(1)->constant->dims[2],
                          .hidden = r[2],
                          .reversed = form.reversed,
                          .linear_before_reset = form.linear_before_reset,
                          .batch_first = form.batch_first,
                          .activations = form.activations,
                          .steps = slot(x[form.batch_first ? 1 : 0]),
                          .batch = slot(x[form.batch_first ? 0 : 1]),
                          .x = plain(0),
                          .weights = 0,
                          .peepholes = operand(7) != nullptr,
                          .lengths = plain(4),
                          .initial_h = plain(5),
                          .initial_c = plain(6),
                          .node = node.source};
  kernels::RecurrentShape shape{.kind = static_cast<kernels::RecurrentKind>(form.cell),
                                .input = call.input,
                                .hidden = call.hidden,
                                .directions = call.directions,
                                .linear_before_reset = form.linear_before_reset};
  std::array<const ir::Constant*, 4> weights{};
  constexpr std::array<size_t, 4> places{1, 2, 3, 7};
  for (size_t i = 0; i < places.size(); ++i)
    if (const Value* given = operand(places[i])) weights[i] = given->constant;
  call.weights = pack_recurrent(shape, weights, operand(2)->name);
  std::array<Register*, 3> results{&call.y, &call.y_h, &call.y_c};
  for (size_t i = 0; i < node.results.size(); ++i) *results[i] = new_stored(*node.results[i]);
  program().recurrents.push_back(std::move(call));
  instruction(Opcode::recurrent, static_cast<uint32_t>(program().recurrents.size() - 1));
  for (const auto& result : node.results) bind_symbols(*result, registers_.at(result.get()), false);
}

}  // namespace selkie::compiler
