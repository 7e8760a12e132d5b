#pragma once

// Sixteen lanes of float or double, and the integers and masks that go with them, on every instruction set.
//
// Kernel sources are compiled once an instruction set; the build defines RANKINE_ISA (portable, avx2, avx512)
// and everything here lives in a namespace of that name. Every operation means the same in each lane on every
// set (IEEE 754, round to nearest, denormals kept), so a kernel that is written once gives equal bits on all
// of them by construction. Only the NaN payload may differ.
//
// What a kernel source must not do: call inline functions or templates of other namespaces (std included)
// that the compiler may leave out of line. The linker keeps one copy of such a function, perhaps the AVX-512
// one, and the portable path would run it. `__builtin_*` and plain loops are fine.

#ifndef RANKINE_ISA
#error "simd.hpp belongs to the kernel sources, which the build compiles with RANKINE_ISA set"
#endif

#include <cstdint>

// What isn't inlined passes vectors through memory. Without optimisation they are there anyway, and inlining
// would make kernels that take minutes to compile with sanitizers.
#if defined(__OPTIMIZE__)
#define RANKINE_INLINE [[gnu::always_inline]] inline
#define RANKINE_INLINE_LAMBDA __attribute__((always_inline))
#else
#define RANKINE_INLINE inline
#define RANKINE_INLINE_LAMBDA
#endif
// What is a few instructions where vectors are one or two registers, and a call in portable code: kernels
// made of inline copies would take minutes to compile there.
#if defined(__AVX2__)
#define RANKINE_FUNCTION RANKINE_INLINE
#else
#define RANKINE_FUNCTION [[gnu::noinline]]
#endif

#if defined(__AVX512F__)
#include "runtime/arithmetic/simd_avx512.hpp"
#elif defined(__AVX2__)
#include "runtime/arithmetic/simd_avx2.hpp"
#else
#include "runtime/arithmetic/simd_portable.hpp"
#endif

namespace rankine::RANKINE_ISA {

inline constexpr int k_lanes = 16;

/// Registers that make up sixteen lanes.
template <class T>
inline constexpr int k_registers = k_lanes / Native<T>::k_lanes;

// Runs over the registers of a vector, unrolled where they are few.
#if defined(__AVX2__)
#define RANKINE_EACH _Pragma("GCC unroll 16") for (int i = 0; i < k_registers<T>; ++i)
#else
#define RANKINE_EACH _Pragma("GCC unroll 1") for (int i = 0; i < k_registers<T>; ++i)
#endif

/// Sixteen truth values that belong to a Vec<T>.
template <class T>
struct Mask {
  typename Native<T>::Mask r[k_registers<T>];

  /// True in lanes [0, n).
  RANKINE_INLINE static Mask first(int n) {
    Mask m;
    RANKINE_EACH m.r[i] = Native<T>::first(n - i * Native<T>::k_lanes);
    return m;
  }
  /// Bit i is lane i.
  RANKINE_INLINE unsigned bits() const {
    unsigned all = 0;
    RANKINE_EACH all |= Native<T>::mask_bits(r[i]) << (i * Native<T>::k_lanes);
    return all;
  }
  RANKINE_INLINE bool any() const { return bits() != 0; }
  RANKINE_INLINE bool all() const { return bits() == 0xffffU; }
};

/// Sixteen integers as wide as T: int32 for float, int64 for double. Sums wrap.
template <class T>
struct IntVec {
  using Element = typename Native<T>::IntElement;
  typename Native<T>::Int r[k_registers<T>];

  RANKINE_INLINE static IntVec set1(Element x) {
    IntVec v;
    RANKINE_EACH v.r[i] = Native<T>::int_set1(x);
    return v;
  }
  RANKINE_INLINE static IntVec load(const Element* p) {
    IntVec v;
    RANKINE_EACH v.r[i] = Native<T>::int_load(p + i * Native<T>::k_lanes);
    return v;
  }
  RANKINE_INLINE void store(Element* p) const {
    RANKINE_EACH Native<T>::int_store(p + i * Native<T>::k_lanes, r[i]);
  }
};

/// Sixteen values of T.
template <class T>
struct Vec {
  typename Native<T>::Real r[k_registers<T>];

  RANKINE_INLINE static Vec zero() { return set1(T(0)); }
  RANKINE_INLINE static Vec set1(T x) {
    Vec v;
    RANKINE_EACH v.r[i] = Native<T>::set1(x);
    return v;
  }
  /// No alignment is asked for.
  RANKINE_INLINE static Vec load(const T* p) {
    Vec v;
    RANKINE_EACH v.r[i] = Native<T>::load(p + i * Native<T>::k_lanes);
    return v;
  }
  /// Lanes [0, n); the others are +0 and nothing beyond p[n - 1] is read. n may be anything.
  RANKINE_INLINE static Vec load(const T* p, int n) {
    if (__builtin_constant_p(n >= k_lanes) && n >= k_lanes) return load(p);
    Vec v;
    RANKINE_EACH v.r[i] = Native<T>::load_first(p + i * Native<T>::k_lanes, n - i * Native<T>::k_lanes);
    return v;
  }
  RANKINE_INLINE void store(T* p) const { RANKINE_EACH Native<T>::store(p + i * Native<T>::k_lanes, r[i]); }
  /// Writes lanes [0, n) only.
  RANKINE_INLINE void store(T* p, int n) const {
    if (__builtin_constant_p(n >= k_lanes) && n >= k_lanes) return store(p);
    RANKINE_EACH Native<T>::store_first(p + i * Native<T>::k_lanes, n - i * Native<T>::k_lanes, r[i]);
  }
};

#define RANKINE_LANEWISE(Result, name, parameters, expression) \
  template <class T>                                           \
  RANKINE_FUNCTION Result<T> name parameters {                 \
    Result<T> out;                                             \
    RANKINE_EACH out.r[i] = Native<T>::expression;             \
    return out;                                                \
  }

RANKINE_LANEWISE(Vec, operator+, (Vec<T> a, Vec<T> b), add(a.r[i], b.r[i]))
RANKINE_LANEWISE(Vec, operator-, (Vec<T> a, Vec<T> b), sub(a.r[i], b.r[i]))
RANKINE_LANEWISE(Vec, operator*, (Vec<T> a, Vec<T> b), mul(a.r[i], b.r[i]))
RANKINE_LANEWISE(Vec, operator/, (Vec<T> a, Vec<T> b), div(a.r[i], b.r[i]))
/// a * b + c, rounded once.
template <class T>
RANKINE_INLINE Vec<T> fma(Vec<T> a, Vec<T> b, Vec<T> c) {
  Vec<T> out;
  RANKINE_EACH out.r[i] = Native<T>::fma(a.r[i], b.r[i], c.r[i]);
  return out;
}
/// *a * b + c in every lane, rounded once. Where an instruction can read *a itself, it does: `*a` isn't
/// spread over a register first.
template <class T>
RANKINE_INLINE Vec<T> fma_element(const T* a, Vec<T> b, Vec<T> c) {
  if constexpr (Native<T>::k_fma_reads_element) {
    RANKINE_EACH Native<T>::fma_element(a, b.r[i], c.r[i]);
    return c;
  } else {
    return fma(Vec<T>::set1(*a), b, c);
  }
}
/// c - a * b, rounded once.
RANKINE_LANEWISE(Vec, fnma, (Vec<T> a, Vec<T> b, Vec<T> c), fnma(a.r[i], b.r[i], c.r[i]))
RANKINE_LANEWISE(Vec, sqrt, (Vec<T> a), sqrt(a.r[i]))
/// a < b ? a : b, so b where either is NaN.
RANKINE_LANEWISE(Vec, min, (Vec<T> a, Vec<T> b), min(a.r[i], b.r[i]))
/// a > b ? a : b, so b where either is NaN.
RANKINE_LANEWISE(Vec, max, (Vec<T> a, Vec<T> b), max(a.r[i], b.r[i]))
RANKINE_LANEWISE(Mask, operator<, (Vec<T> a, Vec<T> b), less(a.r[i], b.r[i]))
RANKINE_LANEWISE(Mask, operator<=, (Vec<T> a, Vec<T> b), less_equal(a.r[i], b.r[i]))
RANKINE_LANEWISE(Mask, operator>, (Vec<T> a, Vec<T> b), less(b.r[i], a.r[i]))
RANKINE_LANEWISE(Mask, operator>=, (Vec<T> a, Vec<T> b), less_equal(b.r[i], a.r[i]))
RANKINE_LANEWISE(Mask, operator==, (Vec<T> a, Vec<T> b), equal(a.r[i], b.r[i]))
RANKINE_LANEWISE(Mask, is_nan, (Vec<T> a), unordered(a.r[i], a.r[i]))
RANKINE_LANEWISE(Vec, select, (Mask<T> m, Vec<T> yes, Vec<T> no), select(m.r[i], yes.r[i], no.r[i]))
/// The bits as integers and back.
RANKINE_LANEWISE(IntVec, bits_of, (Vec<T> a), bits_of(a.r[i]))
RANKINE_LANEWISE(Vec, from_bits, (IntVec<T> a), from_bits(a.r[i]))

RANKINE_LANEWISE(Mask, operator&, (Mask<T> a, Mask<T> b), mask_and(a.r[i], b.r[i]))
RANKINE_LANEWISE(Mask, operator|, (Mask<T> a, Mask<T> b), mask_or(a.r[i], b.r[i]))
RANKINE_LANEWISE(Mask, operator~, (Mask<T> a), mask_not(a.r[i]))

RANKINE_LANEWISE(IntVec, operator+, (IntVec<T> a, IntVec<T> b), int_add(a.r[i], b.r[i]))
RANKINE_LANEWISE(IntVec, operator-, (IntVec<T> a, IntVec<T> b), int_sub(a.r[i], b.r[i]))
RANKINE_LANEWISE(IntVec, operator&, (IntVec<T> a, IntVec<T> b), int_and(a.r[i], b.r[i]))
RANKINE_LANEWISE(IntVec, operator|, (IntVec<T> a, IntVec<T> b), int_or(a.r[i], b.r[i]))
RANKINE_LANEWISE(IntVec, operator^, (IntVec<T> a, IntVec<T> b), int_xor(a.r[i], b.r[i]))
RANKINE_LANEWISE(Mask, operator==, (IntVec<T> a, IntVec<T> b), int_equal(a.r[i], b.r[i]))
RANKINE_LANEWISE(Mask, operator>, (IntVec<T> a, IntVec<T> b), int_greater(a.r[i], b.r[i]))
RANKINE_LANEWISE(IntVec, select, (Mask<T> m, IntVec<T> yes, IntVec<T> no),
                 int_select(m.r[i], yes.r[i], no.r[i]))
#undef RANKINE_LANEWISE

/// The 64-bit products of the lower halves of 64-bit lanes, without sign.
RANKINE_INLINE IntVec<double> multiply_lower_halves(IntVec<double> a, IntVec<double> b) {
  IntVec<double> out;
  for (int i = 0; i < k_registers<double>; ++i) out.r[i] = multiply_register_halves(a.r[i], b.r[i]);
  return out;
}

template <int bits, class T>
RANKINE_FUNCTION IntVec<T> shift_left(IntVec<T> a) {
  IntVec<T> out;
  RANKINE_EACH out.r[i] = Native<T>::template shift_left<bits>(a.r[i]);
  return out;
}
/// Zeros come in from the left.
template <int bits, class T>
RANKINE_FUNCTION IntVec<T> shift_right(IntVec<T> a) {
  IntVec<T> out;
  RANKINE_EACH out.r[i] = Native<T>::template shift_right<bits>(a.r[i]);
  return out;
}
#undef RANKINE_EACH

/// What T is made of.
template <class T>
struct FloatFormat;
template <>
struct FloatFormat<float> {
  static constexpr int mantissa_bits = 23;
  static constexpr std::int32_t exponent_bias = 127;
  static constexpr std::int32_t sign_bit = INT32_MIN;
  static constexpr float round_magic = 0x1.8p23F;
};
template <>
struct FloatFormat<double> {
  static constexpr int mantissa_bits = 52;
  static constexpr std::int64_t exponent_bias = 1023;
  static constexpr std::int64_t sign_bit = INT64_MIN;
  static constexpr double round_magic = 0x1.8p52;
};

template <class T>
RANKINE_FUNCTION Vec<T> operator-(Vec<T> a) {
  return from_bits(bits_of(a) ^ IntVec<T>::set1(FloatFormat<T>::sign_bit));
}
template <class T>
RANKINE_FUNCTION Vec<T> abs(Vec<T> a) {
  return from_bits(bits_of(a) & IntVec<T>::set1(~FloatFormat<T>::sign_bit));
}
/// The magnitude of a with the sign of b.
template <class T>
RANKINE_FUNCTION Vec<T> copysign(Vec<T> a, Vec<T> b) {
  const auto sign = IntVec<T>::set1(FloatFormat<T>::sign_bit);
  return from_bits((bits_of(b) & sign) | bits_of(abs(a)));
}
/// The nearest integer, ties to even; |a| <= 2^22 for float, 2^51 for double.
template <class T>
RANKINE_FUNCTION Vec<T> round_to_int(Vec<T> a) {
  const auto magic = Vec<T>::set1(FloatFormat<T>::round_magic);
  return (a + magic) - magic;
}
/// The same as an integer, same range.
template <class T>
RANKINE_FUNCTION IntVec<T> to_int(Vec<T> a) {
  const auto magic = Vec<T>::set1(FloatFormat<T>::round_magic);
  return bits_of(a + magic) - bits_of(magic);
}
/// An integer of that range as T.
template <class T>
RANKINE_FUNCTION Vec<T> to_real(IntVec<T> a) {
  const auto magic = Vec<T>::set1(FloatFormat<T>::round_magic);
  return from_bits(a + bits_of(magic)) - magic;
}
/// 2^n for n whose result is normal.
template <class T>
RANKINE_FUNCTION Vec<T> power_of_two(IntVec<T> n) {
  return from_bits(
      shift_left<FloatFormat<T>::mantissa_bits>(n + IntVec<T>::set1(FloatFormat<T>::exponent_bias)));
}

/// Lane j of rows[i] becomes lane i of rows[j].
template <class T>
RANKINE_INLINE void transpose(Vec<T> (&rows)[k_lanes]) {
  if constexpr (Native<T>::k_has_transpose) {
    Native<T>::transpose(&rows[0].r[0]);
  } else {
    alignas(64) T from[k_lanes][k_lanes], to[k_lanes][k_lanes];
    for (int i = 0; i < k_lanes; ++i) rows[i].store(from[i]);
    for (int i = 0; i < k_lanes; ++i) {
      for (int j = 0; j < k_lanes; ++j) to[j][i] = from[i][j];
    }
    for (int i = 0; i < k_lanes; ++i) rows[i] = Vec<T>::load(to[i]);
  }
}

/// Exact.
RANKINE_INLINE Vec<double> widen(Vec<float> a) {
  Vec<double> out;
  _Pragma("GCC unroll 16") for (int i = 0; i < k_registers<double>; ++i) out.r[i] = widen_register(a.r, i);
  return out;
}
/// Rounded to nearest.
RANKINE_INLINE Vec<float> narrow(Vec<double> a) {
  Vec<float> out;
  _Pragma("GCC unroll 16") for (int i = 0; i < k_registers<float>; ++i) out.r[i] = narrow_registers(a.r, i);
  return out;
}

/// Sum of the lanes in the one order: i and i + 8, then i + 4, i + 2, i + 1.
template <class T>
RANKINE_FUNCTION T reduce_add(Vec<T> v) {
  _Pragma("GCC unroll 4") for (int half = k_registers<T> / 2; half > 0; half /= 2) {
    _Pragma("GCC unroll 8") for (int i = 0; i < half; ++i) v.r[i] = Native<T>::add(v.r[i], v.r[i + half]);
  }
  return Native<T>::fold_add(v.r[0]);
}
/// Largest lane by `max` in the same order; a NaN may or may not win.
template <class T>
RANKINE_FUNCTION T reduce_max(Vec<T> v) {
  _Pragma("GCC unroll 4") for (int half = k_registers<T> / 2; half > 0; half /= 2) {
    _Pragma("GCC unroll 8") for (int i = 0; i < half; ++i) v.r[i] = Native<T>::max(v.r[i], v.r[i + half]);
  }
  return Native<T>::fold_max(v.r[0]);
}

}  // namespace rankine::RANKINE_ISA
