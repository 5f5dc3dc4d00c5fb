// levels: which trips of a loop over rows of a table can run together, told from the rows that they read and write.
#include <algorithm>
#include <numeric>

#include "ops/support/record.h"

namespace selkie::ops {
namespace {

// For each row, the level after which it has its last value, and the last level that reads it.
class Table {
 public:
  explicit Table(int64_t rows) : written_(static_cast<size_t>(rows), -1), read_(static_cast<size_t>(rows), -1) {}

  // The level must come after that of the last write, and not before that of a read.
  int64_t after_write(int64_t row) const { return written_[static_cast<size_t>(row)] + 1; }
  int64_t not_before_read(int64_t row) const { return std::max<int64_t>(read_[static_cast<size_t>(row)], 0); }
  void read(int64_t row, int64_t level) {
    int64_t& last = read_[static_cast<size_t>(row)];
    last = std::max(last, level);
  }
  void write(int64_t row, int64_t level) { written_[static_cast<size_t>(row)] = level; }

 private:
  std::vector<int64_t> written_, read_;
};

int64_t row_of(int64_t index, int64_t rows, int64_t trip) {
  if (index < -rows || index >= rows)
    fail("trip {} of the loop takes row {}, but there are {} rows", trip, index, rows);
  return index < 0 ? index + rows : index;
}

// Trips by level, in their order within one, and where each level begins.
void set_order(EvalContext& e, const std::vector<int64_t>& level) {
  std::vector<int64_t> order(level.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](int64_t trip) { return level[static_cast<size_t>(trip)]; });
  std::vector<int64_t> starts;
  for (size_t i = 0; i < order.size(); ++i)
    if (i == 0 || level[static_cast<size_t>(order[i])] != level[static_cast<size_t>(order[i - 1])])
      starts.push_back(static_cast<int64_t>(i));
  starts.push_back(static_cast<int64_t>(order.size()));
  e.set(0, Tensor::of_i64(order));
  e.set(1, Tensor::of_i64(starts));
}

void eval(EvalContext& e) {
  int64_t length = int_of(e.tensor(0));
  if (length < 0) fail("the table has {} rows", length);
  bool appends = !e.has(1);
  int64_t trips = e.tensor(2).rank() > 0 ? e.tensor(2).dim(0) : 0;
  std::vector<int64_t> writes = appends ? std::vector<int64_t>() : ints_of(e.tensor(1));
  if (!appends && static_cast<int64_t>(writes.size()) != trips)
    fail("{} rows are written in {} trips", writes.size(), trips);
  std::vector<std::vector<int64_t>> reads;
  for (size_t i = 2; i < e.operand_count(); ++i) {
    if (e.tensor(i).rank() == 0 || e.tensor(i).dim(0) != trips)
      fail("operand {} has shape {}, but there are {} trips", i, to_string(e.tensor(i).dims()), trips);
    reads.push_back(ints_of(e.tensor(i)));
  }
  Table table(appends ? length + trips : length);
  std::vector<int64_t> level(static_cast<size_t>(trips));
  for (int64_t trip = 0; trip < trips; ++trip) {
    int64_t rows = appends ? length + trip : length;
    int64_t own = 0;
    auto for_each_read = [&](auto&& f) {
      for (std::vector<int64_t>& all : reads) {
        auto per_trip = static_cast<int64_t>(all.size()) / trips;
        for (int64_t k = 0; k < per_trip; ++k) f(all[static_cast<size_t>(trip * per_trip + k)]);
      }
    };
    for_each_read([&](int64_t& row) {
      row = row_of(row, rows, trip);
      own = std::max(own, table.after_write(row));
    });
    int64_t target = appends ? rows : row_of(writes[static_cast<size_t>(trip)], rows, trip);
    own = std::max({own, table.after_write(target), table.not_before_read(target)});
    for_each_read([&](int64_t row) { table.read(row, own); });
    table.write(target, own);
    level[static_cast<size_t>(trip)] = own;
  }
  set_order(e, level);
  for (size_t i = 0; i < reads.size(); ++i) e.set(2 + i, Tensor::of_i64(reads[i]).reshaped(e.tensor(2 + i).dims()));
}

std::vector<Type> forward(const ForwardContext& c) {
  bool is_known = c.dims(2) && !c.dims(2)->empty();
  sym::Expr trips = is_known ? c.dims(2)->front() : c.unknown(0, 0, {});
  sym::Expr starts = c.unknown(1, 0, {.least = c.constant(1), .most = trips + 1});
  std::vector<Type> types{Type::tensor(DType::i64, SymDims{trips}), Type::tensor(DType::i64, SymDims{starts})};
  for (size_t i = 2; i < c.operand_count(); ++i) types.push_back(c.type(i));
  return types;
}

}  // namespace

OpDef levels_op() {
  return {
      .name = "levels",
      .onnx = {},
      .doc = "the trips of a loop over rows of a table, sorted by the level at which all that they need is there",
      .operands = {{"length", i64_tensor}, {"writes", i64_tensor, optional}, {"reads", i64_tensor, variadic}},
      .results = {{"order", i64_tensor}, {"starts", i64_tensor}, {"rows", i64_tensor, variadic}},
      .dynamism = edo({"length", "writes", "reads"}),
      .mapping = Mapping::opaque,
      .forward = forward,
      .backward = absent("the analysis has no order of trips"),
      .value = absent("shape arithmetic has no order of trips"),
      .eval = eval,
      .lower = absent("a row depends on all before it"),
      .grad = absent("the results are integers"),
      .samples = {{"$(i64[]{2}, _, i64[3, 2]{0, 1, 0, 1, 2, 3})",
                   "i64[3]{0, 1, 2}, i64[3]{0, 2, 3}, i64[3, 2]{0, 1, 0, 1, 2, 3}"},
                  {"$(i64[]{1}, _, i64[3]{0, -1, 0})", "i64[3]{0, 2, 1}, i64[3]{0, 2, 3}, i64[3]{0, 1, 0}"},
                  {"$(i64[]{3}, i64[3]{1, 0, 2}, i64[3]{0, 1, 0})",
                   "i64[3]{0, 1, 2}, i64[4]{0, 1, 2, 3}, i64[3]{0, 1, 0}"},
                  {"$(i64[]{3}, i64[2]{1, 0}, i64[2]{0, 2})", "i64[2]{0, 1}, i64[2]{0, 2}, i64[2]{0, 2}"},
                  {"$(i64[]{0}, _, i64[0, 2])", "i64[0], i64[1]{0}, i64[0, 2]"},
                  {"$(i64[]{1}, _, i64[2]{0, 2})", "error: trip 1 of the loop takes row 2, but there are 2 rows"},
                  {"$(i64[]{1}, i64[1]{0}, i64[2]{0, 0})", "error: 1 rows are written in 2 trips"}},
  };
}

}  // namespace selkie::ops
