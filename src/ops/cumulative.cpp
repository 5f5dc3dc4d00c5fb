// CumSum and CumProd: running sums and products along one axis.
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

void eval(bool sum, EvalContext& e) {
  const Tensor& x = e.tensor(0);
  if (x.rank() == 0) fail("the data is a scalar");
  int64_t axis = normalize_axis(int_of(e.tensor(1)), x.rank());
  bool exclusive = e.attr_int("exclusive") != 0;
  bool reverse = e.attr_int("reverse") != 0;
  int64_t extent = x.dim(axis);
  int64_t outer = product(x.dims(), 0, axis);
  int64_t inner = product(x.dims(), axis + 1, x.rank());
  dispatch_number(x.dtype(), [&](auto tag) {
    using W = typename decltype(tag)::type;
    // Signed integers wrap through their unsigned form.
    using A = std::conditional_t<std::is_same_v<W, int64_t>, uint64_t, W>;
    std::vector<W> values = widen<W>(x);
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < inner; ++i) {
        A running = sum ? A{0} : A{1};
        for (int64_t k = 0; k < extent; ++k) {
          W& at = values[static_cast<size_t>((o * extent + (reverse ? extent - 1 - k : k)) * inner + i)];
          A before = running;
          running = sum ? running + static_cast<A>(at) : running * static_cast<A>(at);
          at = static_cast<W>(exclusive ? before : running);
        }
      }
    e.set(0, narrow<W>(values, x.dtype(), x.dims()));
  });
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
      .backward = later::rdp,
      .value = later::rdp,
      .eval = [sum](EvalContext& e) { eval(sum, e); },
      .lower = later::cpu,
      .grad = later::training,
      .samples = {{"$(i32[3]{1, 2, 3}, i64[]{0})", sum ? "i32[3]{1, 3, 6}" : "i32[3]{1, 2, 6}"},
                  {"$(i32[3]{1, 2, 3}, i64[]{-1}) {exclusive = 1, reverse = 1}",
                   sum ? "i32[3]{5, 3, 0}" : "i32[3]{6, 3, 1}"},
                  {"$(f32[2, 0], i32[]{1})", "f32[2, 0]"},
                  {"$(f32[2], i64[]{1})", "error: axis 1 is outside"},
                  {"$(f32[2], i64[2])", "error: one element"}},
  };
}

}  // namespace

std::vector<OpDef> cumulative_family() { return {record(true), record(false)}; }

}  // namespace selkie::ops
