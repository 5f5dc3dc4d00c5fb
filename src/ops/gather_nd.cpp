// GatherND: slices addressed by index tuples.
#include "ops/support/lower.h"
#include "ops/support/nd_index.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

void eval(EvalContext& e) {
  const Tensor& data = e.tensor(0);
  const Tensor& indices = e.tensor(1);
  int64_t batch = e.attr_int("batch_dims");
  NdIndex index = nd_index(data, indices, batch);
  Dims dims(indices.dims().begin(), indices.dims().end() - 1);
  dims.insert(dims.end(), data.dims().begin() + batch + indices.dims().back(), data.dims().end());
  Tensor out(data.dtype(), std::move(dims));
  dispatch_storage(data.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = out.mutable_data<T>();
    for (int64_t offset : index.offsets) to = std::copy_n(data.data<T>() + offset, index.slice, to);
  });
  e.set(0, std::move(out));
}

std::vector<Type> forward(const ForwardContext& c) {
  if (!c.dims(0) || !c.dims(1) || c.dims(1)->empty() || !c.dims(1)->back().constant())
    return {Type::tensor(c.dtype(0))};
  SymDims dims(c.dims(1)->begin(), c.dims(1)->end() - 1);
  int64_t first = c.attr_int("batch_dims") + *c.dims(1)->back().constant();
  if (first < 0 || first > static_cast<int64_t>(c.dims(0)->size())) return {Type::tensor(c.dtype(0))};
  dims.insert(dims.end(), c.dims(0)->begin() + first, c.dims(0)->end());
  return {Type::tensor(c.dtype(0), dims)};
}

void lower(LowerContext& c) {
  std::optional<int64_t> width = c.rank(0) > 0 && c.rank(1) > 0 ? c.dims(1)->back().constant() : std::nullopt;
  int64_t batch = c.attr_int("batch_dims");
  if (!width) c.refuse("the width of the index tuples is not known");
  if (*width > 1) c.refuse("index tuples, which are not checked before a kernel runs");
  if (batch < 0 || batch >= std::ssize(*c.dims(1)) || batch + *width > std::ssize(*c.dims(0)))
    c.refuse("the batch dims are outside");
  auto batches = static_cast<size_t>(batch);
  for (size_t i = 0; i < batches; ++i)
    if (!c.proves_equal((*c.dims(0))[i], (*c.dims(1))[i])) c.refuse("batch dims may differ");
  if (*width == 1) c.require_indices(1, (*c.dims(0))[batches]);
  c.define(0, [&c, batches, width = static_cast<size_t>(*width)](const Index& at) {
    auto split = at.begin() + static_cast<std::ptrdiff_t>(c.rank(1) - 1);
    Index tuple(at.begin(), split);
    tuple.push_back(c.builder().integer(0));
    Index from(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(batches));
    if (width == 1) from.push_back(counted_from_start(c, c.operand(1, tuple), (*c.dims(0))[batches]));
    from.insert(from.end(), split, at.end());
    return c.operand(0, from);
  });
}

}  // namespace

OpDef gather_nd_op() {
  return {
      .name = "gather_nd",
      .onnx = {"", "GatherND", {11, 12, 13}},
      .doc = "slices addressed by index tuples",
      .operands = {{"data", any_tensor}, {"indices", i64_tensor}},
      .results = {{"output", any_tensor}},
      .attrs = {int_attr("batch_dims", 0)},
      .dynamism = isdos(),
      .mapping = Mapping::shuffle,
      .forward = forward,
      .backward = absent("the index tuples hide how many dims they address"),
      .value = value_by_moving,
      .eval = eval,
      .lower = lower,
      .grad = later::training,
      .samples = {{"$(i32[2, 2]{1, 2, 3, 4}, i64[2, 2]{0, 0, 1, -1})", "i32[2]{1, 4}"},
                  {"$(f32[2, 3, 4], i64[2, 1]{1, 0}) {batch_dims = 1}", "f32[2, 4]"},
                  {"$(f32[2, 3], i64[0, 1])", "f32[0, 3]"},
                  {"$(f32[2, 3], i64[1, 1]{2})", "error: index 2 is outside"},
                  {"$(f32[2, 3], i64[1, 3])", "error: address 3 dims"}},
  };
}

}  // namespace selkie::ops
