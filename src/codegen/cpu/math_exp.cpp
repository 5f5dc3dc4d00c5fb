// exp and log and what is made of them: tanh, sigmoid, erf, pow. The coefficients of polynomials are Chebyshev fits
// made in 60 digits; those of log are from FreeBSD's e_log.c and e_logf.c.
#include <array>
#include <cmath>

#include <llvm/IR/IntrinsicsX86.h>

#include "codegen/cpu/math.h"

namespace selkie::codegen::cpu {
namespace {

// What the formulas need of a floating-point format.
struct Format {
  double magic;             // 1.5 * 2^mantissa bits: adding it rounds to an integer that then stands in the low bits
  uint64_t magic_bits;      // of the number itself
  uint64_t one_bits;        // the exponent field of 1
  uint64_t half_root_bits;  // of sqrt(1/2)
  uint64_t mantissa;
  double least_normal;
  double ln2_high;  // with so many trailing zeros that a product with an exponent is exact
  double ln2_low;
  double exp_most;                    // where exp overflows
  double exp_least;                   // where exp is 0
  double tanh_most;                   // where tanh is 1
  std::span<const double> exp_terms;  // (e^r - 1 - r) / r^2
  std::span<const double> log_terms;
};

constexpr double exp_terms32[] = {0.5, 0.16666576666119928, 0.04166655421298415, 0.008363232883682618,
                                  0.0013926250831497611};
// (e^r - 1) / r for |r| <= ln2 / 32.
constexpr double exp_slope32[] = {1.0, 0.5, 0.16666666666666667};
// Where e^x is so large that e^x / (1 + e^x) is 1.
constexpr double sigmoid_most32 = 18;
// The best cubic for 1 / (1 + x) in 0 … 1, to 1.8e-3 of it.
constexpr double next_reciprocal32[] = {0.9982668977471105, -0.9428076256500486, 0.6655112651647395,
                                        -0.22183708838824617};
constexpr double log_terms32[] = {0.66666662693023682, 0.40000972151756287, 0.28498786687850952, 0.24279078841209412};
// erf(x) / x - erf_line32 is the quotient of two polynomials in x^2.
constexpr double erf_line32 = 0.26;
constexpr double erf_most32 = 3.925;
constexpr double erf_above32[] = {0.8683791756629944,      0.06000189483165741,     0.023081528022885323,
                                  -0.00012330907338764518, -1.7738766473485157e-05, -7.846484550100286e-06};
constexpr double erf_below32[] = {
    1.0, 0.502231776714325, 0.11417795717716217, 0.014982221648097038, 0.0011637464631348848, 3.804857260547578e-05};
constexpr double exp_terms64[] = {0.5,
                                  0.1666666666666667,
                                  0.04166666666666667,
                                  0.008333333333326084,
                                  0.0013888888888883711,
                                  0.0001984126987500228,
                                  2.480158732567746e-05,
                                  2.755725517000089e-06,
                                  2.755727347871858e-07,
                                  2.5105312729622103e-08,
                                  2.09147553258932e-09};
constexpr double log_terms64[] = {6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01,
                                  2.222219843214978396e-01, 1.818357216161805012e-01, 1.531383769920937332e-01,
                                  1.479819860511658591e-01};
constexpr double erf_small64[] = {0.1283791670955126,      -0.37612638903183754,    0.11283791670955043,
                                  -0.02686617064511091,    0.005223977625183944,    -0.0008548327003921653,
                                  0.00012055332032749044,  -1.4925619404959463e-05, 1.6461421673221435e-06,
                                  -1.6355159321238341e-07, 1.4695095079863668e-08,  -1.1520543420570272e-09,
                                  6.227121087154727e-11};
constexpr double erf_large64[] = {
    -1.849048646652532,      -0.6871329878922833,    0.22137166749287585,     -0.08960807119890449,
    0.03853811685774958,     -0.01669297420626002,   0.007090636383196689,    -0.002896399854858186,
    0.0011138305355886894,   -0.0003900818018430202, 0.00011570747938758666,  -2.2340029065142884e-05,
    -3.5695496695639824e-06, 7.256760621364306e-06,  -5.280133316376201e-06,  3.0012215446442448e-06,
    -1.5333322457709196e-06, 6.132108614727077e-07,  -1.1123541855908645e-07, 3.140737428734795e-08,
    -6.186880446230275e-08,  1.9982999489142915e-09, 3.412183522484938e-08,   -1.2937523121546367e-08};

constexpr Format single{.magic = 0x1.8p23,
                        .magic_bits = 0x4b400000,
                        .one_bits = 127,
                        .half_root_bits = 0x3f3504f3,
                        .mantissa = 23,
                        .least_normal = 0x1p-126,
                        .ln2_high = 0.693145751953125,
                        .ln2_low = 1.4286068203094173e-06,
                        .exp_most = 89,
                        .exp_least = -104,
                        .tanh_most = 10,
                        .exp_terms = exp_terms32,
                        .log_terms = log_terms32};
constexpr Format twice{.magic = 0x1.8p52,
                       .magic_bits = 0x4338000000000000,
                       .one_bits = 1023,
                       .half_root_bits = 0x3fe6a09e667f3bcd,
                       .mantissa = 52,
                       .least_normal = 0x1p-1022,
                       .ln2_high = 0x1.62e42fefa3800p-1,
                       .ln2_low = 0x1.ef35793c76730p-45,
                       .exp_most = 710,
                       .exp_least = -746,
                       .tanh_most = 22,
                       .exp_terms = exp_terms64,
                       .log_terms = log_terms64};

const Format& format(Number x) { return x.bits() == 64 ? twice : single; }

// NaN stays NaN.
Number at_most(Number x, double limit) { return select(x > limit, x.constant(limit), x); }
Number at_least(Number x, double limit) { return select(x < limit, x.constant(limit), x); }

Number integer_part(Number x) { return call(llvm::Intrinsic::floor, x); }

}  // namespace

Math::ExpReduced Math::reduce_exp(Number x, Number low) {
  const Format& f = format(x);
  Number shifted = multiply_add(x, x.constant(1.4426950408889634), x.constant(f.magic));
  Number n = shifted - f.magic;
  Number r = multiply_add(n, x.constant(-f.ln2_low), multiply_add(n, x.constant(-f.ln2_high), x));
  if (low.value()) r = r + low;
  return {.n = shifted.as_integer() - x.integer(f.magic_bits),
          .real_n = n,
          .r = r,
          .remainder = r * r * polynomial(isa_, r, f.exp_terms)};
}

Number Math::power_of_two(Number n) {
  const Format& f = format(n);
  return ((n + n.integer(f.one_bits)) << f.mantissa).as_real();
}

bool Math::fills_scaling_vector(Number x) const {
  return isa_.scales && x.is_vector() && x.lanes() * x.bits() == isa_.vector_bytes * 8;
}

Number Math::scale_at_once(Number x, Number n) {
  Builder& builder = x.builder();
  constexpr int present_rounding = 4;
  auto function =
      x.bits() == 32 ? llvm::Intrinsic::x86_avx512_mask_scalef_ps_512 : llvm::Intrinsic::x86_avx512_mask_scalef_pd_512;
  llvm::Value* all = llvm::ConstantInt::getAllOnesValue(builder.getIntNTy(x.lanes()));
  return {builder, builder.CreateIntrinsic(function, {},
                                           {x.value(), n.value(), x.value(), all, builder.getInt32(present_rounding)})};
}

Number Math::exp_of_sum(Number x, Number low) {
  const Format& f = format(x);
  return exp_between(at_least(at_most(x, f.exp_most), f.exp_least), low);
}

// With x = n * ln2 + r, where n is a multiple of 1/16 and |r| <= ln2 / 32: 2 to its fraction is one of 16 numbers,
// which fill a vector, and what is left takes two terms less than for whole n.
Number Math::exp_by_sixteenths(Number x, Number low) {
  const Format& f = single;
  constexpr int steps = 16;
  constexpr double magic = 0x1.8p19;  // its last place is a sixteenth
  Builder& builder = x.builder();
  Number shifted = multiply_add(x, x.constant(1.4426950408889634), x.constant(magic));
  Number n = shifted - magic;
  Number r = multiply_add(n, x.constant(-f.ln2_low), multiply_add(n, x.constant(-f.ln2_high), x));
  if (low.value()) r = r + low;
  std::array<float, steps> roots;
  for (int i = 0; i < steps; ++i) roots[static_cast<size_t>(i)] = static_cast<float>(std::exp2(i / double{steps}));
  llvm::Value* table = llvm::ConstantDataVector::get(builder.getContext(), roots);
  Number root(builder, builder.CreateIntrinsic(llvm::Intrinsic::x86_avx512_permvar_sf_512, {},
                                               {table, shifted.as_integer().value()}));
  Number slope = polynomial(isa_, r, exp_slope32);
  return scale_at_once(multiply_add(root * r, slope, root), n);
}

// In two steps, so that subnormal results are rounded and not lost, unless one instruction does it.
Number Math::exp_between(Number x, Number low) {
  if (x.bits() == 32 && fills_scaling_vector(x)) return exp_by_sixteenths(x, low);
  ExpReduced reduced = reduce_exp(x, low);
  if (fills_scaling_vector(x)) {
    Number tail = polynomial(isa_, reduced.r, format(x).exp_terms);
    Number slope = multiply_add(tail, reduced.r, x.constant(1));
    return scale_at_once(multiply_add(slope, reduced.r, x.constant(1)), reduced.real_n);
  }
  Number half = shift_signed(reduced.n, 1);
  return (reduced.remainder + reduced.r + 1) * power_of_two(half) * power_of_two(reduced.n - half);
}

Number Math::exp(Number x) { return exp_of_sum(x, Number()); }

// x = 2^exponent * (1 + result), with the result between sqrt(1/2) - 1 and sqrt(2) - 1.
Number Math::split_log(Number x, Number& exponent) {
  const Format& f = format(x);
  double lift = std::ldexp(1.0, static_cast<int>(f.mantissa) + 2);
  Number small = x < f.least_normal;
  Number bits = select(small, x * lift, x).as_integer();
  Number n = shift_signed(bits - x.integer(f.half_root_bits), f.mantissa);
  exponent = (n + x.integer(f.magic_bits)).as_real() - f.magic;
  exponent = exponent - select(small, x.constant(static_cast<double>(f.mantissa) + 2), x.constant(0));
  return (bits - (n << f.mantissa)).as_real() - 1;
}

Number Math::log(Number x) {
  const Format& format_of_x = format(x);
  Number n;
  Number f = split_log(x, n);
  Number half_square = f * f * 0.5;
  Number s = f / (f + 2);
  Number z = s * s;
  Number rest = z * polynomial(isa_, z, format_of_x.log_terms);
  Number low = multiply_add(s, half_square + rest, n * format_of_x.ln2_low);
  Number result = multiply_add(n, x.constant(format_of_x.ln2_high), f - (half_square - low));
  Number infinity = x.constant(HUGE_VAL);
  result = select(x < infinity, result, x);  // infinity and NaN
  result = select(x == 0, -infinity, result);
  return select(x < 0, x.constant(NAN), result);
}

// With a = |x|: tanh = (e^2a - 1) / (e^2a + 1), where e^2a - 1 is found without cancellation.
Number Math::tanh(Number x) {
  Number a = at_most(absolute(x), format(x).tanh_most);
  ExpReduced reduced = reduce_exp(a + a, Number());
  Number power = power_of_two(reduced.n);
  Number less_one = multiply_add(power, reduced.r + reduced.remainder, power - 1);
  return copy_sign(less_one / (less_one + 2), x);
}

Number Math::sigmoid(Number x) {
  if (x.bits() == 32 && fills_scaling_vector(x)) return sigmoid_by_guess(x);
  Number e = exp(-absolute(x));
  Number above = select(x < 0, e, x.constant(1));
  if (x.bits() == 32 && x.is_vector() && isa_.has_fma) return above * reciprocal_of_next(e);
  return above / (e + 1);
}

// 1 / (1 + e) for e in 0 … 1: a division of a vector takes longer than a first guess and one step that cubes its error.
Number Math::reciprocal_of_next(Number e) {
  Number guess = polynomial(isa_, e, next_reciprocal32);
  Number error = 1 - multiply_add(e, guess, guess);
  return multiply_add(guess, multiply_add(error, error, error), guess);
}

// e^x / (1 + e^x): a guess of 14 bits and one step that corrects the quotient take less than a division does.
Number Math::sigmoid_by_guess(Number x) {
  Builder& builder = x.builder();
  Number e = exp_between(at_least(at_most(x, sigmoid_most32), single.exp_least), Number());
  Number next = e + 1;
  llvm::Value* all = llvm::ConstantInt::getAllOnesValue(builder.getIntNTy(x.lanes()));
  Number guess(builder, builder.CreateIntrinsic(llvm::Intrinsic::x86_avx512_rcp14_ps_512, {},
                                                {next.value(), next.value(), all}));
  Number quotient = e * guess;
  return multiply_add(multiply_add(-quotient, next, e), guess, quotient);
}

// In f32 one quotient serves all x. What it would round away near 1 is in the line that is added to it.
Number Math::erf(Number x) {
  if (x.bits() == 64) return erf_of_double(x);
  Number a = at_least(at_most(x, erf_most32), -erf_most32);
  Number square = a * a;
  Number quotient = polynomial(isa_, square, erf_above32) / polynomial(isa_, square, erf_below32);
  return at_least(at_most(multiply_add(a, quotient, a * erf_line32), 1), -1);
}

Number Math::erf_of_double(Number x) {
  constexpr double split = 0.92;
  constexpr double middle = 3.45;
  constexpr double scale = 1 / 2.55;  // with the middle, it brings the argument to -1 … 1
  constexpr double most = 6;          // where erf is 1
  Number small = multiply_add(x, polynomial(isa_, x * x, erf_small64), x);
  Number a = at_most(absolute(x), most);
  Number q = polynomial(isa_, (a - middle) * scale, erf_large64);
  // What is left of 1 is between 1e-17 and 1: no power of two leaves the format's normal numbers.
  ExpReduced reduced = reduce_exp(multiply_add(-a, a, q), Number());
  Number large = 1 - (reduced.remainder + reduced.r + 1) * power_of_two(reduced.n);
  return select(absolute(x) < split, small, copy_sign(large, x));
}

// log of a positive f64 to about 2^-66, by 2 atanh(s) with s = f / (2 + f): the first two terms are sums of two.
Math::Pair Math::log_pair(Number x) {
  static constexpr double terms[] = {1.0 / 5,  1.0 / 7,  1.0 / 9,  1.0 / 11, 1.0 / 13,
                                     1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21};
  static constexpr double third = 0.3333333333333333;
  static constexpr double third_low = 1.850371707708594e-17;
  Number n;
  Number f = split_log(x, n);
  Number d = f + 2;
  Number d_low = f - (d - 2);
  Number s = f / d;
  Number s_times_d = s * d;
  Number s_low = ((f - s_times_d) - product_error(s, d, s_times_d) - s * d_low) / d;
  Number z = s * s;
  Number z_low = product_error(s, s, z) + s * s_low * 2;
  Number first = z * third;
  Number first_low = product_error(z, x.constant(third), first) + z * third_low + z_low * third;
  Number second = z * z * polynomial(isa_, z, terms);
  Number t = first + second;
  Number t_low = (first - t) + second + first_low;
  Number s2 = s * 2;
  Number product = s2 * t;
  Number product_low = product_error(s2, t, product) + s2 * t_low + s_low * 2 * (t + 1);
  // n * ln2 + s2 + product, largest first; n is 0 or n * ln2 is the largest.
  Number whole = n * twice.ln2_high;
  Number sum = whole + s2;
  Number sum_low = select(n == 0, x.constant(0), (whole - sum) + s2);
  Number high = sum + product;
  Number low = (sum - high) + product + sum_low + product_low + n * twice.ln2_low;
  return {.high = high, .low = low};
}

// f32 through f64, whose log and exp are exact enough.
Number Math::pow(Number x, Number y) {
  unify(x, y);
  Builder& builder = x.builder();
  Number magnitude;
  if (x.bits() == 32) {
    llvm::Type* wide = builder.getDoubleTy();
    magnitude = exp(y.convert(wide) * log(absolute(x).convert(wide))).convert(builder.getFloatTy());
  } else {
    Number a = absolute(x);
    Pair logarithm = log_pair(a);
    Number plain = (a > 0) & (a < HUGE_VAL);
    Number high = select(plain, logarithm.high, log(a));
    Number product = y * high;
    Number low = product_error(y, high, product) + y * logarithm.low;
    // Beyond, or where the parts of a large y overflow, the power is 0, 1 or infinite without it.
    low = select(plain & (absolute(product) < 1000) & (absolute(low) < 1), low, x.constant(0));
    magnitude = exp_of_sum(product, low);
  }
  return pow_special(x, y, magnitude);
}

// Signs, and the cases where log(|x|) * y says nothing.
Number Math::pow_special(Number x, Number y, Number magnitude) {
  Number infinity = x.constant(HUGE_VAL);
  Number whole = integer_part(y) == y;
  Number half = y * 0.5;
  Number odd = whole & (integer_part(half) != half);
  Number negative = x.as_integer() < x.integer(0);
  Number result = select(negative & odd, -magnitude, magnitude);
  Number undefined = (x < 0) & (absolute(x) < infinity) & (integer_part(y) != y);
  result = select(undefined, x.constant(NAN), result);
  Number one = (y == 0) | (x == 1) | ((x == -1) & (absolute(y) == infinity));
  return select(one, x.constant(1), result);
}

}  // namespace selkie::codegen::cpu
