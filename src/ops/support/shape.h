// Shapes, strides and strided copies for reference code, and the symbolic shape rules that many operators share.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "base/tensor.h"
#include "ir/shape_context.h"

namespace selkie::ops {

// Axis in 0…rank−1; negative ones count from the end. Fails with the range if it is outside.
int64_t normalize_axis(int64_t axis, int64_t rank);
// All of them, without duplicates, sorted.
std::vector<int64_t> normalize_axes(std::span<const int64_t> axes, int64_t rank);

std::vector<int64_t> strides_of(std::span<const int64_t> dims);
int64_t product(std::span<const int64_t> dims, int64_t begin, int64_t end);

// The shape two or more shapes broadcast to (numpy's rule); fails if they do not.
Dims broadcast(std::span<const int64_t> a, std::span<const int64_t> b);
// Strides that walk a tensor of `dims` under the index of `out`: 0 along broadcast axes.
std::vector<int64_t> broadcast_strides(std::span<const int64_t> dims, std::span<const int64_t> out);

// Walks all indices of `dims` in row-major order, keeping linear offsets for several stride lists.
template <size_t N>
class Walk {
 public:
  Walk(std::span<const int64_t> dims, std::array<std::vector<int64_t>, N> strides)
      : dims_(dims.begin(), dims.end()),
        strides_(std::move(strides)),
        index_(dims.size(), 0),
        done_(element_count(dims) == 0) {}

  bool done() const { return done_; }
  int64_t offset(size_t i) const { return offsets_[i]; }
  const std::vector<int64_t>& index() const { return index_; }
  void next() {
    for (size_t axis = dims_.size(); axis-- > 0;) {
      for (size_t i = 0; i < N; ++i) offsets_[i] += strides_[i][axis];
      if (++index_[axis] < dims_[axis]) return;
      for (size_t i = 0; i < N; ++i) offsets_[i] -= strides_[i][axis] * dims_[axis];
      index_[axis] = 0;
    }
    done_ = true;
  }

 private:
  std::vector<int64_t> dims_;
  std::array<std::vector<int64_t>, N> strides_;
  std::vector<int64_t> index_;
  std::array<int64_t, N> offsets_{};
  bool done_;
};

// A new tensor whose element at index i is the input's element at offset + Σ iₖ·strideₖ: transposes, slices, flips and
// broadcasts are all of this form.
Tensor strided_copy(const Tensor& input, Dims dims, const std::vector<int64_t>& strides, int64_t offset = 0);
Tensor broadcast_to(const Tensor& input, const Dims& dims);
Tensor transpose(const Tensor& input, std::span<const int64_t> permutation);
Tensor concat(std::span<const Tensor> parts, int64_t axis);
// Tensors of one shape as the slices of a new axis.
Tensor stack(std::span<const Tensor> slices, int64_t axis);
// The same elements with an axis of 1 more, or one fewer.
Tensor with_axis(const Tensor& input, int64_t axis);
Tensor without_axis(const Tensor& input, int64_t axis);
// The part [begin, begin + size) along one axis.
Tensor slice_axis(const Tensor& input, int64_t axis, int64_t begin, int64_t size);
// Writes `part` into `whole` at `begin` along one axis.
void write_axis(Tensor& whole, const Tensor& part, int64_t axis, int64_t begin);
// A tensor filled with one element, given as a tensor of one element.
Tensor filled(const Tensor& element, Dims dims);

// forward: the result has the type of operand `i`.
std::vector<ir::Type> same_as_first(const ir::ForwardContext& c);
// forward: all operands broadcast together; the results have the dtype of the first.
std::vector<ir::Type> broadcast_all(const ir::ForwardContext& c);
// The symbolic form of `broadcast`. Where facts do not decide which dim is 1, the result is an expression of both.
std::optional<ir::SymDims> broadcast(const ir::ShapeContext& c, const std::optional<ir::SymDims>& a,
                                     const std::optional<ir::SymDims>& b);

}  // namespace selkie::ops
