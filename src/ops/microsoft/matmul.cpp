// FusedMatMul, DynamicQuantizeMatMul and MatMulNBits of com.microsoft.
#include <numeric>

#include "ops/support/blank.h"
#include "ops/support/elementwise.h"
#include "ops/support/gemm.h"
#include "ops/support/matmul_dims.h"
#include "ops/support/quantize.h"
#include "ops/support/zeros.h"

namespace selkie::ops {
namespace {

Tensor as_f64(const Tensor& t) { return narrow<double>(widen<double>(t), DType::f64, t.dims()); }

// The order of axes in which operand i is multiplied: matrices transposed, and the first axis moved before the last
// two, as attributes say.
template <class Context>
std::vector<int64_t> order_of(const Context& c, size_t i, size_t rank) {
  std::vector<int64_t> order(rank);
  std::iota(order.begin(), order.end(), int64_t{0});
  if (c.attr_int(i == 0 ? "transBatchA" : "transBatchB") != 0) {
    if (rank < 3) fail("an operand of rank {} has no batch dims to transpose", rank);
    std::rotate(order.begin(), order.begin() + 1, order.end() - 1);
  }
  if (c.attr_int(i == 0 ? "transA" : "transB") != 0 && rank > 1) std::swap(order[rank - 1], order[rank - 2]);
  return order;
}

Tensor arranged(const EvalContext& e, size_t i) {
  return transpose(as_f64(e.tensor(i)), order_of(e, i, e.tensor(i).dims().size()));
}

std::optional<SymDims> arranged(const ir::ShapeContext& c, size_t i) {
  if (!c.dims(i)) return std::nullopt;
  SymDims dims;
  for (int64_t axis : order_of(c, i, c.rank(i))) dims.push_back((*c.dims(i))[static_cast<size_t>(axis)]);
  return dims;
}

std::vector<Type> forward_fused(const ForwardContext& c) {
  return {Type::tensor(c.dtype(0), matmul_dims(c, arranged(c, 0), arranged(c, 1)))};
}

void backward_fused(BackwardContext& c) {
  require_product_rank(c, 0, 1);
  std::optional<SymDims> a = arranged(c, 0);
  std::optional<SymDims> b = arranged(c, 1);
  if (a && b) require_product(c, *a, *b);
}

void eval_fused(EvalContext& e) {
  Tensor a = arranged(e, 0);
  Tensor b = arranged(e, 1);
  double alpha = e.attr_float("alpha");
  e.set(0, map_elements<double>(matmul(a, b), e.tensor(0).dtype(), [=](double v) { return alpha * v; }));
}

Tensor with_bias(const Tensor& product, const Tensor* bias, DType dtype) {
  if (bias == nullptr) return narrow<double>(widen<double>(product), dtype, product.dims());
  if (bias->rank() != 1 || product.rank() == 0 || bias->count() != product.dims().back())
    fail("a bias of shape {} does not fit a product of shape {}", to_string(bias->dims()), to_string(product.dims()));
  return map_pairs<double>(product, *bias, dtype, [](double a, double b) { return a + b; });
}

void eval_dynamic(EvalContext& e) {
  DynamicallyQuantized a = quantize_dynamically(e.tensor(0));
  Tensor zero = Tensor::from<uint8_t>(DType::u8, {}, {&a.zero_point, 1});
  Tensor left = centered(a.values, &zero);
  Tensor right = dequantized(e.tensor(1), e.tensor(2), optional_tensor(e, 3));
  Tensor product = map_elements<double>(matmul(as_f64(left), right), DType::f64,
                                        [&](double v) { return v * static_cast<double>(a.scale); });
  e.set(0, with_bias(product, optional_tensor(e, 4), DType::f32));
}

std::vector<Type> forward_dynamic(const ForwardContext& c) {
  return {Type::tensor(DType::f32, matmul_dims(c, c.dims(0), c.dims(1)))};
}

// The bias has the last dim of the product.
void require_bias(BackwardContext& c, size_t bias) {
  if (c.has(bias)) c.set_rank(bias, 1);
  if (c.result_dims(0) && !c.result_dims(0)->empty()) c.set_dims(bias, SymDims{c.result_dims(0)->back()});
}

void backward_dynamic(BackwardContext& c) {
  require_product_rank(c, 0, 1);
  if (c.dims(0) && c.dims(1)) require_product(c, SymDims(*c.dims(0)), SymDims(*c.dims(1)));
  require_bias(c, 4);
}

// Number i of `bits` bits each, low bits first, in a row of bytes.
unsigned packed_number(std::span<const uint8_t> row, size_t i, unsigned bits) {
  size_t at = i * bits;
  return (row[at / 8] >> (at % 8)) & ((1u << bits) - 1);
}

struct Blocks {
  int64_t n;
  int64_t k;
  int64_t size;
  unsigned bits;
  int64_t count;  // along k
};

Blocks blocks_of(const EvalContext& e) {
  int64_t bits = e.attr_int("bits");
  Blocks b{e.attr_int("N"), e.attr_int("K"), e.attr_int("block_size"), static_cast<unsigned>(bits), 0};
  if (bits != 2 && bits != 4 && bits != 8) fail("attribute 'bits' is {}, but must be 2, 4 or 8", bits);
  if (b.size < 16 || b.size > int64_t{1} << 30 || (b.size & (b.size - 1)) != 0)
    fail("attribute 'block_size' is {}, but must be a power of two from 16 on", b.size);
  if (b.n < 0 || b.k < 0 || b.k > int64_t{1} << 40) fail("attributes 'N' and 'K' are {} and {}", b.n, b.k);
  if (e.attr_int("weight_prepacked") != 0 || e.has(4)) fail("prepacked weights and group indices are not supported");
  b.count = (b.k + b.size - 1) / b.size;
  return b;
}

// Zero points [n, blocks]: as numbers, packed, or the middle of the range.
std::vector<double> zero_points(const EvalContext& e, const Blocks& b) {
  size_t count = affordable({b.n, b.count}, sizeof(double));
  if (!e.has(3)) return std::vector<double>(count, 1u << (b.bits - 1));
  const Tensor& zeros = e.tensor(3);
  if (is_float(zeros.dtype())) {
    if (static_cast<size_t>(zeros.count()) != count) fail("'zero_points' has shape {}", to_string(zeros.dims()));
    return widen<double>(zeros);
  }
  int64_t bytes = (b.count * b.bits + 7) / 8;
  if (zeros.count() != element_count(Dims{b.n, bytes}))
    fail("'zero_points' has shape {}, but {} bytes are needed for each of {} rows", to_string(zeros.dims()), bytes,
         b.n);
  std::vector<double> out;
  for (int64_t row = 0; row < b.n; ++row)
    for (int64_t i = 0; i < b.count; ++i)
      out.push_back(packed_number({zeros.data<uint8_t>() + row * bytes, static_cast<size_t>(bytes)},
                                  static_cast<size_t>(i), b.bits));
  return out;
}

void eval_bits(EvalContext& e) {
  Blocks b = blocks_of(e);
  const Tensor& weights = e.tensor(1);
  int64_t bytes = b.size * b.bits / 8;
  if (weights.count() != element_count(Dims{b.n, b.count, bytes}))
    fail("weights have shape {}, but must have {}", to_string(weights.dims()), to_string(Dims{b.n, b.count, bytes}));
  if (e.tensor(2).count() != element_count(Dims{b.n, b.count}))
    fail("'scales' has shape {}, but must have {}", to_string(e.tensor(2).dims()), to_string(Dims{b.n, b.count}));
  std::vector<double> scales = widen<double>(e.tensor(2));
  std::vector<double> middles = zero_points(e, b);
  std::vector<double> dense = zeros<double>({b.k, b.n});
  for (int64_t n = 0; n < b.n; ++n)
    for (int64_t k = 0; k < b.k; ++k) {
      auto block = static_cast<size_t>(n * b.count + k / b.size);
      std::span<const uint8_t> row(weights.data<uint8_t>() + block * static_cast<size_t>(bytes),
                                   static_cast<size_t>(bytes));
      dense[static_cast<size_t>(k * b.n + n)] =
          (packed_number(row, static_cast<size_t>(k % b.size), b.bits) - middles[block]) * scales[block];
    }
  Tensor product = matmul(as_f64(e.tensor(0)), narrow<double>(dense, DType::f64, {b.k, b.n}));
  e.set(0, with_bias(product, optional_tensor(e, 5), e.tensor(0).dtype()));
}

std::vector<Type> forward_bits(const ForwardContext& c) {
  SymDims weights{c.constant(c.attr_int("K")), c.constant(c.attr_int("N"))};
  return {Type::tensor(c.dtype(0), matmul_dims(c, c.dims(0), weights))};
}

void backward_bits(BackwardContext& c) {
  if (!c.dims(0) && c.result_dims(0)) c.set_rank(0, c.result_dims(0)->size());
  if (c.dims(0) && c.rank(0) > 0) c.equal(c.dims(0)->back(), c.constant(c.attr_int("K")));
  require_bias(c, 5);
}

OpDef fused() {
  OpDef op = blank_record(Mapping::many_to_many);
  op.name = "ms_fused_matmul";
  op.onnx = {"com.microsoft", "FusedMatMul", {1}};
  op.doc = "alpha times the product of matrices, each perhaps transposed";
  op.operands = {{"a", float_tensor}, {"b", float_tensor}};
  op.results = {{"y", float_tensor}};
  op.attrs = {float_attr("alpha", 1), int_attr("transA", 0), int_attr("transB", 0), int_attr("transBatchA", 0),
              int_attr("transBatchB", 0)};
  op.forward = forward_fused;
  op.backward = backward_fused;
  op.eval = eval_fused;
  op.samples = {{"$(f32[3, 2]{0.680000007, -0.779999971, 0.209999993, -0.0399999991, 0.189999998, 0.319999993}, f32[2, "
                 "3]{-0.389999986, 0.920000017, -0.0700000003, 0.25999999, 0.270000011, -0.629999995}) {transA = 1, "
                 "transB = 1, alpha = 0.5}",
                 "f32[2, 2]{-0.0426499993, 0.0568999983, 0.122500002, -0.207599998}"},
                {"$(f32[3, 2, 4], f32[2, 4, 5]) {transBatchA = 1}", "f32[2, 3, 5]"},
                {"$(f32[4, 2, 3], f32[2, 4, 5]) {transBatchA = 1, transA = 1, transBatchB = 0}", "f32[2, 3, 5]"},
                {"$(f32[2, 0], f32[3, 0]) {transB = 1}", "f32[2, 3]{0, 0, 0, 0, 0, 0}"},
                {"$(f32[3], f32[1, 3, 4]) {transA = 1}", "f32[1, 4]"},
                {"$(f32[5, 1, 2, 3], f32[3]) {transB = 1}", "f32[5, 1, 2]"},
                {"$(f32[2, 3], f32[3, 2]) {transBatchA = 1}", "error: no batch dims"}};
  return op;
}

OpDef dynamic() {
  OpDef op = blank_record(Mapping::many_to_many);
  TypeVar real{"T1", dtypes::f32};
  TypeVar byte{"T2", DTypeSet{DType::i8, DType::u8}};
  op.name = "ms_dynamic_quantize_matmul";
  op.onnx = {"com.microsoft", "DynamicQuantizeMatMul", {1}};
  op.doc = "product of a, quantised at run time, and quantised weights";
  op.operands = {
      {"a", real}, {"b", byte}, {"b_scale", real}, {"b_zero_point", byte, optional}, {"bias", real, optional}};
  op.results = {{"y", real}};
  op.forward = forward_dynamic;
  op.backward = backward_dynamic;
  op.eval = eval_dynamic;
  op.samples = {
      {"$(f32[2, 3]{-0.879999995, -0.180000007, 0.529999971, 0.629999995, 0.460000008, -0.769999981}, i8[3, 2]{1, -2, "
       "30, 4, -5, 60}, f32[2]{0.100000001, 0.200000003}, i8[2]{1, -1}, f32[2]{0.829999983, 0.600000024})",
       "f32[2, 2]{-0.00494118966, 7.10069799, 2.63134122, -8.45526314}"},
      {"$(f32[2, 0], i8[0, 3], f32[])", "f32[2, 3]{0, 0, 0, 0, 0, 0}"},
      {"$(f32[4, 1, 2, 3], i8[5, 3, 2], f32[], _, f32[2])", "f32[4, 5, 2, 2]"},
      {"$(f32[3], i8[3, 1], f32[])", "f32[1]"},
      {"$(f32[2, 3], i8[2, 3], f32[])", "error: do not multiply"},
      {"$(f32[2, 3], i8[3, 2], f32[3])", "error: does not broadcast"}};
  return op;
}

OpDef packed() {
  const DTypeSet reals{DType::f32, DType::f16, DType::bf16};
  OpDef op = blank_record(Mapping::many_to_many);
  TypeVar real{"T1", reals};
  op.name = "ms_matmul_nbits";
  op.onnx = {"com.microsoft", "MatMulNBits", {1}};
  op.doc = "product with weights of 2, 4 or 8 bits, scaled per block";
  op.operands = {{"a", real},
                 {"b", {"T2", DTypeSet{DType::u8}}},
                 {"scales", real},
                 {"zero_points", {"T3", reals | DTypeSet{DType::u8}}, optional},
                 {"g_idx", {"T4", DTypeSet{DType::i32}}, optional},
                 {"bias", real, optional}};
  op.results = {{"y", real}};
  op.attrs = {required_attr("K", AttrKind::integer),
              required_attr("N", AttrKind::integer),
              int_attr("accuracy_level", 0),
              int_attr("bits", 4),
              required_attr("block_size", AttrKind::integer),
              int_attr("weight_prepacked", 0)};
  op.forward = forward_bits;
  op.backward = backward_bits;
  op.eval = eval_bits;
  op.samples = {
      {"$(f32[1, 17]{-0.74000001, 0.529999971, 0.769999981, -0.610000014, 0.150000006, 0.280000001, 0.219999999, "
       "-0.810000002, 0.319999993, 0.25999999, 0.649999976, 0.610000014, -0.349999994, 0.439999998, 0.730000019, "
       "0.790000021, -0.680000007}, u8[2, 2, 8]{235, 142, 237, 4, 2, 6, 68, 59, 15, 0, 0, 0, 0, 0, 0, 0, 249, 141, "
       "202, 166, 147, 51, 156, 6, 3, 0, 0, 0, 0, 0, 0, 0}, f32[2, 2]{0.589999974, -0.370000005, 0.730000019, "
       "0.589999974}, u8[2, 1]{151, 243}, _, f32[2]{-0.949999988, 0.300000012}) {K = 17, N = 2, block_size = 16}",
       "f32[1, 2]{3.24410009, 9.49440002}"},
      {"$(f32[0, 17], u8[2, 2, 16], f32[2, 2], u8[2, 2]) {K = 17, N = 2, bits = 8, block_size = 16}", "f32[0, 2]"},
      {"$(f32[1, 17], u8[2, 2, 8], f32[2, 2], f32[2, 2]) {K = 17, N = 2, block_size = 16}", "f32[1, 2]"},
      {"$(f32[17], u8[2, 2, 8], f32[4]) {K = 17, N = 2, block_size = 16}", "f32[2]"},
      {"$(f32[2, 3, 0], u8[2, 0, 8], f32[2, 0]) {K = 0, N = 2, block_size = 16}", "f32[2, 3, 2]"},
      {"$(f32[1, 16], u8[2, 1, 8], f32[2, 2]) {K = 16, N = 2, block_size = 16}", "error: 'scales' has shape"},
      {"$(f32[1, 16], u8[2, 1, 8], f32[2]) {K = 16, N = 2, block_size = 12}", "error: power of two"}};
  return op;
}

}  // namespace

std::vector<OpDef> ms_matmul_family() { return {dynamic(), fused(), packed()}; }

}  // namespace selkie::ops
