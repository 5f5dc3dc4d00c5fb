// The text form of kernels and what the verifier accepts and refuses.
#include <gtest/gtest.h>

#include "base/error.h"
#include "kir/expressions.h"
#include "kir/random_kernel.h"

namespace selkie::kir {
namespace {

constexpr std::string_view softmax_text = R"(kernel @softmax(x: f32[M*N], out y: f32[M*N]) sizes(M, N) {
  range i < M {
    local top: f32 = f32 -inf
    vector j < N {
      top max= x[N*i + j]
    }
    local sum: f32 = f32 0
    vector j < N {
      local e: f32 = exp(sub(x[N*i + j], top))
      sum add= e
      y[N*i + j] = e
    }
    vector j < N {
      y[N*i + j] = div(y[N*i + j], sum)
    }
  }
}
)";

constexpr std::string_view odd_text =
    R"(kernel @"odd/na\"me"(a: f16[K], p: i64[1], m: bool[K], scratch t: u64[K], out c: i32[2*K]) sizes(K, 'x y') {
  range 'r s' < K {
    serial k < floordiv(K + 1, 2) {
      if less_equal([k], p[0]) {
        local n: i64 = add(p[0], [min(k, 'r s')])
        n = mod(n, i64 -7)
        c[:n] = cast<i32>(load_if(a[:n], m[k], f16 -0.5))
        t[k] = bits<u64>(select(is_nan(a[k]), f64 0x7ff8000000000000, f64 -inf))
        t[k] = u64 18446744073709551615
      }
    }
  }
}
)";

std::string round_trip(std::string_view text) {
  sym::Context symbols;
  Kernel kernel = kir::parse(symbols, text);
  verify(kernel);
  return print(kernel);
}

TEST(KernelText, PrintsWhatWasParsed) {
  EXPECT_EQ(round_trip(softmax_text), softmax_text);
  EXPECT_EQ(round_trip(odd_text), odd_text);
}

TEST(KernelText, SharedExpressionsAreNamedOnce) {
  sym::Context symbols;
  Kernel kernel = kir::parse(symbols, "kernel @k(a: f32[1], out b: f32[1]) sizes() { b[0] = a[0] }");
  Expressions expressions(kernel);
  ExprId e = kernel.body[0].value;
  for (int i = 0; i < 100; ++i) e = expressions.apply(Op::mul, e, e);
  kernel.body[0].value = e;
  std::string text = print(kernel);
  EXPECT_LT(text.size(), 10000U);
  EXPECT_EQ(round_trip(text), text);
}

TEST(KernelText, RandomKernelsRoundTrip) {
  size_t kernels = 0;
  for (uint64_t seed : testing::seeds()) {
    for (uint64_t i = 0; i < 500; ++i) {
      sym::Context symbols;
      Kernel kernel = testing::random_kernel(symbols, seed + i);
      verify(kernel);
      std::string text = print(kernel);
      ASSERT_EQ(round_trip(text), text);
      ++kernels;
    }
  }
  fmt::print("[  COUNT   ] {} random kernels\n", kernels);
}

struct Bad {
  std::string_view body;
  std::string_view message;
};

TEST(KernelText, RefusesBadText) {
  static constexpr Bad cases[] = {
      {"c[0] = d[0]", "nothing is called 'd'"},
      {"c[0] = add(a[0])", "',' expected"},
      {"c[0] = frobnicate(a[0])", "'frobnicate' is no operation"},
      {"c[0] = f32 1x", "'1x' is no such number"},
      {"c[0] = %0", "no let of that number"},
      {"local f32: f32 = f32 0", "'f32' cannot be a name"},
      {"local a: f32 = f32 0", "'a' is taken"},
      {"c[K + ] = f32 0", "expected an expression"},
      {"c[0] = f32 0 }  x", "text after the kernel"},
  };
  for (const Bad& bad : cases) {
    sym::Context symbols;
    std::string text = fmt::format("kernel @k(a: f32[K], out c: f32[K]) sizes(K) {{\n{}\n}}", bad.body);
    try {
      kir::parse(symbols, text);
      ADD_FAILURE() << "accepted: " << bad.body;
    } catch (const Error& error) {
      EXPECT_NE(std::string_view(error.what()).find(bad.message), std::string_view::npos) << error.what();
    }
  }
}

TEST(Verify, RefusesWhatIsNotWellFormed) {
  static constexpr Bad cases[] = {
      {"c[0] = i32 1", "i32 is stored to c, which is f32"},
      {"a[0] = f32 1", "a store goes to the input a"},
      {"c[j] = f32 1", "j is neither a size nor a variable"},
      {"serial K < 3 { }", "the variable K is taken"},
      {"c[0] = add(a[0], cast<f64>(a[0]))", "operands are f32 and f64"},
      {"c[0] = bit_and(a[0], a[0])", "it does not take f32"},
      {"c[0] = cast<f32>(exp([K]))", "it does not take i64"},
      {"c[0] = select(a[0], a[0], a[0])", "the condition is f32"},
      {"c[:cast<i32>([K])] = a[0]", "is not i64"},
      {"c[0] = bits<f32>([K])", "the bits of i64 cannot be read as f32"},
      {"vector j < K { vector i < 2 { } }", "stands in a vector loop"},
      {"vector j < K { serial i < j { } }", "differs between the iterations"},
      {"local s: f32 = f32 0 vector j < K { serial i < 2 { s add= a[j] } }", "that does not declare it"},
      {"vector j < K { if bool true { } }", "a branch stands in a vector loop"},
      {"serial j < K { range i < 2 { } }", "not among the outermost two"},
      {"range i < K { range j < K { range k < K { } } }", "not among the outermost two"},
      {"range i < K { } c[0] = f32 0", "only declarations may stand beside"},
      {"range i < K { } range j < K { }", "only declarations may stand beside"},
      {"local s: f32 = f32 0 vector j < K { s = a[j] }", "assigned in a vector loop"},
      {"local s: f32 = f32 0 vector j < K { s add= a[j] c[j] = s }", "which the vector loop around it accumulates"},
      {"local s: f32 = f32 0 vector j < K { s add= a[j] s mul= a[j] }", "accumulated by add and by mul"},
      {"local s: f32 = f32 0 s sub= a[0]", "cannot be accumulated by sub"},
      {"local s: f32 = f32 0 s bit_or= a[0]", "does not take f32"},
      {"serial j < K { local s: f32 = f32 0 } c[0] = s", "outside of its scope"},
      {"if bool true { local s: f32 = f32 0 } s = f32 1", "outside of its scope"},
      {"if a[0] { }", "a condition is f32"},
  };
  for (const Bad& bad : cases) {
    sym::Context symbols;
    std::string text = fmt::format("kernel @k(a: f32[K], out c: f32[K]) sizes(K) {{\n{}\n}}", bad.body);
    try {
      verify(kir::parse(symbols, text));
      ADD_FAILURE() << "accepted: " << bad.body;
    } catch (const Error& error) {
      EXPECT_NE(std::string_view(error.what()).find(bad.message), std::string_view::npos) << error.what();
    }
  }
}

TEST(Verify, RefusesBrokenTables) {
  sym::Context symbols;
  Kernel good = kir::parse(symbols, "kernel @k(a: f32[1], out c: f32[1]) sizes() { c[0] = add(a[0], a[0]) }");
  verify(good);
  Kernel duplicate = good;
  duplicate.expressions.push_back(duplicate.expressions[0]);
  EXPECT_THROW(verify(duplicate), Error);
  Kernel forward = good;
  forward.expressions.back().operands[0] = static_cast<ExprId>(forward.expressions.size());
  EXPECT_THROW(verify(forward), Error);
  Kernel no_buffer = good;
  no_buffer.expressions[1].slot = 7;
  EXPECT_THROW(verify(no_buffer), Error);
  Kernel string_buffer = good;
  string_buffer.buffers[0].dtype = DType::str;
  EXPECT_THROW(verify(string_buffer), Error);
}

}  // namespace
}  // namespace selkie::kir
