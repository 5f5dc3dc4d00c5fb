// Range: numbers from start up to limit in steps of delta.
#include <cmath>
#include <limits>

#include "ops/support/lower.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

constexpr TypeVar type{"T", dtypes::floats | DTypeSet{DType::i16, DType::i32, DType::i64}};

void eval(EvalContext& e) {
  DType dtype = e.tensor(0).dtype();
  if (is_float(dtype)) {
    double start = double_of(e.tensor(0)), limit = double_of(e.tensor(1)), delta = double_of(e.tensor(2));
    if (delta == 0) fail("delta is 0");
    double count = std::max(0.0, std::ceil((limit - start) / delta));
    if (!(count < 0x1p62)) fail("from {} to {} in steps of {} are too many numbers", start, limit, delta);
    Tensor out(dtype, {static_cast<int64_t>(count)});
    std::vector<double> values(static_cast<size_t>(count));
    for (size_t i = 0; i < values.size(); ++i) values[i] = start + static_cast<double>(i) * delta;
    e.set(0, narrow<double>(values, dtype, out.dims()));
    return;
  }
  __int128 start = int_of(e.tensor(0)), limit = int_of(e.tensor(1)), delta = int_of(e.tensor(2));
  if (delta == 0) fail("delta is 0");
  __int128 span = delta > 0 ? limit - start : start - limit;
  __int128 step = delta > 0 ? delta : -delta;
  __int128 count = span <= 0 ? 0 : (span + step - 1) / step;
  if (count > std::numeric_limits<int64_t>::max()) fail("the range has too many numbers");
  Tensor out(dtype, {static_cast<int64_t>(count)});  // refuses what does not fit into memory
  std::vector<int64_t> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int64_t>(start + static_cast<__int128>(i) * delta);
  e.set(0, narrow<int64_t>(values, dtype, out.dims()));
}

std::vector<Type> forward(const ForwardContext& c) {
  auto start = c.elements(0), limit = c.elements(1);
  auto delta = c.numbers(2);
  sym::Expr count;
  if (start && limit && delta && start->size() == 1 && limit->size() == 1 && delta->size() == 1 && delta->at(0) != 0) {
    sym::Expr length = limit->at(0) - start->at(0);
    int64_t step = delta->at(0);
    count = sym::max(step > 0 ? sym::ceildiv(length, step) : sym::ceildiv(-length, -step), 0);
  }
  // Numbers that are no integers: the reference counts them.
  if (!count && c.rationals(0) && c.rationals(1) && c.rationals(2)) {
    std::optional<Tensor> first = ir::tensor_of(c.known(0)), last = ir::tensor_of(c.known(1)),
                          step = ir::tensor_of(c.known(2));
    if (first && last && step) {
      std::vector<HostValue> operands{*first, *last, *step};
      EvalContext e(c.op(), c.node()->attrs, operands, 1, ir::no_services());
      eval(e);
      count = c.constant(e.take_results()[0].tensor().count());
    }
  }
  return {Type::tensor(c.dtype(0), SymDims{count ? count : c.unknown(0, 0)})};
}

void value(ValueContext& c) {
  auto start = c.contents(0), delta = c.contents(2);
  std::optional<Dims> dims = c.small_dims(0);
  if (!start || !delta || !dims) return;
  ir::SymElements elements;
  for (int64_t i = 0; i < dims->at(0); ++i) elements.push_back(start->at(0) + delta->at(0) * i);
  for (sym::Expr& e : elements)
    if (!c.exact(e, c.dtype(0))) e = {};
  c.set(0, std::move(elements));
}

void lower(LowerContext& c) {
  if (c.dtype(0) != DType::i64 && c.dtype(0) != DType::i32 && c.dtype(0) != DType::f64)
    c.refuse("each number is rounded once, from a wider one");
  for (size_t i = 0; i < 3; ++i)
    if (c.rank(i) != 0) c.refuse("start, limit and delta are no scalars");
  c.define(0, [&c](const Index& at) { return c.operand(0, {}) + cast(at[0], c.dtype(0)) * c.operand(2, {}); });
}

}  // namespace

OpDef range_op() {
  return {
      .name = "range",
      .onnx = {"", "Range", {11, 27}},
      .doc = "the numbers from start up to, not including, limit in steps of delta",
      .operands = {{"start", type}, {"limit", type}, {"delta", type}},
      .results = {{"output", type}},
      .attrs = {optional_attr("stash_type", AttrKind::integer)},
      .dynamism = isvdos({"start", "limit", "delta"}),
      .mapping = Mapping::opaque,
      .forward = forward,
      .backward = absent("the operands are scalars"),
      .value = value,
      .eval = eval,
      .lower = lower,
      .grad = later::training,
      .samples = {{"$(i64[]{2}, i64[]{9}, i64[]{3})", "i64[3]{2, 5, 8}"},
                  {"$(i32[]{10}, i32[]{4}, i32[]{-2})", "i32[3]{10, 8, 6}"},
                  {"$(f32[]{1}, f32[]{1}, f32[]{0.5})", "f32[0]"},
                  {"$(i64[]{0}, i64[]{5}, i64[]{0})", "error: delta is 0"},
                  {"$(i64[]{0}, i64[]{9223372036854775807}, i64[]{1})", "error: too many elements"}},
  };
}

}  // namespace selkie::ops
