// Products and convolutions of bytes as calls of library kernels, with weights packed before the run.
#include "compiler/emitter.h"
#include "kernels/integer_depthwise.h"

namespace selkie::compiler {
namespace {

// A group of fewer channels would leave most of a tile's columns, or of its steps, empty: loops are faster then.
constexpr int64_t least_group = 4;

const ir::Value* operand(const ir::Node& node, size_t i) {
  return i < node.operands.size() ? node.operands[i] : nullptr;
}

kernels::ByteTensor bytes_of(const Tensor& tensor) {
  return {.data = tensor.data<uint8_t>(), .is_signed = tensor.dtype() == DType::i8};
}

}  // namespace

bool Emitter::is_integer_call(const Node& node) {
  const codegen::NodeForm& form = stitcher_.form(node);
  DType dtype = rdp_.known(*node.operands[0]).type.dtype;
  if (dtype != DType::u8 && dtype != DType::i8) return false;
  const ir::Constant* weights = node.operands[1]->constant;
  const Value* zero = operand(node, 3);
  if (weights == nullptr || element_count(weights->dims) == 0 || (zero != nullptr && zero->constant == nullptr))
    return false;
  if (form.product) {
    // Zero points of rows are told apart in one matrix only.
    const Value* of_rows = operand(node, 2);
    bool one = of_rows == nullptr || elements(*of_rows).constant() == 1;
    return form.product->batch.empty() && weights->dims.size() == 2 && (one || form.product->a.rows.size() == 1);
  }
  std::optional<int64_t> channels = dims_of(*node.operands[0])[1].constant();
  int64_t groups = form.convolution->groups;
  if (!channels) return false;
  bool is_depthwise = kernels::is_integer_depthwise(
      {.input_channels = *channels, .output_channels = weights->dims[0], .groups = groups});
  return is_depthwise || groups == 1 || (*channels / groups >= least_group && weights->dims[0] / groups >= least_group);
}

void Emitter::emit_integer(const Node& node, const Value& stored, const std::set<const Node*>& inlined) {
  program::IntegerProduct call = stitcher_.form(node).product ? integer_product(node) : integer_convolution(node);
  if (const Value* zero = operand(node, 2)) call.zero = register_in(*zero, {});
  call.weights = packed_bytes(node, call);
  Destination to = destination(node, stored, inlined, {.adds = false, .clamps = false});
  call.output = to.output;
  call.epilogue = to.epilogue;
  program().integer_products.push_back(std::move(call));
  instruction(program::Opcode::integer, static_cast<uint32_t>(program().integer_products.size() - 1));
}

program::IntegerProduct Emitter::integer_product(const Node& node) {
  const Dims& weights = node.operands[1]->constant->dims;
  Slot one = slot(1);
  std::array<Slot, 3> rows{one, one, slot(stitcher_.form(node).product->m)};
  return {.input = register_in(*node.operands[0], {}),
          .output = 0,
          .weights = 0,
          .input_channels = weights[0],
          .output_channels = weights[1],
          .groups = 1,
          .kernel = {1, 1, 1},
          .stride = {1, 1, 1},
          .dilation = {1, 1, 1},
          .batch = one,
          .input_dims = rows,
          .output_dims = rows,
          .pads = {slot(0), slot(0), slot(0)},
          .node = node.source};
}

program::IntegerProduct Emitter::integer_convolution(const Node& node) {
  const ir::ConvolutionForm& form = *stitcher_.form(node).convolution;
  const ir::SymDims& input = dims_of(*node.operands[0]);
  const Dims& weights = node.operands[1]->constant->dims;
  return {.input = register_in(*node.operands[0], codegen::channels_last(input)),
          .output = 0,
          .weights = 0,
          .input_channels = *input[1].constant(),
          .output_channels = weights[0],
          .groups = form.groups,
          .kernel = spatial<int64_t>(weights, 2, 1),
          .stride = spatial<int64_t>(form.strides, 0, 1),
          .dilation = spatial<int64_t>(form.dilations, 0, 1),
          .batch = slot(input[0]),
          .input_dims = spatial_slots(input, 2, 1),
          .output_dims = spatial_slots(dims_of(*node.results[0]), 2, 1),
          .pads = spatial_slots(form.pads, 0, 0),
          .node = node.source};
}

Emitter::Register Emitter::packed_bytes(const Node& node, const program::IntegerProduct& call) {
  const kernels::IntegerTable& table = kernels::best_integer_table();
  kernels::ConvolutionShape shape{.input_channels = call.input_channels,
                                  .output_channels = call.output_channels,
                                  .groups = call.groups,
                                  .kernel = call.kernel};
  bool is_product = stitcher_.form(node).product.has_value();
  int64_t channels = call.input_channels / call.groups;
  Tensor from = node.operands[1]->constant->tensor();
  Tensor zeros;
  kernels::IntegerWeights weights{.bytes = bytes_of(from),
                                  .column_stride = is_product ? 1 : channels * shape.taps(),
                                  .channel_stride = is_product ? call.output_channels : shape.taps(),
                                  .tap_stride = is_product ? 0 : 1};
  if (const Value* zero = operand(node, 3)) {
    zeros = zero->constant->tensor();
    weights.bytes.zeros = bytes_of(zeros).data;
    weights.bytes.zero_count = zeros.count();
  }
  Tensor packed(DType::i8, {static_cast<int64_t>(kernels::packed_integer_bytes(table, shape))});
  kernels::pack_integer(table, shape, weights, packed.mutable_bytes());
  return constant_register(std::move(packed), node.operands[1]->name);
}

}  // namespace selkie::compiler
