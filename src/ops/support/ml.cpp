#include "ops/support/ml.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "base/convert.h"

namespace selkie::ops {
namespace {

// The inverse of the normal distribution function, by Newton's method on erfc from a rational start.
double probit(double p) {
  if (!(p > 0 && p < 1)) return p == 0 ? -INFINITY : p == 1 ? INFINITY : NAN;
  double t = std::sqrt(-2 * std::log(std::min(p, 1 - p)));
  // Abramowitz and Stegun 26.2.23.
  double x =
      t - (2.515517 + 0.802853 * t + 0.010328 * t * t) / (1 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t * t * t);
  if (p < 0.5) x = -x;
  for (int i = 0; i < 3; ++i) {
    double error = 0.5 * std::erfc(-x / std::numbers::sqrt2) - p;
    x -= error * std::sqrt(2 * std::numbers::pi) * std::exp(x * x / 2);
  }
  return x;
}

// exp(x − max) / sum; where `keep_zeros`, scores of 0 stay 0.
void softmax(std::span<double> scores, bool keep_zeros) {
  if (scores.empty()) return;
  double top = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& s : scores) sum += s = keep_zeros && std::fabs(s) <= 1e-7 ? s * std::exp(-top) : std::exp(s - top);
  for (double& s : scores) s = sum == 0 ? 0.5 : s / sum;
}

// Orders NaN before every number, so that it can be a key.
struct Before {
  template <class T>
  bool operator()(const T& a, const T& b) const {
    if constexpr (std::is_floating_point_v<T>)
      return std::isnan(a) ? !std::isnan(b) : a < b;
    else
      return a < b;
  }
};

}  // namespace

Rows rows_of(const Tensor& x) {
  if (x.rank() != 1 && x.rank() != 2) fail("shape {} is neither [C] nor [N, C]", to_string(x.dims()));
  return {widen<double>(x), x.rank() == 1 ? 1 : x.dim(0), x.dim(x.rank() - 1)};
}

RowDims row_dims(const ir::ShapeContext& c, size_t operand) {
  const std::optional<ir::SymDims>& x = c.dims(operand);
  if (!x || (x->size() != 1 && x->size() != 2)) return {};
  return {x->size() == 1 ? c.constant(1) : x->front(), x->back()};
}

ir::Type scores_type(const ir::ForwardContext& c, size_t result, DType dtype, sym::Expr width) {
  sym::Expr rows = row_dims(c, 0).count;
  return ir::Type::tensor(dtype, ir::SymDims{rows ? rows : c.unknown(0, 0), width ? width : c.unknown(result, 1)});
}

void require_rows(ir::BackwardContext& c) {
  const std::optional<ir::SymDims>& out = c.result_dims(0);
  if (out && !out->empty() && c.excludes(out->front(), 1)) c.set_rank(0, 2);
}

PostTransform post_transform(const std::string& name) {
  constexpr std::string_view names[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  auto at = std::find(std::begin(names), std::end(names), name);
  if (at == std::end(names)) fail("attribute 'post_transform' is \"{}\", which does not exist", name);
  return static_cast<PostTransform>(at - std::begin(names));
}

void apply_transform(PostTransform transform, std::span<double> scores) {
  switch (transform) {
    case PostTransform::none:
      return;
    case PostTransform::softmax:
      return softmax(scores, false);
    case PostTransform::softmax_zero:
      return softmax(scores, true);
    case PostTransform::logistic:
      for (double& s : scores) s = 1 / (1 + std::exp(-s));
      return;
    case PostTransform::probit:
      for (double& s : scores) s = probit(s);
      return;
  }
}

Tensor Labels::pick(const std::vector<size_t>& classes) const {
  Dims dims{static_cast<int64_t>(classes.size())};
  auto label = [](const auto& list, size_t c) {
    using T = typename std::decay_t<decltype(list)>::value_type;
    if (list.size() == 1) return c == 1 ? list[0] : T{};
    if (c >= list.size()) fail("class {} has no label: there are {}", c, list.size());
    return list[c];
  };
  if (!strings.empty()) {
    std::vector<std::string> out;
    for (size_t c : classes) out.push_back(label(strings, c));
    return narrow<std::string>(out, DType::str, dims);
  }
  std::vector<int64_t> out;
  for (size_t c : classes) out.push_back(ints.empty() ? static_cast<int64_t>(c) : label(ints, c));
  return narrow<int64_t>(out, DType::i64, dims);
}

Labels labels_of(const ir::EvalContext& e, std::string_view ints, std::string_view strings) {
  Labels labels;
  if (e.has_attr(ints)) labels.ints = e.attr_ints(ints);
  if (e.has_attr(strings)) labels.strings = e.attr<std::vector<std::string>>(strings);
  if (!labels.ints.empty() && !labels.strings.empty()) fail("attributes '{}' and '{}' are both given", ints, strings);
  return labels;
}

size_t label_count(const ir::ShapeContext& c, std::string_view ints, std::string_view strings) {
  return list_size<int64_t>(c, ints) + list_size<std::string>(c, strings);
}

std::vector<ir::Type> classes_types(const ir::ForwardContext& c, std::string_view strings, sym::Expr width) {
  ir::Type scores = scores_type(c, 1, DType::f32, width);
  DType label = list_size<std::string>(c, strings) > 0 ? DType::str : DType::i64;
  return {ir::Type::tensor(label, ir::SymDims{scores.dims->front()}), scores};
}

void set_classes(ir::EvalContext& e, const Labels& labels, const std::vector<size_t>& classes,
                 const std::vector<std::vector<double>>& scores, size_t width) {
  std::vector<double> all;
  for (const std::vector<double>& row : scores) all.insert(all.end(), row.begin(), row.end());
  e.set(0, labels.pick(classes));
  e.set(1, narrow<double>(all, DType::f32, {static_cast<int64_t>(scores.size()), static_cast<int64_t>(width)}));
}

size_t largest(std::span<const double> scores) {
  return static_cast<size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
}

Tensor list_tensor(const ir::EvalContext& e, std::string_view name) {
  const ir::AttrDef* def = e.op().find_attr(name);
  CHECK(def != nullptr);
  auto make = [&](auto tag, DType dtype) {
    using T = typename decltype(tag)::type;
    if (!e.has_attr(name)) return Tensor(dtype, {0});
    const auto& list = e.attr<std::vector<T>>(name);
    return narrow<T>(list, dtype, {static_cast<int64_t>(list.size())});
  };
  if (def->kind == ir::AttrKind::reals) return make(TypeTag<float>{}, DType::f32);
  if (def->kind == ir::AttrKind::integers) return make(TypeTag<int64_t>{}, DType::i64);
  return make(TypeTag<std::string>{}, DType::str);
}

Tensor look_up(const Tensor& x, const Tensor& keys, const Tensor& values, const Tensor& otherwise) {
  if (keys.count() != values.count()) fail("{} keys do not fit {} values", keys.count(), values.count());
  if (otherwise.count() != 1 || otherwise.dtype() != values.dtype())
    fail("the default must be one element of type {}", name(values.dtype()));
  if (info(x.dtype()).cls != info(keys.dtype()).cls)
    fail("the operand is of type {}, but the keys are of {}", name(x.dtype()), name(keys.dtype()));
  Tensor out(values.dtype(), x.dims());
  auto run = [&](auto key_tag) {
    using K = typename decltype(key_tag)::type;
    std::map<K, size_t, Before> places;
    std::vector<K> known = widen<K>(keys);
    for (size_t i = 0; i < known.size(); ++i) places[known[i]] = i;
    std::vector<K> wanted = widen<K>(x);
    dispatch_storage(values.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (size_t i = 0; i < wanted.size(); ++i) {
        auto found = places.find(wanted[i]);
        out.mutable_data<T>()[i] = found == places.end() ? otherwise.data<T>()[0] : values.data<T>()[found->second];
      }
    });
  };
  if (x.dtype() == DType::str)
    run(TypeTag<std::string>{});
  else if (is_float(x.dtype()))
    run(TypeTag<double>{});
  else
    run(TypeTag<int64_t>{});
  return out;
}

std::vector<float> floats_of(const ir::EvalContext& e, std::string_view name, std::vector<float> fallback) {
  return e.has_attr(name) ? e.attr<std::vector<float>>(name) : fallback;
}

std::vector<int64_t> ints_of(const ir::EvalContext& e, std::string_view name) {
  return e.has_attr(name) ? e.attr_ints(name) : std::vector<int64_t>{};
}

}  // namespace selkie::ops
