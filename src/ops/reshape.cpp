// Reshape: the same elements under a shape given at run time.
#include "ops/support/dims.h"
#include "ops/support/lower.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

// The dim that -1 stands for. Among no elements, a zero of the data stands for a zero of the shape, and the rest
// decides: 0×3×4 elements under [0, -1] are 0×12.
int64_t what_is_left(const Tensor& data, const std::vector<int64_t>& dims, int64_t known) {
  auto misfit = [&] {
    fail("{} elements of shape {} do not fit shape {}", data.count(), to_string(data.dims()), to_string(dims));
  };
  if (known != 0) {
    if (data.count() % known != 0) misfit();
    return data.count() / known;
  }
  if (data.count() != 0) misfit();
  auto parts = [](std::span<const int64_t> of) {
    int64_t zeros = 0;
    int64_t rest = 1;
    for (int64_t d : of) {
      if (d == 0) ++zeros;
      if (d > 0 && __builtin_mul_overflow(rest, d, &rest))
        fail("a tensor of shape {} has too many elements", to_string(of));
    }
    return std::pair(zeros, rest);
  };
  auto [data_zeros, data_rest] = parts(data.dims());
  auto [known_zeros, known_rest] = parts(dims);
  return data_zeros == known_zeros && data_rest % known_rest == 0 ? data_rest / known_rest : 0;
}

void eval(EvalContext& e) {
  const Tensor& data = e.tensor(0);
  std::vector<int64_t> dims = ints_of(e.tensor(1));
  bool keep_zero = e.attr_int("allowzero") != 0;
  int64_t known = 1;
  int64_t inferred = -1;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0 && !keep_zero) {
      if (static_cast<int64_t>(i) >= data.rank())
        fail("dim {} of the shape is 0, but the data has only rank {}", i, data.rank());
      dims[i] = data.dim(static_cast<int64_t>(i));
    }
    if (dims[i] == -1) {
      if (inferred >= 0) fail("the shape has more than one -1");
      inferred = static_cast<int64_t>(i);
    } else if (dims[i] < 0) {
      fail("dim {} of the shape is {}", i, dims[i]);
    } else if (__builtin_mul_overflow(known, dims[i], &known)) {
      fail("a tensor of shape {} has too many elements", to_string(dims));
    }
  }
  if (inferred >= 0) dims[static_cast<size_t>(inferred)] = what_is_left(data, dims, known);
  e.set(0, data.reshaped(std::move(dims)));
}

// What an element of the shape adds to the dim it is: the data's dim, if it happens to be 0. Null: nothing.
sym::Expr kept_dim(const ForwardContext& c, sym::Expr element, size_t i) {
  bool may_be_zero = !element.constant() && c.attr_int("allowzero") == 0 && !c.excludes(element, 0);
  if (!may_be_zero || !c.dims(0) || i >= c.rank(0)) return {};  // beyond the rank a 0 is an error
  sym::Expr old = (*c.dims(0))[i];
  if (c.proves_equal(element, old)) return {};
  sym::Expr kept = c.facts().simplify((1 - sym::min(element, 1)) * old);
  return kept.constant() == 0 ? sym::Expr() : kept;
}

// Whether a shape can fit the data if none of its elements happens to be 0 or -1, which mean something else.
bool fits_as_it_is(const ForwardContext& c, const ir::SymElements& shape) {
  std::vector<sym::Expr> kept;
  std::vector<sym::Expr> natural;
  bool inferred = false;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (sym::Expr e = kept_dim(c, shape[i], i)) kept.push_back(e);
    if (!shape[i].constant() && !is_natural(c, shape[i])) natural.push_back(shape[i]);
    inferred = inferred || shape[i].constant().value_or(0) < 0;
  }
  if ((kept.empty() && natural.empty()) || !c.dims(0)) return true;
  sym::Facts trial = c.facts();
  try {
    for (sym::Expr e : natural) trial.add_less_equal(c.constant(0), e, "a trial");
    for (sym::Expr e : kept) trial.add_less_equal(e, c.constant(0), "a trial");
    if (!inferred) trial.add_equal(product(c, *c.dims(0)), product(c, shape), "a trial");
  } catch (const Error&) {
    return false;
  }
  return true;
}

// The dim that an element of the shape gives: itself, or the data's where it is 0. Null: -1 or not known.
sym::Expr given_dim(const ForwardContext& c, sym::Expr element, size_t i, bool fits) {
  if (element.constant() == -1) return {};
  bool keep_zero = c.attr_int("allowzero") != 0;
  if (element.constant() == 0 && !keep_zero) {
    if (!c.dims(0)) return c.unknown(0, i);
    if (i >= c.rank(0)) fail("dim {} of the shape is 0, but the data has only rank {}", i, c.rank(0));
    return (*c.dims(0))[i];
  }
  // A negative element would be -1. Arithmetic on dims does not mean that; an element that was given may.
  if (!is_natural(c, element)) {
    if (!fits || c.services().is_given(element)) return c.unknown(0, i);
    if (!c.services().require_less_equal(c.constant(0), element, "a negative dim would stand for what is left"))
      return c.unknown(0, i);
  }
  if (keep_zero || c.excludes(element, 0)) return element;
  if (!c.dims(0)) return c.unknown(0, i);
  sym::Expr kept = kept_dim(c, element, i);
  if (!kept) return element;
  // An element that happens to be 0 keeps the data's dim. Only where that is 0, too, is the element the dim. That is
  // required of arithmetic on dims, unless they cannot fit the data but by keeping.
  bool required = fits && !c.services().is_given(element) &&
                  c.services().require_less_equal(kept, c.constant(0), "a dim of 0 in a shape keeps the old one");
  return required ? element : element + kept;
}

// What -1 stands for where a dim of the shape is 0, as `what_is_left` finds it.
sym::Expr left_of_nothing(const ForwardContext& c, const SymDims& dims, size_t inferred) {
  sym::Expr left = c.constant(1);
  int64_t zeros = 0;
  for (sym::Expr d : *c.dims(0)) {
    if (!d.constant()) return c.unknown(0, inferred);
    if (*d.constant() == 0)
      ++zeros;
    else
      left = left * d;
  }
  for (sym::Expr d : dims) {
    if (!d.constant()) return c.unknown(0, inferred);
    if (*d.constant() == 0)
      --zeros;
    else
      left = sym::floordiv(left, d);
  }
  return zeros == 0 ? left : c.constant(0);
}

std::vector<Type> forward(const ForwardContext& c) {
  std::optional<ir::SymElements> shape = c.elements(1);
  if (!shape) return {Type::tensor(c.dtype(0))};
  bool fits = fits_as_it_is(c, *shape);
  SymDims dims;
  std::optional<size_t> inferred;
  for (size_t i = 0; i < shape->size(); ++i) {
    dims.push_back(given_dim(c, (*shape)[i], i, fits));
    if (dims.back()) continue;
    if (inferred) fail("the shape has more than one -1");
    inferred = i;
  }
  if (!inferred) return {Type::tensor(c.dtype(0), dims)};
  dims[*inferred] = c.constant(1);
  sym::Expr known = product(c, dims);
  if (c.dims(0) && known.constant() != 0)
    dims[*inferred] = sym::floordiv(product(c, *c.dims(0)), known);
  else
    dims[*inferred] = c.dims(0) ? left_of_nothing(c, dims, *inferred) : c.unknown(0, *inferred);
  return {Type::tensor(c.dtype(0), dims)};
}

// As many elements after as before.
void backward(BackwardContext& c) {
  if (!c.dims(0) || !c.result_dims(0)) return;
  sym::Expr before = product(c, *c.dims(0));
  sym::Expr after = product(c, *c.result_dims(0));
  if (before == after) return;
  // before = floordiv(before, k)·k says that k divides it, which is easier to use.
  for (sym::Expr dim : *c.result_dims(0)) {
    if (dim.is_constant()) continue;
    std::vector<sym::Expr> others;
    for (sym::Expr other : *c.result_dims(0))
      if (other != dim) others.push_back(other);
    sym::Expr rest = product(c, others);
    if (others.size() + 1 == c.result_dims(0)->size() && rest.constant().value_or(0) > 1 &&
        sym::floordiv(before, rest) == dim) {
      c.equal(sym::mod(before, rest), c.constant(0));
      return;
    }
  }
  c.equal(before, after);
}

}  // namespace

OpDef reshape_op() {
  return {
      .name = "reshape",
      .onnx = {"", "Reshape", {1, 5, 13, 14, 19, 21, 23, 24, 25}},
      .doc = "the same elements under another shape; 0 keeps a dim, -1 is what is left",
      .operands = {{"data", any_tensor}, {"shape", i64_tensor}},
      .results = {{"reshaped", any_tensor}},
      .attrs = {int_attr("allowzero", 0)},
      .dynamism = isvdos({"shape"}),
      .mapping = Mapping::reorganize,
      .forward = forward,
      .backward = backward,
      .value = value_by_moving,
      .eval = eval,
      .lower = lower_reorganized,
      .grad = later::training,
      .upgrades = {{5, all_of({attr_to_operand("shape", 1), drop_attrs({"consumed_inputs"})})}},
      .samples = {{"$(f32[2, 3], i64[2]{3, 2})", "f32[3, 2]"},
                  {"$(f32[2, 3, 4], i64[2]{0, -1})", "f32[2, 12]"},
                  {"$(f32[0, 3], i64[2]{3, 0}) {allowzero = 1}", "f32[3, 0]"},
                  {"$(f32[1], i64[0])", "f32[]"},
                  {"$(f32[0, 3, 4], i64[2]{0, -1})", "f32[0, 12]"},
                  {"$(f32[0, 0, 4], i64[2]{0, -1})", "f32[0, 0]"},
                  {"$(f32[2, 3], i64[1]{4})", "error: do not fit"},
                  {"$(f32[2, 3], i64[2]{-1, -1})", "error: more than one -1"}},
  };
}

}  // namespace selkie::ops
