// CumSum and CumProd: running sums and products along one axis.
#include "ops/support/lines.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

// Replaces each element by the running result up to it, or before it.
template <class T, class Combine>
void scan(std::span<T> line, bool exclusive, bool reverse, T running, Combine&& combine) {
  for (size_t k = 0; k < line.size(); ++k) {
    T& at = line[reverse ? line.size() - 1 - k : k];
    T before = running;
    running = combine(running, at);
    at = exclusive ? before : running;
  }
}

void eval(bool sum, EvalContext& e) {
  const Tensor& x = e.tensor(0);
  if (x.rank() == 0) fail("the data is a scalar");
  int64_t axis = normalize_axis(int_of(e.tensor(1)), x.rank());
  bool exclusive = e.attr_int("exclusive") != 0;
  bool reverse = e.attr_int("reverse") != 0;
  dispatch_number(x.dtype(), [&](auto tag) {
    using W = typename decltype(tag)::type;
    // Signed integers wrap through their unsigned form.
    using A = std::conditional_t<std::is_same_v<W, int64_t>, uint64_t, W>;
    std::vector<W> values = widen<W>(x);
    for_each_line(values, x.dims(), axis, [&](std::span<W> line) {
      scan(line, exclusive, reverse, sum ? W{0} : W{1}, [&](W a, W b) {
        return static_cast<W>(sum ? static_cast<A>(a) + static_cast<A>(b) : static_cast<A>(a) * static_cast<A>(b));
      });
    });
    e.set(0, narrow<W>(values, x.dtype(), x.dims()));
  });
}

void value(bool sum, ValueContext& c) {
  const ir::Contents* x = c.partial(0);
  std::optional<Dims> dims = ir::small_dims(c.type(0));
  std::optional<std::vector<int64_t>> axis = c.numbers(1);
  if (x == nullptr || is_float(c.dtype(0)) || !dims || dims->empty() || !axis || axis->size() != 1) return;
  bool exclusive = c.attr_int("exclusive") != 0;
  bool reverse = c.attr_int("reverse") != 0;
  ir::SymElements elements = x->elements;
  for_each_line(elements, *dims, normalize_axis(axis->at(0), std::ssize(*dims)), [&](std::span<sym::Expr> line) {
    scan(line, exclusive, reverse, c.constant(sum ? 0 : 1), [&](sym::Expr a, sym::Expr b) {
      return !a || !b ? sym::Expr() : sum ? a + b : a * b;
    });
  });
  for (sym::Expr& e : elements)
    if (e && !c.exact(e, c.dtype(0))) e = {};
  c.set(0, std::move(elements));
}

OpDef record(bool sum) {
  TypeVar type{"T", dtypes::floats | DTypeSet{DType::i32, DType::i64, DType::u32, DType::u64}};
  return {
      .name = sum ? "cum_sum" : "cum_prod",
      .onnx = {"", sum ? "CumSum" : "CumProd", sum ? std::vector<int>{11, 14} : std::vector<int>{26}},
      .doc = sum ? "running sums along one axis" : "running products along one axis",
      .operands = {{"x", type}, {"axis", index_tensor}},
      .results = {{"y", type}},
      .attrs = {int_attr("exclusive", 0), int_attr("reverse", 0)},
      .dynamism = isdos(),
      .mapping = Mapping::many_to_many,
      .forward = same_as_first,
      .backward = backward_same,
      .value = [sum](ValueContext& c) { value(sum, c); },
      .eval = [sum](EvalContext& e) { eval(sum, e); },
      .lower = absent("a running result goes from element to element, which kernels do not have"),
      .grad = later::training,
      .samples = {{"$(i32[3]{1, 2, 3}, i64[]{0})", sum ? "i32[3]{1, 3, 6}" : "i32[3]{1, 2, 6}"},
                  {"$(i32[3]{1, 2, 3}, i64[]{-1}) {exclusive = 1, reverse = 1}",
                   sum ? "i32[3]{5, 3, 0}" : "i32[3]{6, 3, 1}"},
                  {"$(i64[2, 2]{1, 2, 3, 4}, i32[1]{0}) {reverse = 1}",
                   sum ? "i64[2, 2]{4, 6, 3, 4}" : "i64[2, 2]{3, 8, 3, 4}"},
                  {"$(f32[2, 0], i32[]{1})", "f32[2, 0]"},
                  {"$(f32[2], i64[]{1})", "error: axis 1 is outside"},
                  {"$(f32[2], i64[2])", "error: one element"}},
  };
}

}  // namespace

std::vector<OpDef> cumulative_family() { return {record(true), record(false)}; }

}  // namespace selkie::ops
