// sin and cos with the reduction of their argument, and two operations that some machines lack: fmod and fma.
#include <llvm/IR/Intrinsics.h>

#include <cmath>

#include "codegen/cpu/math.h"

namespace selkie::codegen::cpu {
namespace {

// pi/2 as a sum: two parts of 33 bits, whose products with a number of 20 bits are exact, and the rest.
constexpr double half_pi_1 = 1.5707963267341256;
constexpr double half_pi_2 = 6.077100506303966e-11;
constexpr double half_pi_3 = 2.0222662487959506e-21;
// Beyond, the quotient has more than 20 bits.
constexpr double most_reduced = 1e6;

// (sin(r) - r) / r^3 and (cos(r) - 1 + r^2 / 2) / r^4 in r^2, for |r| up to pi/4.
constexpr double sin_terms32[] = {-0.16666666663741367, 0.00833333183062943, -0.00019840063040804117,
                                  2.7246868722877944e-06};
constexpr double cos_terms32[] = {0.04166666459882798, -0.0013888291300556933, 2.4545419078353295e-05};
constexpr double sin_terms64[] = {-0.16666666666666666,   0.008333333333333331,    -0.00019841269841264821,
                                  2.7557319219150783e-06, -2.5052106167335705e-08, 1.6058521349954986e-10,
                                  -7.586094789672621e-13};
constexpr double cos_terms64[] = {0.041666666666666664,   -0.0013888888888888887, 2.480158730158451e-05,
                                  -2.755731922129809e-07, 2.0876755754879594e-09, -1.1470455178216906e-11,
                                  4.745537017319258e-14};

// The bits of 2/pi, after 64 zeros.
constexpr uint64_t two_over_pi[] = {0x0000000000000000, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041,
                                    0xfe5163abdebbc561, 0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e,
                                    0xe88235f52ebb4484, 0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b,
                                    0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d,
                                    0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab,
                                    0xf0cfbc209af4361d};

llvm::Function* make_function(llvm::Module& module, const char* name, llvm::FunctionType* type) {
  auto* function = llvm::Function::Create(type, llvm::Function::InternalLinkage, name, module);
  function->addFnAttr(llvm::Attribute::NoInline);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  llvm::BasicBlock::Create(module.getContext(), "entry", function);
  return function;
}

// Continues in a new block if `condition` is unlikely and does not hold; returns the block for when it does.
struct Detour {
  llvm::BasicBlock* from;
  llvm::BasicBlock* slow;
  llvm::BasicBlock* after;
};

Detour make_detour(Number condition) {
  Builder& builder = condition.builder();
  llvm::Function* function = builder.GetInsertBlock()->getParent();
  Detour detour{.from = builder.GetInsertBlock(),
                .slow = llvm::BasicBlock::Create(builder.getContext(), "slow", function),
                .after = llvm::BasicBlock::Create(builder.getContext(), "after", function)};
  builder.CreateCondBr(condition.value(), detour.slow, detour.after);
  builder.SetInsertPoint(detour.slow);
  return detour;
}

// Ends a detour: the value is `slow` if it was made, else `fast`.
Number join(const Detour& detour, llvm::BasicBlock* slow_end, Number fast, Number slow) {
  Builder& builder = fast.builder();
  builder.SetInsertPoint(detour.after, detour.after->getFirstNonPHIIt());
  llvm::PHINode* phi = builder.CreatePHI(fast.type(), 2);
  phi->addIncoming(fast.value(), detour.from);
  phi->addIncoming(slow.value(), slow_end);
  builder.SetInsertPoint(detour.after);
  return {builder, phi};
}

}  // namespace

// Payne and Hanek: of the product of the mantissa with 2/pi, only those bits are computed that are below 4 and matter.
llvm::Function* Math::large_reduction() {
  constexpr const char* name = "reduce_large_angle";
  if (llvm::Function* known = module_.getFunction(name)) return known;
  llvm::LLVMContext& context = module_.getContext();
  auto* real = llvm::Type::getDoubleTy(context);
  auto* word = llvm::Type::getInt64Ty(context);
  auto* result_type = llvm::StructType::get(real, word);
  llvm::Function* function = make_function(module_, name, llvm::FunctionType::get(result_type, {real}, false));
  auto* bits = llvm::ConstantDataArray::get(context, llvm::ArrayRef(two_over_pi));
  auto* table = new llvm::GlobalVariable(module_, bits->getType(), true, llvm::GlobalValue::PrivateLinkage, bits);
  Builder builder(&function->getEntryBlock());

  Number x(builder, function->getArg(0));
  Number code = absolute(x).as_integer();
  Number exponent = (code >> 52) - 1075;
  Number mantissa = (code & code.integer((uint64_t{1} << 52) - 1)) | code.integer(uint64_t{1} << 52);
  Number position = exponent + 62;  // of the first bit of 2/pi that matters, among the table's
  Number first = position >> 6;
  Number shift = position & position.integer(63);
  auto window = [&](uint64_t index) {
    auto load = [&](uint64_t i) {
      llvm::Value* at = builder.CreateGEP(word, table, (first + first.integer(i)).value());
      return builder.CreateLoad(word, at);
    };
    llvm::Value* high = load(index);
    return builder.CreateIntrinsic(llvm::Intrinsic::fshl, {word}, {high, load(index + 1), shift.value()});
  };
  auto* wide = builder.getInt128Ty();
  auto times = [&](llvm::Value* factor) {
    return Number(builder,
                  builder.CreateMul(builder.CreateZExt(mantissa.value(), wide), builder.CreateZExt(factor, wide)));
  };
  Number low = times(window(2));
  Number middle = times(window(1)) + (low >> 64);
  Number high = times(window(0)) + (middle >> 64);
  // The low 192 bits of the product are a number of units of 2^-190: two bits of quadrant, then the fraction.
  Number low_word(builder, builder.CreateTrunc(middle.value(), word));
  Number high_word(builder, builder.CreateTrunc(high.value(), word));
  Number last_word(builder, builder.CreateTrunc(low.value(), word));
  Number fraction = (high_word << 2) | (low_word >> 62);
  Number fraction_low = (low_word << 2) | (last_word >> 62);
  Number quadrant = (high_word >> 62) + (fraction >> 63);  // to the nearest: the fraction is signed
  Number turns = Number(builder, builder.CreateSIToFP(fraction.value(), real)) * 0x1p-64 +
                 Number(builder, builder.CreateUIToFP(fraction_low.value(), real)) * 0x1p-128;
  constexpr double half_pi = half_pi_1 + half_pi_2;
  constexpr double half_pi_low = 6.123233995736766e-17;
  Number r = multiply_add(turns, turns.constant(half_pi_low), turns * half_pi);
  Number negative = x < 0;
  r = select(negative, -r, r);
  quadrant = select(negative, -quadrant, quadrant);
  llvm::Value* result = builder.CreateInsertValue(llvm::PoisonValue::get(result_type), r.value(), 0);
  builder.CreateRet(builder.CreateInsertValue(result, quadrant.value(), 1));
  return function;
}

Number Math::sine_of_reduced(Number r, Number quadrant, unsigned quarter) {
  bool wide = r.bits() == 64;
  if (quarter != 0) quadrant = quadrant + quadrant.integer(quarter);
  Number z = r * r;
  auto terms = [&](std::span<const double> narrow_terms, std::span<const double> wide_terms) {
    return polynomial(isa_, z, wide ? wide_terms : narrow_terms);
  };
  Number s = multiply_add(r * z, terms(sin_terms32, sin_terms64), r);
  // 1 - z / 2 with its rounding error.
  Number half = z * 0.5;
  Number rounded = 1 - half;
  Number c = rounded + multiply_add(z * z, terms(cos_terms32, cos_terms64), (1 - rounded) - half);
  Number is_cosine = (quadrant & quadrant.integer(1)) != quadrant.integer(0);
  Number sign = (quadrant & quadrant.integer(2)) << (r.bits() - 2);
  return (select(is_cosine, c, s).as_integer() ^ sign).as_real();
}

Number Math::sine(Number x, unsigned quarter) {
  Builder& builder = x.builder();
  Number wide = x.convert(builder.getDoubleTy());
  constexpr double magic = 0x1.8p52;
  Number shifted = multiply_add(wide, wide.constant(2 / M_PI), wide.constant(magic));
  Number n = shifted - magic;
  Number r = multiply_add(n, wide.constant(-half_pi_2), multiply_add(n, wide.constant(-half_pi_1), wide));
  if (x.bits() == 64) r = multiply_add(n, wide.constant(-half_pi_3), r);
  Number quadrant = shifted.as_integer();
  Number large = (absolute(wide) > most_reduced) & (absolute(wide) < HUGE_VAL);

  Detour detour = make_detour(any(large));
  Number slow_r = r;
  Number slow_quadrant = quadrant;
  Number argument = select(large, wide, wide.constant(most_reduced));
  for (unsigned i = 0; i < wide.lanes(); ++i) {
    llvm::Value* result = builder.CreateCall(large_reduction(), {argument.lane(i).value()});
    Number is_large = large.lane(i);
    slow_r = slow_r.with_lane(i, select(is_large, Number(builder, builder.CreateExtractValue(result, 0)), r.lane(i)));
    slow_quadrant = slow_quadrant.with_lane(
        i, select(is_large, Number(builder, builder.CreateExtractValue(result, 1)), quadrant.lane(i)));
  }
  llvm::BasicBlock* slow_end = builder.GetInsertBlock();
  builder.CreateBr(detour.after);
  r = join(detour, slow_end, r, slow_r);
  quadrant = join(detour, slow_end, quadrant, slow_quadrant);
  if (x.bits() == 32) {
    r = r.convert(builder.getFloatTy());
    quadrant = Number(builder, builder.CreateTrunc(quadrant.value(), x.as_integer().type()));
  }
  Number result = sine_of_reduced(r, quadrant, quarter);
  return quarter == 0 ? select(x == 0, x, result) : result;  // the formula loses the sign of -0
}

// Long division in binary, exact at every step: t = |y| * 2^k goes up to |x| and down again.
llvm::Function* Math::mod_function() {
  constexpr const char* name = "remainder_of_division";
  if (llvm::Function* known = module_.getFunction(name)) return known;
  llvm::LLVMContext& context = module_.getContext();
  auto* real = llvm::Type::getDoubleTy(context);
  llvm::Function* function = make_function(module_, name, llvm::FunctionType::get(real, {real, real}, false));
  llvm::BasicBlock* entry = &function->getEntryBlock();
  auto block = [&](const char* label) { return llvm::BasicBlock::Create(context, label, function); };
  llvm::BasicBlock* odd = block("odd");
  llvm::BasicBlock* up = block("up");
  llvm::BasicBlock* down = block("down");
  llvm::BasicBlock* done = block("done");

  Builder builder(entry);
  Number x(builder, function->getArg(0));
  Number a = absolute(x);
  Number b = absolute(Number(builder, function->getArg(1)));
  Number ordinary = (a < HUGE_VAL) & (b > 0) & (b < HUGE_VAL);
  builder.CreateCondBr(ordinary.value(), up, odd);

  builder.SetInsertPoint(odd);
  Number keeps_x = (a < HUGE_VAL) & (b == HUGE_VAL);
  builder.CreateRet(select(keeps_x, x, x.constant(NAN)).value());

  builder.SetInsertPoint(up);
  llvm::PHINode* rising = builder.CreatePHI(real, 2);
  rising->addIncoming(b.value(), entry);
  Number larger = Number(builder, rising) * 2;
  rising->addIncoming(larger.value(), up);
  llvm::Value* goes_on = builder.CreateFCmpOLE(rising, (a * 0.5).value());
  builder.CreateCondBr(goes_on, up, down);

  builder.SetInsertPoint(down);
  llvm::PHINode* t_phi = builder.CreatePHI(real, 2);
  llvm::PHINode* r_phi = builder.CreatePHI(real, 2);
  t_phi->addIncoming(rising, up);
  r_phi->addIncoming(a.value(), up);
  Number t(builder, t_phi);
  Number r(builder, r_phi);
  Number next_r = select(r < t, r, r - t);
  Number next_t = t * 0.5;
  t_phi->addIncoming(next_t.value(), down);
  r_phi->addIncoming(next_r.value(), down);
  builder.CreateCondBr(builder.CreateFCmpOGE(next_t.value(), b.value()), down, done);

  builder.SetInsertPoint(done);
  builder.CreateRet(copy_sign(next_r, x).value());
  return function;
}

Number Math::mod(Number x, Number y) {
  unify(x, y);
  Builder& builder = x.builder();
  auto lanes_by_division = [&] {
    Number result = x;
    llvm::Type* wide = builder.getDoubleTy();
    for (unsigned i = 0; i < x.lanes(); ++i) {
      llvm::Value* arguments[] = {x.lane(i).convert(wide).value(), y.lane(i).convert(wide).value()};
      Number lane(builder, builder.CreateCall(mod_function(), arguments));
      result = result.with_lane(i, lane.convert(x.element()));
    }
    return result;
  };
  if (!isa_.has_fma) return lanes_by_division();
  // For small quotients, |x| - q|y| is exact in one operation; the rounded quotient may be one too large.
  Number a = absolute(x);
  Number b = absolute(y);
  Number q = call(llvm::Intrinsic::trunc, a / b);
  Number r = multiply_add(-q, b, a);
  Number fast = select(r < 0, r + b, r);
  fast = copy_sign(select(fast < b, fast, fast - b), x);
  Number plain = (q < (x.bits() == 64 ? 0x1p50 : 0x1p22)) & (b < HUGE_VAL);
  Number large(builder, builder.CreateNot(plain.value()));
  Detour detour = make_detour(any(large));
  Number slow = lanes_by_division();
  llvm::BasicBlock* slow_end = builder.GetInsertBlock();
  builder.CreateBr(detour.after);
  return join(detour, slow_end, fast, slow);
}

// a + b, rounded to the neighbour with an odd last bit if it is not exact: rounding that again is rounding once.
Number Math::add_to_odd(Number a, Number b) {
  Number sum = a + b;
  Number part = sum - a;
  Number error = (a - (sum - part)) + (b - part);
  Number code = sum.as_integer();
  Number away = (error > 0) ^ (sum < 0);
  Number neighbour = select(away, code + 1, code - 1);
  Number inexact = (error < 0) | (error > 0);
  Number even = (code & code.integer(1)) == code.integer(0);
  return select(inexact & even, neighbour, code).as_real();
}

// a * b - product, for the rounded product; by Dekker where the machine has no fma.
Number Math::product_error(Number a, Number b, Number product) {
  if (isa_.has_fma) return multiply_add(a, b, -product);
  auto split = [](Number x) {
    Number scaled = x * 134217729.0;
    return scaled - (scaled - x);
  };
  Number a_high = split(a);
  Number b_high = split(b);
  Number a_low = a - a_high;
  Number b_low = b - b_high;
  return a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low);
}

Number Math::fma(Number a, Number b, Number c) {
  unify(a, b);
  unify(a, c);
  unify(b, c);
  if (isa_.has_fma) return multiply_add(a, b, c);
  Builder& builder = a.builder();
  if (a.bits() == 32) {
    llvm::Type* wide = builder.getDoubleTy();
    return add_to_odd(a.convert(wide) * b.convert(wide), c.convert(wide)).convert(builder.getFloatTy());
  }
  // Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008; the product's error is Dekker's. It is
  // lost where it is subnormal, so that products below 2^-969 may be rounded twice.
  auto balance = [](Number& x, Number& y) {  // so that the split of a large factor does not overflow
    Number huge = absolute(x) > 0x1p900;
    y = select(huge, y * 0x1p100, y);
    x = select(huge, x * 0x1p-100, x);
  };
  Number finite_factors = (absolute(a) < HUGE_VAL) & (absolute(b) < HUGE_VAL);
  balance(a, b);
  balance(b, a);
  auto sum_error = [](Number x, Number y, Number sum) {
    Number part = sum - x;
    return (x - (sum - part)) + (y - part);
  };
  Number product = a * b;
  Number product_low = product_error(a, b, product);
  Number t = c + product_low;
  Number t_low = sum_error(c, product_low, t);
  Number v = product + t;
  Number v_low = sum_error(product, t, v);
  Number exact = v + add_to_odd(t_low, v_low);
  // Where a part overflows, the plain formula has the right infinity or NaN, unless it meets an infinite c.
  Number plain = select(finite_factors & (absolute(c) == HUGE_VAL), c, product + c);
  return select(absolute(exact) < HUGE_VAL, exact, plain);
}

}  // namespace selkie::codegen::cpu
