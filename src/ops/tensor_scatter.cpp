// TensorScatter: an update written into a cache at a position per batch entry.
#include "ops/support/dims.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

void eval(EvalContext& e) {
  const Tensor& cache = e.tensor(0);
  const Tensor& update = e.tensor(1);
  if (cache.rank() < 2 || cache.rank() != update.rank())
    fail("cache {} and update {} must have the same rank, at least 2", to_string(cache.dims()),
         to_string(update.dims()));
  int64_t axis = normalize_axis(e.attr_int("axis"), cache.rank());
  if (axis == 0) fail("axis 0 is the batch");
  for (int64_t i = 0; i < cache.rank(); ++i)
    if (i != axis && cache.dim(i) != update.dim(i))
      fail("cache {} and update {} differ outside axis {}", to_string(cache.dims()), to_string(update.dims()), axis);
  const std::string& mode = e.attr_string("mode");
  if (mode != "linear" && mode != "circular") fail("mode is '{}', but must be linear or circular", mode);
  int64_t room = cache.dim(axis);
  int64_t length = update.dim(axis);
  std::vector<int64_t> starts =
      e.has(2) ? ints_of(e.tensor(2)) : std::vector<int64_t>(static_cast<size_t>(cache.dim(0)), 0);
  if (static_cast<int64_t>(starts.size()) != cache.dim(0))
    fail("{} positions are given for a batch of {}", starts.size(), cache.dim(0));
  Tensor out(cache.dtype(), cache.dims());
  dispatch_storage(cache.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::copy_n(cache.data<T>(), cache.count(), out.mutable_data<T>());
    int64_t inner = product(cache.dims(), axis + 1, cache.rank());
    int64_t rows = product(cache.dims(), 1, axis);
    for (int64_t b = 0; b < cache.dim(0); ++b) {
      int64_t start = starts[static_cast<size_t>(b)];
      if (start < 0 || start >= std::max<int64_t>(room, 1) || (mode == "linear" && length > room - start) ||
          (room == 0 && length > 0))
        fail("an update of {} at {} does not fit a cache of {}", length, start, room);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t k = 0; k < length; ++k) {
          int64_t at = (start + k) % room;
          std::copy_n(update.data<T>() + ((b * rows + r) * length + k) * inner, inner,
                      out.mutable_data<T>() + ((b * rows + r) * room + at) * inner);
        }
    }
  });
  e.set(0, std::move(out));
}

// Cache and update agree outside the axis. Where there is a batch, an update that does not wrap fits into the cache.
void backward(BackwardContext& c) {
  backward_same(c);
  for (auto [from, to] : {std::pair(0, 1), std::pair(1, 0)})
    if (c.dims(from)) c.set_rank(to, c.rank(from));
  if (!c.dims(0)) return;
  const SymDims cache = *c.dims(0);
  auto axis = static_cast<size_t>(normalize_axis(c.attr_int("axis"), static_cast<int64_t>(cache.size())));
  SymDims update = cache;
  update[axis] = {};
  c.set_dims(1, update);
  require_count(c, 2, cache[0]);
  if (c.attr_string("mode") == "linear" && c.excludes(cache[0], 0)) c.less_equal(c.dims(1)->at(axis), cache[axis]);
}

}  // namespace

OpDef tensor_scatter_op() {
  return {
      .name = "tensor_scatter",
      .onnx = {"", "TensorScatter", {24}},
      .doc = "a cache with an update written at a position per batch entry",
      .operands = {{"past_cache", any_tensor}, {"update", any_tensor}, {"write_indices", i64_tensor, optional}},
      .results = {{"present_cache", any_tensor}},
      .attrs = {int_attr("axis", -2), string_attr("mode", "linear")},
      .dynamism = isdos(),
      .mapping = Mapping::shuffle,
      .forward = same_as_first,
      .backward = backward,
      .value = absent("shape arithmetic has no caches"),
      .eval = eval,
      .lower = absent("elements are written where indices say, which kernels do not do"),
      .grad = later::training,
      .samples = {{"$(i32[1, 3, 1]{1, 2, 3}, i32[1, 1, 1]{9}, i64[1]{2})", "i32[1, 3, 1]{1, 2, 9}"},
                  {"$(i32[1, 3, 1]{1, 2, 3}, i32[1, 2, 1]{8, 9}, i64[1]{2}) {mode = \"circular\"}",
                   "i32[1, 3, 1]{9, 2, 8}"},
                  {"$(f32[0, 3, 1], f32[0, 1, 1])", "f32[0, 3, 1]"},
                  {"$(f32[0, 1, 1], f32[0, 3, 1])", "f32[0, 1, 1]"},
                  {"$(f32[1, 2, 0, 1], f32[1, 2, 0, 1])", "f32[1, 2, 0, 1]"},
                  {"$(f32[1, 0, 1], f32[1, 1, 1]) {mode = \"circular\"}", "error: does not fit"},
                  {"$(f32[1, 3, 1], f32[1, 2, 1], i64[1]{2})", "error: does not fit"},
                  {"$(f32[1, 3, 1], f32[1, 1, 2])", "error: differ outside axis"}},
  };
}

}  // namespace selkie::ops
