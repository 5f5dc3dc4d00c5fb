// Random kernels, whose accesses are within bounds for all sizes, and data to run them on. For tests only.
#pragma once

#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "kir/expressions.h"

namespace selkie::kir::testing {

// A fixed seed and a fresh one, which SELKIE_SEED sets and which is printed.
std::vector<uint64_t> seeds();

struct RandomKernel {
  Kernel kernel;
  bool exact;  // every result is decided to the bit, but for the sign of a zero and the bits of a NaN
};

class Generator {
 public:
  Generator(sym::Context& symbols, uint64_t seed)
      : symbols_(symbols),
        random_(seed),
        expressions_(kernel_),
        rows_(symbols.symbol("M")),
        row_(symbols.symbol("i")),
        columns_(symbols.symbol("N")),
        column_(symbols.symbol("j")) {}

  RandomKernel run();

 private:
  size_t pick(size_t n) { return random_() % n; }
  bool chance(size_t percent) { return pick(100) < percent; }
  template <class T, size_t n>
  T one_of(const T (&items)[n]) {
    return items[pick(n)];
  }

  DType random_dtype();
  uint32_t buffer(DType dtype, Buffer::Role role, sym::Expr elements);
  uint32_t local(DType dtype);
  ExprId leaf(DType dtype);
  ExprId load(DType dtype);
  ExprId constant(DType dtype);
  ExprId tree(DType dtype, int depth);
  ExprId float_tree(DType dtype, int depth);
  ExprId integer_tree(DType dtype, int depth);
  ExprId truth(int depth);
  ExprId approximate(DType dtype);
  Statement store(ExprId value);
  void accumulation(Block& before, Block& body, Block& after);
  void inner_reduction(Block& body);

  sym::Context& symbols_;
  std::mt19937_64 random_;
  Kernel kernel_;
  Expressions expressions_;
  sym::Expr rows_, row_, columns_, column_;
  bool exact_ = true;
  bool adds_ = true;      // float additions, else multiplications: never both, since they may be contracted
  bool extremes_ = true;  // float min and max, else what tells the zeros apart
  std::vector<uint32_t> readable_;
};

inline Kernel random_kernel(sym::Context& symbols, uint64_t seed) { return Generator(symbols, seed).run().kernel; }

// Bytes of `count` elements: mostly small numbers, sometimes the odd ones of the dtype.
std::vector<std::byte> random_data(std::mt19937_64& random, DType dtype, int64_t count, bool moderate);

}  // namespace selkie::kir::testing
