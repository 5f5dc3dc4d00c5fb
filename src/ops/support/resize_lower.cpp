#include "ops/support/resize_lower.h"

#include <algorithm>
#include <cmath>

#include "ops/support/dims.h"

namespace selkie::ops {
namespace {

using kir::Value;

// Coordinates are computed in f64, so that the same neighbours are found as by the reference.
constexpr DType real = DType::f64;

struct Axis {
  size_t axis;
  size_t place;  // among the resized axes
  sym::Expr input;
  sym::Expr output;
  std::optional<int64_t> whole_scale = {};  // where the scale is known to be an integer
};

// An element along one axis and its share of a sum.
struct Neighbour {
  Value index;
  Value weight;  // null: 1
};

class Resampling {
 public:
  Resampling(const LowerContext& c, const ResizeOptions& options, const ResizeBy& by, size_t operand)
      : c_(c), options_(options), by_sizes_(by.sizes == operand), operand_(operand) {
    std::vector<size_t> chosen = positions_of(resized_axes(c), c.rank(0));
    std::optional<Tensor> known = by_sizes_ ? std::nullopt : ir::tensor_of(c.known(operand));
    for (size_t i = 0; i < chosen.size(); ++i) {
      Axis a{.axis = chosen[i], .place = i, .input = (*c.dims(0))[chosen[i]], .output = c.result_dims()[chosen[i]]};
      double scale = known ? widen<double>(*known)[i] : 0;
      if (scale >= 1 && scale <= 1024 && scale == std::floor(scale)) a.whole_scale = static_cast<int64_t>(scale);
      axes_.push_back(a);
    }
    std::erase_if(axes_, [&](const Axis& a) { return stays(a); });
  }

  // How many elements of the input one of the result is made of.
  int64_t neighbours() const {
    int64_t count = 1;
    for (size_t i = 0; i < axes_.size() && count <= 256; ++i)
      count *= options_.mode == "nearest" ? 1 : options_.mode == "linear" ? 2 : 4;
    return count;
  }

  Value element(const Index& at) const {
    Index from = at;
    Value inside;
    std::vector<std::vector<Neighbour>> neighbours;
    for (const Axis& a : axes_) {
      if (options_.mode == "nearest" && is_repetition(a)) {
        neighbours.push_back({{.index = floordiv(at[a.axis], c_.builder().integer(*a.whole_scale)), .weight = {}}});
        continue;
      }
      Value x = c_.builder().hoist(coordinate(a, at[a.axis]));
      neighbours.push_back(neighbours_of(a, x));
      if (!crops()) continue;
      Value within = (number(0) <= x) & (x <= cast(c_.size(a.input - 1), real));
      inside = inside ? inside & within : within;
    }
    Value result = sum(neighbours, axes_.size(), from);
    return inside ? select(inside, result, c_.builder().number(result.dtype(), options_.outside)) : result;
  }

 private:
  Value number(double value) const { return c_.builder().number(real, value); }
  bool crops() const { return options_.coordinates == "tf_crop_and_resize"; }

  bool stays(const Axis& a) const {
    if (crops()) return false;
    if (!by_sizes_) return a.whole_scale == 1;
    return keeps_no_ratio() && c_.proves_equal(a.input, a.output);
  }
  bool keeps_no_ratio() const { return c_.attr_string("keep_aspect_ratio_policy") == "stretch"; }

  // Whether each element is repeated: with a scale s, index i comes from i/s, and rounding does not change that, since
  // (i + ½)/s is no integer plus one half that is rounded away from it.
  bool is_repetition(const Axis& a) const {
    if (!a.whole_scale) return false;
    if (options_.coordinates == "asymmetric") return options_.nearest == "floor";
    return options_.coordinates == "half_pixel" && options_.nearest.starts_with("round_prefer");
  }

  Value scale_of(const Axis& a) const {
    if (a.whole_scale) return number(static_cast<double>(*a.whole_scale));
    auto given = [&](size_t place) {
      return cast(c_.operand(operand_, {c_.builder().integer(static_cast<int64_t>(place))}), real);
    };
    if (!by_sizes_) return given(a.place);
    if (keeps_no_ratio()) return cast(c_.size(a.output), real) / cast(c_.size(a.input), real);
    bool smaller = c_.attr_string("keep_aspect_ratio_policy") == "not_larger";
    Value scale;
    for (const Axis& other : axes_) {
      Value ratio = given(other.place) / cast(c_.size(other.input), real);
      ratio = select(c_.size(other.input) == c_.builder().integer(0), number(1), ratio);
      scale = !scale ? ratio : smaller ? min(scale, ratio) : max(scale, ratio);
    }
    return scale;
  }

  // Where an index of the result lies in the input, as a real number.
  Value coordinate(const Axis& a, Value at) const {
    Value x = natural_to_real(at);
    Value last = cast(c_.size(a.input - 1), real);
    Value scale = c_.builder().hoist(scale_of(a));
    Value width = scale * cast(c_.size(a.input), real);
    const std::string& mode = options_.coordinates;
    if (mode == "asymmetric") return x / scale;
    if (mode == "tf_half_pixel_for_nn") return (x + 0.5) / scale;
    if (mode == "align_corners") return select(width == number(1), number(0), x * last / (width - 1));
    Value several = c_.builder().integer(1) < c_.size(a.output);
    if (crops()) {
      auto edge = [&](size_t place) {
        return cast(c_.operand(1, {c_.builder().integer(static_cast<int64_t>(place))}), real);
      };
      Value begin = edge(a.place);
      Value span = (edge(axes_.size() + a.place) - begin) * last;
      return begin * last + select(several, x * span / (width - 1), span / 2);
    }
    Value centre = (x + 0.5) / scale - 0.5;
    if (mode == "pytorch_half_pixel") return select(several, centre, number(0));
    if (mode == "half_pixel") return centre;
    Value shift = cast(c_.size(a.input), real) / 2 * (1.0 - cast(c_.size(a.output), real) / width);
    return shift + (x + 0.5) / scale - 0.5;
  }

  Value nearest_index(Value x) const {
    if (options_.nearest == "floor") return unary(kir::Op::floor, x);
    if (options_.nearest == "ceil") return unary(kir::Op::ceil, x);
    return options_.nearest == "round_prefer_ceil" ? unary(kir::Op::floor, x + 0.5) : unary(kir::Op::ceil, x - 0.5);
  }

  // The share of an element at `distance` from the coordinate, of which it is known whether it is below 1: Keys,
  // "Cubic convolution interpolation for digital image processing", equation 4.
  Value cubic(Value distance, bool near) const {
    double a = options_.cubic_a;
    if (near) return (distance * (a + 2) - (a + 3)) * distance * distance + 1;
    return (((distance - 5) * distance + 8) * distance - 4) * a;
  }

  std::vector<Neighbour> neighbours_of(const Axis& a, Value x) const {
    Value last = cast(c_.size(a.input - 1), real);
    auto index_of = [&](Value v) { return real_to_natural(max(min(v, last), number(0))); };
    if (options_.mode == "nearest") return {{.index = index_of(nearest_index(x)), .weight = {}}};
    Value base = unary(kir::Op::ceil, x) - 1;
    Value ratio = x - base;
    std::vector<Neighbour> out;
    if (options_.mode == "linear")
      out = {{.index = base, .weight = 1.0 - ratio}, {.index = base + 1, .weight = ratio}};
    else
      out = {{.index = base - 1, .weight = cubic(ratio + 1, false)},
             {.index = base, .weight = cubic(ratio, true)},
             {.index = base + 1, .weight = cubic(1.0 - ratio, true)},
             {.index = base + 2, .weight = cubic(2.0 - ratio, false)}};
    if (options_.exclude_outside) exclude_outside(out, last);
    for (Neighbour& n : out)
      n = {.index = c_.builder().hoist(index_of(n.index)), .weight = c_.builder().hoist(n.weight)};
    return out;
  }

  void exclude_outside(std::vector<Neighbour>& neighbours, Value last) const {
    Value sum;
    for (Neighbour& n : neighbours) {
      n.weight = select((number(0) <= n.index) & (n.index <= last), n.weight, number(0));
      sum = sum ? sum + n.weight : n.weight;
    }
    sum = select(sum == number(0), number(1), sum);
    for (Neighbour& n : neighbours) n.weight = n.weight / sum;
  }

  // Σ weight · element over every combination of one neighbour per axis, for the first `count` axes.
  Value sum(const std::vector<std::vector<Neighbour>>& neighbours, size_t count, Index& from) const {
    if (count == 0) return c_.operand(0, from);
    Value total;
    for (const Neighbour& n : neighbours[count - 1]) {
      from[axes_[count - 1].axis] = n.index;
      Value part = sum(neighbours, count - 1, from);
      if (n.weight) {
        DType dtype = compute_dtype(c_.dtype(0));
        part = cast(part, dtype) * cast(n.weight, dtype);
      }
      total = total ? total + part : part;
    }
    return total;
  }

  const LowerContext& c_;
  const ResizeOptions options_;
  bool by_sizes_;
  size_t operand_;
  std::vector<Axis> axes_;
};

}  // namespace

void lower_resize(LowerContext& c, const ResizeOptions& options, const ResizeBy& by) {
  std::optional<size_t> operand = deciding_operand(c, by);
  if (!operand) c.refuse("neither scales nor sizes decide");
  if (options.antialias) c.refuse("antialiasing, whose windows depend on the scale");
  bool crops = options.coordinates == "tf_crop_and_resize";
  size_t axes = positions_of(resized_axes(c), c.rank(0)).size();
  if (crops && (!c.has(1) || c.rank(1) != 1 || c.dims(1)->at(0).constant() != 2 * static_cast<int64_t>(axes)))
    c.refuse("no region is given");
  if (options.mode != "nearest" && options.mode != "linear" && options.mode != "cubic") c.refuse("no such mode");
  if (!is_float(c.dtype(0)) && (crops || options.mode != "nearest"))
    c.refuse("of integers, which are rounded from reals");
  Resampling resampling(c, options, by, *operand);
  if (resampling.neighbours() > 64) c.refuse("too many neighbours");
  c.define(0, [&c, resampling](const Index& at) { return cast(resampling.element(at), c.result_dtype()); });
}

}  // namespace selkie::ops
