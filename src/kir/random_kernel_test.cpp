// The generator of random kernels.
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/float_formats.h"
#include "kir/random_kernel.h"

namespace selkie::kir::testing {
namespace {

constexpr DType all_types[] = {DType::f32,  DType::f32,     DType::f32, DType::f64, DType::f16,
                               DType::bf16, DType::boolean, DType::i8,  DType::u8,  DType::i16,
                               DType::u16,  DType::i32,     DType::u32, DType::i64, DType::u64};

}  // namespace

std::vector<uint64_t> seeds() {
  static const uint64_t fresh = [] {
    const char* given = std::getenv("SELKIE_SEED");
    uint64_t seed = given ? std::strtoull(given, nullptr, 10) : std::random_device()();
    fmt::print("[   SEED   ] SELKIE_SEED={}\n", seed);
    return seed;
  }();
  return {20240917, fresh};
}

DType Generator::random_dtype() { return one_of(all_types); }

uint32_t Generator::buffer(DType dtype, Buffer::Role role, sym::Expr elements) {
  kernel_.buffers.push_back(
      {.name = fmt::format("b{}", kernel_.buffers.size()), .dtype = dtype, .role = role, .elements = elements});
  return static_cast<uint32_t>(kernel_.buffers.size() - 1);
}

uint32_t Generator::local(DType dtype) {
  kernel_.locals.push_back({.name = fmt::format("t{}", kernel_.locals.size()), .dtype = dtype});
  return static_cast<uint32_t>(kernel_.locals.size() - 1);
}

ExprId Generator::constant(DType dtype) {
  if (dtype == DType::boolean) return expressions_.whole(dtype, static_cast<int64_t>(pick(2)));
  if (is_float(dtype)) return expressions_.real(dtype, one_of({0.0, 1.0, -1.5, 2.25, 0.5, 100.0}));
  int64_t least = is_unsigned_integer(dtype) ? 0 : -4;
  return expressions_.whole(dtype, least + static_cast<int64_t>(pick(12)));
}

// A new input buffer with one of the ways to index it.
ExprId Generator::load(DType dtype) {
  sym::Expr all = rows_ * columns_;
  sym::Expr flat = row_ * columns_ + column_;
  auto input = [&](sym::Expr elements) { return buffer(dtype, Buffer::Role::input, elements); };
  auto at = [&](sym::Expr elements, sym::Expr index) {
    return expressions_.load(input(elements), expressions_.integer(index));
  };
  switch (pick(14)) {
    case 0:
      return at(columns_, column_);
    case 1:
      return at(rows_, row_);
    case 2:
      return at(symbols_.constant(1), symbols_.constant(0));
    case 3:
      return at(columns_, columns_ - 1 - column_);
    case 4:
      return at(3 * all, 3 * flat);
    case 5:
      return at(all, rows_ * column_ + row_);
    case 6:
      return at(all + 1, sym::floordiv(flat + 2, 3));
    case 7:
      return at(symbols_.constant(5), sym::mod(flat, 5));
    case 8:
      return at(symbols_.constant(8), sym::min(column_, 7));
    case 9: {
      uint32_t indices = buffer(DType::i64, Buffer::Role::input, columns_);
      ExprId raw = expressions_.load(indices, expressions_.integer(column_));
      ExprId natural = expressions_.apply(Op::bit_and, raw, expressions_.whole(DType::i64, INT64_MAX));
      return expressions_.load(input(columns_), expressions_.apply(Op::mod, natural, expressions_.integer(columns_)));
    }
    case 10: {
      ExprId inside = expressions_.apply(Op::less, expressions_.integer(column_ + 1), expressions_.integer(columns_));
      return expressions_.load_if(input(columns_), expressions_.integer(column_ + 1), inside, constant(dtype));
    }
    case 11: {
      ExprId inside = expressions_.apply(Op::less_equal, expressions_.integer(symbols_.constant(3)),
                                         expressions_.integer(2 * column_));
      return expressions_.load_if(input(2 * columns_), expressions_.integer(2 * column_ - 3), inside, constant(dtype));
    }
    default:
      return at(all, flat);
  }
}

ExprId Generator::leaf(DType dtype) {
  size_t kind = pick(10);
  if (kind == 0) return constant(dtype);
  if (kind == 1) return expressions_.convert(Op::cast, dtype, expressions_.integer(row_ * columns_ + column_ - 3));
  if (kind == 2) return expressions_.convert(Op::cast, dtype, load(random_dtype()));
  if (kind == 3 && !readable_.empty()) {
    ExprId value = expressions_.local(readable_[pick(readable_.size())]);
    return expressions_.convert(Op::cast, dtype, value);
  }
  return load(dtype);
}

ExprId Generator::tree(DType dtype, int depth) {
  if (depth == 0) return leaf(dtype);
  if (dtype == DType::boolean) return truth(depth);
  if (chance(10)) return expressions_.convert(Op::cast, dtype, tree(random_dtype(), depth - 1));
  if (chance(10))
    return expressions_.apply(Op::select, truth(depth - 1), tree(dtype, depth - 1), tree(dtype, depth - 1));
  return is_float(dtype) ? float_tree(dtype, depth) : integer_tree(dtype, depth);
}

ExprId Generator::float_tree(DType dtype, int depth) {
  auto sub = [&] { return tree(dtype, depth - 1); };
  if (chance(30)) {
    ExprId a = sub();
    return expressions_.apply(one_of({Op::neg, Op::abs, Op::sqrt, Op::floor, Op::ceil, Op::trunc, Op::round}), a);
  }
  // No constants as factors: a product by one is dropped, and the sum that is left may be rounded together with another
  // product.
  if (dtype != DType::f16 && dtype != DType::bf16 && chance(7))
    return expressions_.apply(Op::fma, load(dtype), load(dtype), sub());
  ExprId a = sub();
  ExprId b = sub();
  if (chance(30)) {
    if (extremes_) return expressions_.apply(one_of({Op::min, Op::max}), a, b);
    return expressions_.apply(one_of({Op::div, Op::mod}), a, b);
  }
  if (adds_) return expressions_.apply(one_of({Op::add, Op::sub}), a, b);
  return expressions_.apply(Op::mul, a, b);
}

ExprId Generator::integer_tree(DType dtype, int depth) {
  ExprId a = tree(dtype, depth - 1);
  if (chance(20)) return expressions_.apply(one_of({Op::neg, Op::abs, Op::bit_not}), a);
  ExprId b = tree(dtype, depth - 1);
  return expressions_.apply(one_of({Op::add, Op::sub, Op::mul, Op::div, Op::mod, Op::min, Op::max, Op::bit_and,
                                    Op::bit_or, Op::bit_xor, Op::shift_left, Op::shift_right}),
                            a, b);
}

ExprId Generator::truth(int depth) {
  if (depth == 0) return leaf(DType::boolean);
  if (chance(20)) return expressions_.apply(Op::bit_not, truth(depth - 1));
  if (chance(20)) {
    ExprId a = truth(depth - 1);
    return expressions_.apply(one_of({Op::bit_and, Op::bit_or, Op::bit_xor}), a, truth(depth - 1));
  }
  DType dtype = random_dtype();
  if (is_float(dtype) && chance(20)) return expressions_.apply(Op::is_nan, tree(dtype, depth - 1));
  ExprId a = tree(dtype, depth - 1);
  return expressions_.apply(one_of({Op::equal, Op::less, Op::less_equal}), a, tree(dtype, depth - 1));
}

// Functions that are right to some bits only, of a value that is exact.
ExprId Generator::approximate(DType dtype) {
  ExprId a = load(dtype);
  Op op = one_of({Op::exp, Op::log, Op::tanh, Op::erf, Op::sigmoid, Op::sin, Op::cos, Op::pow});
  if (op == Op::pow) return expressions_.apply(op, expressions_.apply(Op::abs, a), load(dtype));
  return expressions_.apply(op, a);
}

Statement Generator::store(ExprId value) {
  sym::Expr all = rows_ * columns_;
  sym::Expr flat = row_ * columns_ + column_;
  DType dtype = kernel_[value].dtype;
  sym::Expr elements = all;
  sym::Expr index = flat;
  size_t kind = pick(6);
  if (kind == 0) elements = 2 * all + 1, index = 2 * flat + 1;
  if (kind == 1) index = all - 1 - flat;
  if (kind == 2) index = rows_ * column_ + row_;
  uint32_t slot = buffer(dtype, Buffer::Role::output, elements);
  return {.kind = Statement::Kind::store, .slot = slot, .index = expressions_.integer(index), .value = value};
}

void Generator::accumulation(Block& before, Block& body, Block& after) {
  DType dtype = random_dtype();
  Op op = Op::add;
  if (dtype == DType::boolean)
    op = one_of({Op::bit_and, Op::bit_or});
  else if (is_float(dtype))
    op = exact_ ? one_of({Op::min, Op::max}) : one_of({Op::add, Op::min, Op::max});
  else
    op = one_of({Op::add, Op::mul, Op::min, Op::max, Op::bit_and, Op::bit_or});
  ExprId value = exact_ ? tree(dtype, 2) : load(dtype);
  uint32_t slot = local(dtype);
  before.push_back({.kind = Statement::Kind::declare, .slot = slot, .value = constant(dtype)});
  body.push_back({.kind = Statement::Kind::accumulate, .slot = slot, .combine = op, .value = value});
  uint32_t result = buffer(dtype, Buffer::Role::output, rows_);
  after.push_back({.kind = Statement::Kind::store,
                   .slot = result,
                   .index = expressions_.integer(row_),
                   .value = expressions_.local(slot)});
}

// A reduction of each column for itself.
void Generator::inner_reduction(Block& body) {
  DType dtype = one_of({DType::f32, DType::i32, DType::i64, DType::u8, DType::f16});
  sym::Expr step = symbols_.symbol("k");
  sym::Expr extent = chance(50) ? rows_ : symbols_.constant(3);
  uint32_t from = buffer(dtype, Buffer::Role::input, extent * columns_);
  sym::Expr at = chance(70) ? step * columns_ + column_ : column_ * extent + step;
  ExprId value = expressions_.load(from, expressions_.integer(at));
  if (chance(50)) value = expressions_.apply(Op::max, value, leaf(dtype));
  uint32_t slot = local(dtype);
  body.push_back({.kind = Statement::Kind::declare, .slot = slot, .value = constant(dtype)});
  Op op = is_float(dtype) && exact_ ? one_of({Op::min, Op::max}) : one_of({Op::add, Op::min, Op::max});
  Statement combine{.kind = Statement::Kind::accumulate, .slot = slot, .combine = op, .value = value};
  body.push_back({.kind = Statement::Kind::loop,
                  .loop_kind = Statement::LoopKind::serial,
                  .variable = step,
                  .extent = extent,
                  .body = {std::move(combine)}});
  readable_.push_back(slot);
}

RandomKernel Generator::run() {
  kernel_.name = "random";
  kernel_.sizes = {rows_, columns_};
  exact_ = chance(70);
  adds_ = chance(50);
  extremes_ = chance(50);
  Block before;
  Block body;
  Block after;
  if (chance(50)) {
    uint32_t slot = local(random_dtype());
    body.push_back({.kind = Statement::Kind::declare, .slot = slot, .value = leaf(kernel_.locals[slot].dtype)});
    readable_.push_back(slot);
  }
  if (chance(30)) inner_reduction(body);
  size_t accumulations = chance(40) ? 1 + pick(2) : 0;
  for (size_t i = 0; i < accumulations; ++i) accumulation(before, body, after);
  size_t stores = accumulations == 0 ? 1 + pick(2) : pick(2);
  for (size_t i = 0; i < stores; ++i) {
    DType dtype = random_dtype();
    bool rough = !exact_ && is_float(dtype);
    body.push_back(store(rough ? approximate(dtype) : tree(dtype, 1 + static_cast<int>(pick(3)))));
  }
  auto inner = one_of({Statement::LoopKind::vector, Statement::LoopKind::vector, Statement::LoopKind::vector,
                       Statement::LoopKind::serial});
  before.push_back({.kind = Statement::Kind::loop,
                    .loop_kind = inner,
                    .variable = column_,
                    .extent = columns_,
                    .body = std::move(body)});
  before.insert(before.end(), after.begin(), after.end());
  Block rows = std::move(before);
  if (chance(10)) {
    ExprId condition = expressions_.apply(Op::less, expressions_.integer(row_), expressions_.integer(rows_ - 1));
    rows = {{.kind = Statement::Kind::branch, .value = condition, .body = std::move(rows)}};
  }
  kernel_.body.push_back({.kind = Statement::Kind::loop,
                          .loop_kind = one_of({Statement::LoopKind::range, Statement::LoopKind::serial}),
                          .variable = row_,
                          .extent = rows_,
                          .body = std::move(rows)});
  return {.kernel = std::move(kernel_), .exact = exact_};
}

namespace {

double random_real(std::mt19937_64& random, DType dtype, bool moderate) {
  double unit = static_cast<double>(random() >> 11) * 0x1p-53;
  if (moderate) return (unit - 0.5) * 8;
  static constexpr double odd[] = {0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, 65504.0, 1e-8, 1e10, -3e9, 1e30, 1e-42};
  size_t kind = random() % 40;
  if (kind < std::size(odd)) return odd[kind];
  if (kind == 20) return std::numeric_limits<double>::infinity();
  if (kind == 21) return -std::numeric_limits<double>::infinity();
  if (kind == 22) return std::numeric_limits<double>::quiet_NaN();
  if (kind == 23 && dtype == DType::f64) return 1e300;
  return (unit - 0.5) * (random() % 2 == 0 ? 20 : 3000);
}

}  // namespace

std::vector<std::byte> random_data(std::mt19937_64& random, DType dtype, int64_t count, bool moderate) {
  size_t size = element_size(dtype);
  std::vector<std::byte> bytes(static_cast<size_t>(count) * size);
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    uint64_t code = random() % 3 == 0 ? random() : random() % 12 - 3;
    double value = is_float(dtype) ? random_real(random, dtype, moderate) : 0;
    auto single = static_cast<float>(value);
    if (dtype == DType::f64)
      std::memcpy(&code, &value, 8);
    else if (dtype == DType::f32)
      std::memcpy(&code, &single, 4);
    else if (is_float(dtype))
      code = encode_float(dtype, value);
    else if (dtype == DType::boolean)
      code %= 2;
    std::memcpy(&bytes[i * size], &code, size);
  }
  return bytes;
}

}  // namespace selkie::kir::testing
