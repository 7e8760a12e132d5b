#pragma once

// exp, log, tanh, erf and what is made of them, sixteen lanes at once. Everything is built from operations
// that IEEE 754 fixes, so the bits are the same on every instruction set. Largest errors measured over the
// floats (tests "[elementary]" and "[all-floats]"): exp and log 1.0 ulp; expm1, log1p, tanh, sigmoid and
// erf 1.5; softplus 1.7; the normal distribution 1.4 from -1 on and 5.5 below. NaN stays NaN. The polynomials
// come from tools/derive-polynomials.

#include "runtime/arithmetic/polynomials.hpp"
#include "runtime/arithmetic/simd.hpp"

// A call costs little next to what these compute, and copies of them in every kernel cost minutes of
// compiling; only where a vector is one register, passed as such, are they inline.
#if defined(__AVX512F__)
#define RANKINE_ELEMENTARY RANKINE_INLINE
#else
#define RANKINE_ELEMENTARY [[gnu::noinline]]
#endif
#if defined(__AVX2__)
#define RANKINE_UNROLL_TERMS _Pragma("GCC unroll 32")
#else
#define RANKINE_UNROLL_TERMS _Pragma("GCC unroll 1")
#endif

namespace rankine::RANKINE_ISA {

template <class T>
struct Limits;
template <>
struct Limits<float> {
  static constexpr float ln2_high = 0x1.62e43p-1F, ln2_low = -0x1.05c61p-29F, log2_e = 0x1.715476p0F;
  static constexpr float exp_high = 89.0F, exp_low = -104.0F;  ///< beyond: infinity, 0
  static constexpr float expm1_low = -20.0F;                   ///< below: -1
  static constexpr float tail_end = 15.0F;                     ///< beyond: exp(-x^2 / 2) is 0
  static constexpr float min_normal = 0x1p-126F, denormal_scale = 0x1p32F, denormal_shift = 32.0F;
  static constexpr std::int32_t sqrt_half_bits = 0x3f3504f3, one_bits = 0x3f800000, mantissa = 0x007fffff;
  static constexpr float infinity = __builtin_huge_valf();
};
template <>
struct Limits<double> {
  static constexpr double ln2_high = 0x1.62e42fefa39efp-1, ln2_low = 0x1.abc9e3b39803fp-56;
  static constexpr double log2_e = 0x1.71547652b82fep0;
  static constexpr double exp_high = 710.0, exp_low = -746.0;
  static constexpr double expm1_low = -40.0;
  static constexpr double tail_end = 39.0;
  static constexpr double min_normal = 0x1p-1022, denormal_scale = 0x1p64, denormal_shift = 64.0;
  static constexpr std::int64_t sqrt_half_bits = 0x3fe6a09e667f3bcd, one_bits = 0x3ff0000000000000;
  static constexpr std::int64_t mantissa = 0x000fffffffffffff;
  static constexpr double infinity = __builtin_huge_val();
};

/// A number in every lane.
template <class T>
RANKINE_INLINE Vec<T> all(T x) {
  return Vec<T>::set1(x);
}

/// What a function of one number gave.
template <class T>
RANKINE_INLINE T first_lane(Vec<T> v) {
  T lanes[k_lanes];
  v.store(lanes);
  return lanes[0];
}

/// Coefficients lowest first, by Horner's scheme, fused.
template <class T, int count>
RANKINE_INLINE Vec<T> polynomial(const T (&coefficients)[count], Vec<T> x) {
  auto acc = all(coefficients[count - 1]);
  RANKINE_UNROLL_TERMS for (int i = count - 2; i >= 0; --i) acc = fma(acc, x, all(coefficients[i]));
  return acc;
}

/// e^x = 2^power * (1 + rest), |rest| < 0.42.
template <class T>
struct SplitExponential {
  IntVec<T> power;
  Vec<T> rest;
};
template <class T>
RANKINE_FUNCTION SplitExponential<T> split_exponential(Vec<T> x) {
  using L = Limits<T>;
  const auto power = round_to_int(x * all(L::log2_e));
  const auto r = fnma(power, all(L::ln2_low), fnma(power, all(L::ln2_high), x));
  return {to_int(power), fma(r * r, polynomial(Polynomials<T>::exp, r), r)};
}

template <class T>
RANKINE_ELEMENTARY Vec<T> exp(const Vec<T>& x) {
  using L = Limits<T>;
  // `min` and `max` return their second argument when it is NaN.
  const auto split = split_exponential(max(all(L::exp_low), min(all(L::exp_high), x)));
  // 2^power in two factors: the first product is exact, the second rounds once, also to a denormal.
  constexpr typename IntVec<T>::Element k_even = 4096;
  const auto half = shift_right<1>(split.power + IntVec<T>::set1(k_even)) - IntVec<T>::set1(k_even / 2);
  return (all(T(1)) + split.rest) * power_of_two(half) * power_of_two(split.power - half);
}

/// e^x - 1.
template <class T>
RANKINE_ELEMENTARY Vec<T> expm1(const Vec<T>& x) {
  using L = Limits<T>;
  const auto split = split_exponential(max(all(L::expm1_low), min(all(L::exp_high), x)));
  // Half of it first: 2^power itself may overflow.
  const auto scale = power_of_two(split.power - IntVec<T>::set1(1));
  const auto half = fma(scale, split.rest, scale - all(T(0.5)));
  const auto near_zero = split.power == IntVec<T>::set1(0);
  return copysign(select(near_zero, split.rest, half + half), x);
}

/// log(1 + f) + k ln 2 for 1 + f in [sqrt(1/2), sqrt(2)].
template <class T>
RANKINE_ELEMENTARY Vec<T> log_of_parts(const Vec<T>& f, const Vec<T>& k) {
  using L = Limits<T>;
  const auto s = f / (all(T(2)) + f);
  const auto z = s * s;
  const auto half_square = all(T(0.5)) * f * f;
  const auto rest = fma(z, polynomial(Polynomials<T>::log, z), half_square);
  return fma(k, all(L::ln2_high), f - (half_square - fma(s, rest, k * all(L::ln2_low))));
}

template <class T>
RANKINE_ELEMENTARY Vec<T> log(const Vec<T>& x) {
  using L = Limits<T>;
  using Int = IntVec<T>;
  const auto denormal = x < all(L::min_normal);
  const auto normal = select(denormal, x * all(L::denormal_scale), x);
  const auto shifted = bits_of(normal) + Int::set1(L::one_bits - L::sqrt_half_bits);
  const auto exponent =
      shift_right<FloatFormat<T>::mantissa_bits>(shifted) - Int::set1(FloatFormat<T>::exponent_bias);
  const auto k = to_real(exponent) - select(denormal, all(L::denormal_shift), all(T(0)));
  const auto m = from_bits((shifted & Int::set1(L::mantissa)) + Int::set1(L::sqrt_half_bits));
  auto result = log_of_parts(m - all(T(1)), k);
  result = select(x == all(L::infinity), x, result);
  result = select(x == all(T(0)), all(-L::infinity), result);
  return select(x >= all(T(0)), result, all(T(0)) / (x - x));
}

/// log(1 + t) for t in [0, 1].
template <class T>
RANKINE_ELEMENTARY Vec<T> log1p_of_unit(const Vec<T>& t) {
  const auto large = t > all(T(0.41421356237309504880));
  const auto f = select(large, (t - all(T(1))) * all(T(0.5)), t);
  return log_of_parts(f, select(large, all(T(1)), all(T(0))));
}

/// log(1 + e^x).
template <class T>
RANKINE_ELEMENTARY Vec<T> softplus(const Vec<T>& x) {
  return max(x, all(T(0))) + log1p_of_unit(exp(-abs(x)));
}

/// 1 / (1 + e^-x), with gradual underflow. What rounding takes from the sum and the quotient is given back.
template <class T>
RANKINE_ELEMENTARY Vec<T> sigmoid(const Vec<T>& x) {
  const auto e = exp(-abs(x));
  const auto top = select(x < all(T(0)), e, all(T(1)));
  const auto below = all(T(1)) + e;
  const auto lost = e - (below - all(T(1)));
  const auto reciprocal = all(T(1)) / below;
  const auto y = top * reciprocal;
  return fma(fnma(y, lost, fnma(y, below, top)), reciprocal, y);
}

template <class T>
RANKINE_ELEMENTARY Vec<T> tanh(const Vec<T>& x) {
  const auto size = abs(x);
  const auto z = x * x;
  const auto small = fma(x * z, polynomial(Polynomials<T>::tanh, z), x);
  const auto large = all(T(1)) - all(T(2)) / (exp(size + size) + all(T(1)));
  return copysign(select(size < all(T(0.625)), small, large), x);
}

/// exp(-a * b) for a * b >= 0, with the product's rounding error taken back.
template <class T>
RANKINE_INLINE Vec<T> exp_of_negative_product(Vec<T> a, Vec<T> b) {
  const auto product = a * b;
  const auto e = exp(-product);
  return fnma(e, fma(a, b, -product), e);
}

/// The standard normal distribution below -x, divided by exp(-x^2 / 2), for x >= 1.
template <class T>
RANKINE_FUNCTION Vec<T> scaled_tail(Vec<T> x) {
  const auto v = all(T(1)) / (all(T(2.5)) + x);
  return v * polynomial(Polynomials<T>::tail, fma(all(T(7)), v, all(T(-1))));
}

template <class T>
RANKINE_ELEMENTARY Vec<T> erf(const Vec<T>& x) {
  constexpr T k_sqrt_2 = T(1.41421356237309504880);
  const auto size = abs(x);
  const auto small = fma(x, polynomial(Polynomials<T>::erf, x * x), x);
  const auto t = min(all(Limits<T>::tail_end), size);
  const auto tail = exp_of_negative_product(t, t) * scaled_tail(t * all(k_sqrt_2));
  const auto large = all(T(1)) - (tail + tail);
  return copysign(select(size < all(T(1)), small, large), x);
}

/// The standard normal distribution up to x, with full relative accuracy in the lower tail, and
/// exp(-x^2 / 2).
template <class T>
struct Normal {
  Vec<T> below, bell;
};
template <class T>
RANKINE_ELEMENTARY Normal<T> normal_distribution(const Vec<T>& x) {
  const auto size = min(all(Limits<T>::tail_end), abs(x));
  const auto bell = exp_of_negative_product(all(T(0.5)) * size, size);
  const auto tail = bell * scaled_tail(size);
  const auto far = select(x < all(T(0)), tail, all(T(1)) - tail);
  const auto line = fma(x, all(T(0.375)), all(T(0.5)));
  const auto near = fma(x, polynomial(Polynomials<T>::normal, x * x), line);
  return {select(size < all(T(1)), near, far), bell};
}

}  // namespace rankine::RANKINE_ISA
