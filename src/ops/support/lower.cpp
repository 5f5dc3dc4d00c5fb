#include "ops/support/lower.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace selkie::ops {

DType compute_dtype(DType dtype) {
  if (dtype == DType::f16 || dtype == DType::bf16) return DType::f32;
  return dtype;
}

sym::Expr broadcast_size(sym::Expr from, sym::Expr to) {
  sym::Expr is_large = sym::min(sym::max(from - 1, 0), 1);
  return is_large * to + (1 - is_large) * from;
}

Index broadcast_index(const LowerContext& c, const SymDims& from, const SymDims& to, const Index& at) {
  Index index;
  size_t shift = to.size() - from.size();
  for (size_t i = 0; i < from.size(); ++i) {
    const kir::Value& here = at[i + shift];
    if (from[i].constant() == 1) {
      index.push_back(c.size(c.constant(0)));
    } else if (c.proves_equal(from[i], to[i + shift])) {
      index.push_back(here);
    } else {  // 1 or as large as the result: the run tells which
      c.services().require_equal(from[i], broadcast_size(from[i], to[i + shift]));
      index.push_back(here * c.size(sym::min(sym::max(from[i] - 1, 0), 1)));
    }
  }
  return index;
}

kir::Value broadcast_operand(const LowerContext& c, size_t i, const Index& at, DType dtype) {
  return cast(c.operand(i, broadcast_index(c, *c.dims(i), c.result_dims(), at)), dtype);
}

void lower_elementwise(LowerContext& c, const ScalarFunction& f, size_t typed_by) {
  DType dtype = compute_dtype(c.dtype(typed_by));
  c.define(0, [&c, f, dtype](const Index& at) {
    std::vector<kir::Value> operands;
    for (size_t i = 0; i < c.operand_count(); ++i)
      operands.push_back(broadcast_operand(c, i, at, c.dtype(i) == DType::boolean ? DType::boolean : dtype));
    return cast(f(c, operands), c.result_dtype());
  });
}

bool has_one_element(const LowerContext& c, size_t i) {
  return std::ranges::all_of(*c.dims(i), [](sym::Expr d) { return d.constant() == 1; });
}

kir::Value only_element(const LowerContext& c, size_t i, DType dtype) {
  return cast(c.operand(i, Index(c.rank(i), c.size(c.constant(0)))), dtype);
}

kir::Value extreme_of(kir::Builder& b, DType dtype, bool largest) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (is_float(dtype)) return b.number(dtype, largest ? infinity : -infinity);
  if (dtype == DType::boolean) return b.number(dtype, largest ? 1 : 0);
  int64_t most = std::numeric_limits<int64_t>::max() >> (64 - info(dtype).bits);
  if (is_signed_integer(dtype)) return cast(b.integer(largest ? most : -most - 1), dtype);
  return cast(b.integer(largest ? -1 : 0), dtype);
}

kir::Value from_real(kir::Value x, DType dtype) {
  if (is_float(dtype) || dtype == DType::boolean) return cast(x, dtype);
  return cast(cast(x, DType::i64), dtype);
}

// 2⁵² + n has n in its lowest bits.
constexpr double two_to_52 = 0x1p52;
constexpr auto bits_of_two_to_52 = std::bit_cast<int64_t>(two_to_52);

kir::Value natural_to_real(kir::Value natural) {
  kir::Builder& b = natural.builder();
  return b.make(kir::Op::bits, DType::f64, {{natural + b.integer(bits_of_two_to_52)}}) - two_to_52;
}

kir::Value real_to_natural(kir::Value real) {
  kir::Builder& b = real.builder();
  return b.make(kir::Op::bits, DType::i64, {{real + two_to_52}}) - b.integer(bits_of_two_to_52);
}

kir::Value linear_index(kir::Builder& b, const SymDims& dims, const Index& at) {
  kir::Value position = b.integer(0);
  for (size_t i = 0; i < dims.size(); ++i) position = position * b.integer(dims[i]) + at[i];
  return position;
}

Index index_at(kir::Builder& b, const SymDims& dims, kir::Value position) {
  Index index(dims.size());
  for (size_t i = dims.size(); i-- > 0;) {
    if (dims[i].constant() == 1) {
      index[i] = b.integer(0);
      continue;
    }
    index[i] = i == 0 ? position : mod(position, b.integer(dims[i]));
    if (i != 0) position = floordiv(position, b.integer(dims[i]));
  }
  return index;
}

void lower_reorganized(LowerContext& c) {
  c.set_view();
  c.define(0, [&c](const Index& at) { return c.operand_at(0, linear_index(c.builder(), c.result_dims(), at)); });
}

kir::Value counted_from_start(const LowerContext& c, kir::Value index, sym::Expr extent) {
  index = cast(index, DType::i64);
  return c.builder().hoist(select(index < 0.0, index + c.size(extent), index));
}

bool divides_safely(const LowerContext& c, size_t operand) {
  std::optional<ir::SymElements> known = c.contents(operand);
  return known && std::ranges::none_of(*known, [&](sym::Expr e) { return !c.excludes(e, 0); });
}

}  // namespace selkie::ops
