#include "ops/support/shape.h"

#include <algorithm>
#include <numeric>

#include "base/convert.h"

namespace selkie::ops {

int64_t normalize_axis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    fail("axis {} is outside -{}..{} of a tensor of rank {}", axis, rank, rank - 1, rank);
  return axis < 0 ? axis + rank : axis;
}

std::vector<int64_t> normalize_axes(std::span<const int64_t> axes, int64_t rank) {
  std::vector<int64_t> out;
  for (int64_t axis : axes) out.push_back(normalize_axis(axis, rank));
  std::sort(out.begin(), out.end());
  if (auto twice = std::adjacent_find(out.begin(), out.end()); twice != out.end())
    fail("axis {} is given twice", *twice);
  return out;
}

std::vector<int64_t> strides_of(std::span<const int64_t> dims) {
  std::vector<int64_t> strides(dims.size());
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = stride;
    // Beside a dim of 0 the others may be as large as they like: a stride that leaves 64 bits is then never taken.
    stride = static_cast<int64_t>(static_cast<uint64_t>(stride) * static_cast<uint64_t>(std::max<int64_t>(dims[i], 1)));
  }
  return strides;
}

int64_t product(std::span<const int64_t> dims, int64_t begin, int64_t end) {
  // As in strides_of: what leaves 64 bits stands beside a dim of 0, and counts nothing.
  uint64_t result = 1;
  for (int64_t i = begin; i < end; ++i) result *= static_cast<uint64_t>(dims[static_cast<size_t>(i)]);
  return static_cast<int64_t>(result);
}

Dims broadcast(std::span<const int64_t> a, std::span<const int64_t> b) {
  Dims out(std::max(a.size(), b.size()));
  for (size_t i = 0; i < out.size(); ++i) {
    int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1)
      fail("shapes {} and {} do not broadcast: {} is not {}", to_string(a), to_string(b), x, y);
    out[out.size() - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

std::vector<int64_t> broadcast_strides(std::span<const int64_t> dims, std::span<const int64_t> out) {
  std::vector<int64_t> strides(out.size(), 0);
  std::vector<int64_t> own = strides_of(dims);
  size_t lead = out.size() - dims.size();
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] != out[lead + i] && dims[i] != 1)
      fail("shape {} does not broadcast to {}", to_string(dims), to_string(out));
    strides[lead + i] = dims[i] == 1 ? 0 : own[i];
  }
  return strides;
}

Tensor strided_copy(const Tensor& input, Dims dims, const std::vector<int64_t>& strides, int64_t offset) {
  Tensor out(input.dtype(), std::move(dims));
  dispatch_storage(input.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = input.data<T>();
    T* to = out.mutable_data<T>();
    for (Walk<1> walk(out.dims(), {strides}); !walk.done(); walk.next()) *to++ = from[offset + walk.offset(0)];
  });
  return out;
}

Tensor broadcast_to(const Tensor& input, const Dims& dims) {
  if (input.dims() == dims) return input;
  if (input.rank() > static_cast<int64_t>(dims.size()))
    fail("shape {} does not broadcast to {}", to_string(input.dims()), to_string(dims));
  return strided_copy(input, dims, broadcast_strides(input.dims(), dims));
}

Tensor transpose(const Tensor& input, std::span<const int64_t> permutation) {
  std::vector<int64_t> own = strides_of(input.dims());
  Dims dims;
  std::vector<int64_t> strides;
  for (int64_t axis : permutation) {
    dims.push_back(input.dim(axis));
    strides.push_back(own[static_cast<size_t>(axis)]);
  }
  return strided_copy(input, std::move(dims), strides);
}

Tensor concat(std::span<const Tensor> parts, int64_t axis) {
  CHECK(!parts.empty());
  Dims dims = parts[0].dims();
  int64_t at = 0;
  for (const Tensor& part : parts) {
    if (part.rank() != parts[0].rank()) fail("ranks {} and {} cannot be concatenated", parts[0].rank(), part.rank());
    for (int64_t i = 0; i < part.rank(); ++i)
      if (i != axis && part.dim(i) != parts[0].dim(i))
        fail("shapes {} and {} differ outside axis {}", to_string(parts[0].dims()), to_string(part.dims()), axis);
    at += part.dim(axis);
  }
  dims[static_cast<size_t>(axis)] = at;
  Tensor out(parts[0].dtype(), std::move(dims));
  at = 0;
  for (const Tensor& part : parts) {
    write_axis(out, part, axis, at);
    at += part.dim(axis);
  }
  return out;
}

Tensor stack(std::span<const Tensor> slices, int64_t axis) {
  std::vector<Tensor> parts;
  for (const Tensor& slice : slices) {
    if (slice.dims() != slices[0].dims() || slice.dtype() != slices[0].dtype())
      fail("slices of shape {} and {} cannot be stacked", to_string(slices[0].dims()), to_string(slice.dims()));
    parts.push_back(with_axis(slice, axis));
  }
  return concat(parts, axis);
}

Tensor with_axis(const Tensor& input, int64_t axis) {
  Dims dims = input.dims();
  dims.insert(dims.begin() + axis, 1);
  return input.reshaped(std::move(dims));
}

Tensor without_axis(const Tensor& input, int64_t axis) {
  CHECK(input.dim(axis) == 1);
  Dims dims = input.dims();
  dims.erase(dims.begin() + axis);
  return input.reshaped(std::move(dims));
}

namespace {

// Copies rows between a whole tensor and a part of it along one axis.
template <class F>
void for_each_row(const Dims& whole, int64_t axis, int64_t begin, int64_t size, F&& copy) {
  int64_t outer = product(whole, 0, axis);
  int64_t inner = product(whole, axis + 1, static_cast<int64_t>(whole.size()));
  int64_t extent = whole[static_cast<size_t>(axis)];
  if (size * inner == 0) return;  // the outer dims may be as large as they like then
  for (int64_t i = 0; i < outer; ++i) copy((i * extent + begin) * inner, i * size * inner, size * inner);
}

}  // namespace

Tensor slice_axis(const Tensor& input, int64_t axis, int64_t begin, int64_t size) {
  Dims dims = input.dims();
  CHECK(begin >= 0 && size >= 0 && begin + size <= input.dim(axis));
  dims[static_cast<size_t>(axis)] = size;
  Tensor out(input.dtype(), std::move(dims));
  dispatch_storage(input.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = input.data<T>();
    T* to = out.mutable_data<T>();
    for_each_row(input.dims(), axis, begin, size,
                 [&](int64_t whole, int64_t part, int64_t n) { std::copy_n(from + whole, n, to + part); });
  });
  return out;
}

void write_axis(Tensor& whole, const Tensor& part, int64_t axis, int64_t begin) {
  CHECK(begin >= 0 && begin + part.dim(axis) <= whole.dim(axis) && whole.dtype() == part.dtype());
  dispatch_storage(whole.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = part.data<T>();
    T* to = whole.mutable_data<T>();
    for_each_row(whole.dims(), axis, begin, part.dim(axis),
                 [&](int64_t at, int64_t source, int64_t n) { std::copy_n(from + source, n, to + at); });
  });
}

Tensor filled(const Tensor& element, Dims dims) {
  Tensor out(element.dtype(), std::move(dims));
  dispatch_storage(element.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::fill_n(out.mutable_data<T>(), out.count(), *element.data<T>());
  });
  return out;
}

std::vector<ir::Type> same_as_first(const ir::ForwardContext& c) {
  return std::vector<ir::Type>(c.result_count(), c.type(0));
}

namespace {

// x where y is 1, y where x is 1, else both, which are equal then. For dims that broadcast, min(x·y, max(x, y)) is
// all of that, 0 included; without 0 the maximum is enough.
sym::Expr broadcast_dim(const ir::ShapeContext& c, sym::Expr x, sym::Expr y) {
  if (x.constant() == 1 || x == y) return y;
  if (y.constant() == 1) return x;
  if (x.constant() && y.constant()) fail("dims {} and {} do not broadcast", *x.constant(), *y.constant());
  if (x.constant() || y.constant()) {
    // The other one is either the same or 1.
    return x.constant() ? x : y;
  }
  if (c.excludes(x, 1)) return x;
  if (c.excludes(y, 1)) return y;
  if (c.proves_equal(x, y)) return y;
  bool no_zero = c.excludes(x, 0) && c.excludes(y, 0);
  return no_zero ? sym::max(x, y) : sym::min(x * y, sym::max(x, y));
}

}  // namespace

std::optional<ir::SymDims> broadcast(const ir::ShapeContext& c, const std::optional<ir::SymDims>& a,
                                     const std::optional<ir::SymDims>& b) {
  if (!a || !b) return std::nullopt;
  ir::SymDims out(std::max(a->size(), b->size()));
  sym::Expr one = c.constant(1);
  for (size_t i = 0; i < out.size(); ++i) {
    sym::Expr x = i < a->size() ? (*a)[a->size() - 1 - i] : one;
    sym::Expr y = i < b->size() ? (*b)[b->size() - 1 - i] : one;
    out[out.size() - 1 - i] = broadcast_dim(c, x, y);
  }
  return out;
}

std::vector<ir::Type> broadcast_all(const ir::ForwardContext& c) {
  std::optional<ir::SymDims> dims = c.dims(0);
  for (size_t i = 1; i < c.operand_count(); ++i) dims = broadcast(c, dims, c.dims(i));
  return std::vector<ir::Type>(c.result_count(), ir::Type::tensor(c.dtype(0), dims));
}

}  // namespace selkie::ops
