#include "codegen/layout.h"

#include <algorithm>
#include <numeric>

namespace selkie::codegen {

Layout memory_order(const Layout& layout, size_t rank) {
  if (!layout.empty()) return layout;
  Layout plain(rank);
  std::iota(plain.begin(), plain.end(), 0U);
  return plain;
}

Layout simplified(const Layout& layout, const SymDims& dims) {
  Layout ones;
  Layout others;
  for (uint32_t axis : memory_order(layout, dims.size())) (dims[axis].constant() == 1 ? ones : others).push_back(axis);
  if (std::ranges::is_sorted(others)) return {};
  std::ranges::sort(ones);
  ones.insert(ones.end(), others.begin(), others.end());
  return ones;
}

Layout channels_last(const SymDims& dims) {
  Layout layout{0};
  for (uint32_t i = 2; i < dims.size(); ++i) layout.push_back(i);
  layout.push_back(1);
  return simplified(layout, dims);
}

SymDims strides(const Layout& layout, const SymDims& dims, sym::Context& symbols) {
  SymDims strides(dims.size());
  sym::Expr stride = symbols.constant(1);
  Layout order = memory_order(layout, dims.size());
  for (size_t i = order.size(); i-- > 0;) {
    strides[order[i]] = stride;
    stride = stride * dims[order[i]];
  }
  return strides;
}

Layout permuted(const Layout& layout, std::span<const int64_t> axes, const SymDims& dims) {
  Layout order;
  SymDims moved;
  for (int64_t axis : axes) moved.push_back(dims[static_cast<size_t>(axis)]);
  for (uint32_t axis : memory_order(layout, dims.size()))
    order.push_back(static_cast<uint32_t>(std::ranges::find(axes, static_cast<int64_t>(axis)) - axes.begin()));
  return simplified(order, moved);
}

namespace {

using Axes = std::vector<uint32_t>;

sym::Expr product(const SymDims& dims, std::span<const uint32_t> axes) {
  sym::Expr result = dims[axes[0]];
  for (uint32_t axis : axes.subspan(1)) result = result * dims[axis];
  return result;
}

// Axes of both sides, from the front, whose products are equal: as few as possible.
std::pair<size_t, size_t> first_group(const SymDims& from, std::span<const uint32_t> a, const SymDims& to,
                                      std::span<const uint32_t> b, const sym::Facts& facts) {
  for (size_t total = 2; total < a.size() + b.size(); ++total)
    for (size_t i = 1; i < total && i <= a.size(); ++i) {
      size_t j = total - i;
      if (j > b.size()) continue;
      if (facts.prove_equal(product(from, a.first(i)), product(to, b.first(j))) == sym::Truth::yes) return {i, j};
    }
  return {a.size(), b.size()};
}

Axes larger_than_one(const SymDims& dims) {
  Axes axes;
  for (uint32_t i = 0; i < dims.size(); ++i)
    if (dims[i].constant() != 1) axes.push_back(i);
  return axes;
}

}  // namespace

std::optional<Layout> reshaped(const Layout& layout, const SymDims& from, const SymDims& to, const sym::Facts& facts) {
  if (layout.empty()) return Layout();
  Axes a = larger_than_one(from);
  Axes b = larger_than_one(to);
  Layout order;
  for (uint32_t i = 0; i < to.size(); ++i)
    if (to[i].constant() == 1) order.push_back(i);
  // For each axis of `from`, what it becomes: all axes of its group at the place of the first.
  std::map<uint32_t, std::pair<Axes, Axes>> groups;
  std::span<const uint32_t> rest_a = a;
  std::span<const uint32_t> rest_b = b;
  while (!rest_a.empty() && !rest_b.empty()) {
    auto [i, j] = first_group(from, rest_a, to, rest_b, facts);
    groups[rest_a[0]] = {Axes(rest_a.begin(), rest_a.begin() + static_cast<std::ptrdiff_t>(i)),
                         Axes(rest_b.begin(), rest_b.begin() + static_cast<std::ptrdiff_t>(j))};
    rest_a = rest_a.subspan(i);
    rest_b = rest_b.subspan(j);
  }
  if (!rest_a.empty() || !rest_b.empty()) return std::nullopt;
  Axes memory;
  for (uint32_t axis : memory_order(layout, from.size()))
    if (from[axis].constant() != 1) memory.push_back(axis);
  for (size_t at = 0; at < memory.size();) {
    auto group = groups.find(memory[at]);
    if (group == groups.end()) return std::nullopt;  // not the first of its group
    const auto& [before, after] = group->second;
    if (at + before.size() > memory.size() ||
        !std::equal(before.begin(), before.end(), memory.begin() + static_cast<std::ptrdiff_t>(at)))
      return std::nullopt;
    order.insert(order.end(), after.begin(), after.end());
    at += before.size();
  }
  return simplified(order, to);
}

kir::Value position(kir::Builder& builder, const Layout& layout, const SymDims& dims, const kir::Index& at) {
  kir::Value result = builder.integer(0);
  for (uint32_t axis : memory_order(layout, dims.size())) result = result * builder.integer(dims[axis]) + at[axis];
  return result;
}

}  // namespace selkie::codegen
