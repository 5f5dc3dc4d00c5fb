// What an operator's `lower` sees: it says what one element of each result is, given elements of the operands.
//
// Which results are stored and which are computed where they are used is not its concern: fusion decides, and asks for
// elements at the indices it needs.
#pragma once

#include <functional>

#include "ir/shape_context.h"
#include "kir/builder.h"

namespace selkie::ir {

// An element of a result at an index of the result's rank.
using Element = std::function<kir::Value(const kir::Index&)>;

// Thrown by `lower` for a form of the operator that has no kernel: it then runs on the host. Not an error.
struct NotLowered {
  std::string reason;
};

// A matrix product of operands 0 and 1, for which there are library kernels: result[batch…, m, n]. In f32, or of bytes
// in i32: those less their zero points, which operands 2 and 3 are, where they are there; one for all, or one for each
// row of the first factor and column of the second.
struct ProductForm {
  // What the axes of an operand or of the result are. Several are taken together, none is an extent of 1.
  struct Matrix {
    std::vector<size_t> rows;
    std::vector<size_t> columns;
    // For each batch dim the axis, and a factor of its stride: 0 where it turns out to be broadcast.
    std::vector<std::pair<std::optional<size_t>, sym::Expr>> batch = {};
  };
  sym::Expr m, n, k;
  SymDims batch = {};
  Matrix a, b, c;
  std::optional<size_t> bias = {};  // an operand of n elements that is added to every row
};

// A convolution of operand 0 [batch, channels, spatial…] with operand 1 [channels, channels / groups, kernel…]. In f32
// with, where it is there, the bias in operand 2; or of bytes in i32, less their zero points in operands 2 and 3: one
// for all, or for the weights one for each channel of the result.
struct ConvolutionForm {
  int64_t groups;
  std::vector<int64_t> strides;
  std::vector<int64_t> dilations;
  SymDims pads;  // before the first element of each spatial axis
};

// Attention of queries (operand 0) to keys (1) and values (2), all [batch, heads, length, size] in f32, with the mask
// in operand 3 where it is there: as many columns as keys, f32 to be added or booleans of the keys that count.
struct AttentionForm {
  float scale;
  bool causal;
  float masked_score;  // where a boolean is false
};

// A recurrent layer in f32 with the operands and results of ONNX's RNN, GRU and LSTM, whose activations are sigmoid,
// tanh or relu.
struct RecurrentForm {
  enum class Cell : uint8_t { rnn, gru, lstm };
  Cell cell;
  int64_t directions;
  bool reversed;  // the first direction is
  std::vector<std::string> activations;
  bool linear_before_reset;
  bool batch_first;
};

class LowerContext : public ShapeContext {
 public:
  struct Operands {
    // The condition under which the element exists is null where it always does.
    std::function<kir::Value(size_t operand, const kir::Index&, kir::Value condition)> at_index;
    std::function<kir::Value(size_t operand, kir::Value position)> at_position;
  };
  LowerContext(const Node& node, std::span<const Known> operands, std::span<const Known> results, sym::Facts& facts,
               sym::Context& symbols, ShapeServices& services, kir::Builder& builder, Operands read)
      : ShapeContext(*node.op, node.attrs, operands, results, facts, symbols, services, &node),
        builder_(builder),
        read_(std::move(read)),
        elements_(results.size()) {}

  kir::Builder& builder() const { return builder_; }
  const Known& result(size_t i) const { return results_[i]; }
  DType result_dtype(size_t i = 0) const { return results_[i].type.dtype; }
  const SymDims& result_dims(size_t i = 0) const { return *results_[i].type.dims; }
  float attr_float(std::string_view name) const { return std::get<float>(*find_attr(name)); }
  kir::Value size(sym::Expr e) const { return builder_.integer(e); }

  // An element of an operand, in its dtype.
  kir::Value operand(size_t i, const kir::Index& at) const { return read_.at_index(i, at, {}); }
  // The same where the condition holds; elsewhere the index may be outside, and the value is of no meaning.
  kir::Value operand_if(kir::Value condition, size_t i, const kir::Index& at) const {
    return read_.at_index(i, at, condition);
  }
  // The same by its position in row-major order.
  kir::Value operand_at(size_t i, kir::Value position) const { return read_.at_position(i, position); }
  void define(size_t result, Element element) { elements_[result] = std::move(element); }
  [[noreturn]] void refuse(std::string reason) const { throw NotLowered{std::move(reason)}; }

  // Elements of an integer operand must lie in -extent … extent - 1, which is checked before the kernel runs.
  void require_indices(size_t operand, sym::Expr extent) { index_checks_.push_back({operand, extent}); }
  // Says that the result is operand 0 in the same order, under other dims.
  void set_view() { view_ = true; }
  // Says that axis i of the result is axis axes[i] of operand 0.
  void set_permutation(std::vector<int64_t> axes) { permutation_ = std::move(axes); }
  // Says that the result is the operands one after the other along an axis.
  void set_concatenation(size_t axis) { concatenation_ = axis; }
  // Says that the node is a product or a convolution, too.
  void set_product(ProductForm form) { product_ = std::move(form); }
  void set_convolution(ConvolutionForm form) { convolution_ = std::move(form); }
  // Says that the node is attention or a recurrent layer, of which elements are not defined.
  void set_attention(AttentionForm form) { attention_ = form; }
  void set_recurrent(RecurrentForm form) { recurrent_ = std::move(form); }

  const Element& element(size_t result) const { return elements_[result]; }
  const std::optional<ProductForm>& product() const { return product_; }
  const std::optional<ConvolutionForm>& convolution() const { return convolution_; }
  const std::optional<AttentionForm>& attention() const { return attention_; }
  const std::optional<RecurrentForm>& recurrent() const { return recurrent_; }
  const std::optional<std::vector<int64_t>>& permutation() const { return permutation_; }
  std::optional<size_t> concatenation() const { return concatenation_; }
  bool is_view() const { return view_; }
  struct IndexCheck {
    size_t operand;
    sym::Expr extent;
  };
  const std::vector<IndexCheck>& index_checks() const { return index_checks_; }

 private:
  kir::Builder& builder_;
  Operands read_;
  std::vector<Element> elements_;
  std::optional<ProductForm> product_;
  std::optional<ConvolutionForm> convolution_;
  std::optional<AttentionForm> attention_;
  std::optional<RecurrentForm> recurrent_;
  std::optional<std::vector<int64_t>> permutation_;
  std::optional<size_t> concatenation_;
  bool view_ = false;
  std::vector<IndexCheck> index_checks_;
};

}  // namespace selkie::ir

namespace selkie::ops {

using ir::LowerContext;
using ir::SymDims;
using kir::Index;

// The dtype in which elements are computed: f32 for the smaller floats, else their own.
DType compute_dtype(DType dtype);

// What a dim that is broadcast must be equal to: itself if it is 1 (or 0), else the result's.
sym::Expr broadcast_size(sym::Expr from, sym::Expr to);
// The index of an operand that is broadcast to the result, from the index of the result.
Index broadcast_index(const LowerContext& c, const SymDims& from, const SymDims& to, const Index& at);
// An element of operand i, broadcast to result 0, as a `dtype`.
kir::Value broadcast_operand(const LowerContext& c, size_t i, const Index& at, DType dtype);

// result 0 = f(operands), element by element, over broadcast operands, computed in the compute dtype of operand
// `typed_by`.
using ScalarFunction = std::function<kir::Value(const LowerContext&, std::span<const kir::Value>)>;
void lower_elementwise(LowerContext& c, const ScalarFunction& f, size_t typed_by = 0);

// Whether operand i is known to have one element, and that element as a `dtype`.
bool has_one_element(const LowerContext& c, size_t i);
kir::Value only_element(const LowerContext& c, size_t i, DType dtype);

// The largest element of a dtype that kernels have, or the smallest: infinities for floats.
kir::Value extreme_of(kir::Builder& b, DType dtype, bool largest);
// A real as a `dtype`. Towards integers as the reference does it: the fraction is cut off, what is beyond 64 bits
// saturates, and what is left wraps.
kir::Value from_real(kir::Value x, DType dtype);

// Between naturals below 2⁵² and f64, by the bits of f64: for vectors of 64-bit integers, for which instruction sets
// before AVX-512 have no conversions.
kir::Value natural_to_real(kir::Value natural);
kir::Value real_to_natural(kir::Value real);

// The position of an index in row-major order, and the index of a position.
kir::Value linear_index(kir::Builder& b, const SymDims& dims, const Index& at);
Index index_at(kir::Builder& b, const SymDims& dims, kir::Value position);

// The elements of operand 0 in the same order under other dims: all operators that reorganize.
void lower_reorganized(LowerContext& c);

// An index that may count from the end of an axis, as one that counts from its start.
kir::Value counted_from_start(const LowerContext& c, kir::Value index, sym::Expr extent);

// Whether an integer operand is known to hold no 0, by which kernels could not divide with an error.
bool divides_safely(const LowerContext& c, size_t operand);

}  // namespace selkie::ops
