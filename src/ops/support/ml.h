// What the operators of ai.onnx.ml share: rows of features, class labels, score transforms and lookups.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ir/eval_context.h"
#include "ir/shape_context.h"

namespace selkie::ops {

inline constexpr std::string_view ml_domain = "ai.onnx.ml";
inline constexpr DTypeSet ml_numbers{DType::f32, DType::f64, DType::i32, DType::i64};

// A matrix of features; a vector is one row.
struct Rows {
  std::vector<double> values;
  int64_t count;
  int64_t width;
  std::span<const double> operator[](int64_t row) const {
    return std::span(values).subspan(static_cast<size_t>(row * width), static_cast<size_t>(width));
  }
};
Rows rows_of(const Tensor& x);

// The dims of such a matrix; null where the operand's are not known.
struct RowDims {
  sym::Expr count;
  sym::Expr width;
};
RowDims row_dims(const ir::ShapeContext& c, size_t operand);
// forward: one row of `width` numbers per row of operand 0, as result `result`.
ir::Type scores_type(const ir::ForwardContext& c, size_t result, DType dtype, sym::Expr width);
// backward: several rows in result 0 are those of a matrix.
void require_rows(ir::BackwardContext& c);

enum class PostTransform : uint8_t { none, softmax, logistic, softmax_zero, probit };
PostTransform post_transform(const std::string& name);
void apply_transform(PostTransform transform, std::span<double> scores);

// The labels in one of two attributes, or none.
struct Labels {
  std::vector<int64_t> ints;
  std::vector<std::string> strings;
  size_t size() const { return ints.size() + strings.size(); }
  // One label per row; without labels the class numbers themselves. A single label stands for class 1; class 0 is 0 or
  // "".
  Tensor pick(const std::vector<size_t>& classes) const;
};
Labels labels_of(const ir::EvalContext& e, std::string_view ints, std::string_view strings);

// The same attributes before the run.
size_t label_count(const ir::ShapeContext& c, std::string_view ints, std::string_view strings);
// forward: a label per row of operand 0, and `width` scores.
std::vector<ir::Type> classes_types(const ir::ForwardContext& c, std::string_view strings, sym::Expr width);

// Result 0: the labels; result 1: the scores, all rows of which have one length.
void set_classes(ir::EvalContext& e, const Labels& labels, const std::vector<size_t>& classes,
                 const std::vector<std::vector<double>>& scores, size_t width);
size_t largest(std::span<const double> scores);

// A list attribute as a vector tensor: f32, i64 or str. Empty without the attribute.
Tensor list_tensor(const ir::EvalContext& e, std::string_view name);
// values[i] where keys[i] is x's element (the last such i; NaN equals NaN), else `otherwise`, a tensor of one element.
Tensor look_up(const Tensor& x, const Tensor& keys, const Tensor& values, const Tensor& otherwise);
// An attribute of floats, or `fallback` without it.
std::vector<float> floats_of(const ir::EvalContext& e, std::string_view name, std::vector<float> fallback = {});
std::vector<int64_t> ints_of(const ir::EvalContext& e, std::string_view name);
// The number of elements of a list attribute; 0 without it.
template <class T>
size_t list_size(const ir::ShapeContext& c, std::string_view name) {
  const ir::Attribute* given = c.find_attr(name);
  return given != nullptr ? std::get<std::vector<T>>(*given).size() : 0;
}

}  // namespace selkie::ops
