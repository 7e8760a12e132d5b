#pragma once

// Sixteen bytes a register, in the vector extension that g++ and clang++ share: they turn it into what the
// processor has. Fused operations are calls, since most processors' baseline has none. Included by simd.hpp
// only.

#include <cstdint>

namespace rankine::RANKINE_ISA {

template <class T>
struct PortableTypes;
template <>
struct PortableTypes<float> {
  using Int = std::int32_t;
  using Unsigned = std::uint32_t;
  static float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
  static float sqrt(float a) { return __builtin_sqrtf(a); }
};
template <>
struct PortableTypes<double> {
  using Int = std::int64_t;
  using Unsigned = std::uint64_t;
  static double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
  static double sqrt(double a) { return __builtin_sqrt(a); }
};

template <class T>
struct Native {
  using Types = PortableTypes<T>;
  using IntElement = typename Types::Int;
  static constexpr int k_bytes = 16;
  static constexpr int k_lanes = k_bytes / static_cast<int>(sizeof(T));
  static constexpr bool k_has_transpose = false;
  static constexpr bool k_fma_reads_element = false;
  typedef T Real __attribute__((vector_size(k_bytes)));
  typedef IntElement Int __attribute__((vector_size(k_bytes)));
  typedef typename Types::Unsigned Unsigned __attribute__((vector_size(k_bytes)));
  using Mask = Int;  ///< all bits of a lane are set or none

  RANKINE_INLINE static Real set1(T x) { return x - Real{}; }
  RANKINE_INLINE static Real load(const T* p) {
    Real v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
  }
  RANKINE_INLINE static Real load_first(const T* p, int n) {
    if (n >= k_lanes) return load(p);
    Real v{};
    for (int i = 0; i < n; ++i) v[i] = p[i];
    return v;
  }
  RANKINE_INLINE static void store(T* p, Real x) { __builtin_memcpy(p, &x, sizeof x); }
  RANKINE_INLINE static void store_first(T* p, int n, Real x) {
    if (n >= k_lanes) return store(p, x);
    for (int i = 0; i < n; ++i) p[i] = x[i];
  }
  RANKINE_INLINE static Real add(Real a, Real b) { return a + b; }
  RANKINE_INLINE static Real sub(Real a, Real b) { return a - b; }
  RANKINE_INLINE static Real mul(Real a, Real b) { return a * b; }
  RANKINE_INLINE static Real div(Real a, Real b) { return a / b; }
  [[gnu::noinline]] static Real fma(Real a, Real b, Real c) {
    Real v;
    for (int i = 0; i < k_lanes; ++i) v[i] = Types::fma(a[i], b[i], c[i]);
    return v;
  }
  RANKINE_INLINE static Real fnma(Real a, Real b, Real c) { return fma(-a, b, c); }
  [[gnu::noinline]] static Real sqrt(Real a) {
    Real v;
    for (int i = 0; i < k_lanes; ++i) v[i] = Types::sqrt(a[i]);
    return v;
  }
  RANKINE_INLINE static Real min(Real a, Real b) { return select(less(a, b), a, b); }
  RANKINE_INLINE static Real max(Real a, Real b) { return select(less(b, a), a, b); }
  RANKINE_INLINE static Mask less(Real a, Real b) { return (Int)(a < b); }
  RANKINE_INLINE static Mask less_equal(Real a, Real b) { return (Int)(a <= b); }
  RANKINE_INLINE static Mask equal(Real a, Real b) { return (Int)(a == b); }
  RANKINE_INLINE static Mask unordered(Real a, Real b) { return (Int)(a != a) | (Int)(b != b); }
  RANKINE_INLINE static Real select(Mask m, Real yes, Real no) {
    return from_bits(int_select(m, bits_of(yes), bits_of(no)));
  }
  RANKINE_INLINE static Int bits_of(Real a) { return (Int)a; }
  RANKINE_INLINE static Real from_bits(Int a) { return (Real)a; }
  RANKINE_INLINE static T fold_add(Real a) {
    if constexpr (k_lanes == 4) return (a[0] + a[2]) + (a[1] + a[3]);
    return a[0] + a[1];
  }
  RANKINE_INLINE static T fold_max(Real a) {
    if constexpr (k_lanes == 4) return larger(larger(a[0], a[2]), larger(a[1], a[3]));
    return larger(a[0], a[1]);
  }

  RANKINE_INLINE static Mask first(int n) {
    Mask m;
    for (int i = 0; i < k_lanes; ++i) m[i] = i < n ? IntElement(-1) : IntElement(0);
    return m;
  }
  RANKINE_INLINE static unsigned mask_bits(Mask m) {
    unsigned bits = 0;
    for (int i = 0; i < k_lanes; ++i) bits |= (m[i] != 0 ? 1U : 0U) << i;
    return bits;
  }
  RANKINE_INLINE static Mask mask_and(Mask a, Mask b) { return a & b; }
  RANKINE_INLINE static Mask mask_or(Mask a, Mask b) { return a | b; }
  RANKINE_INLINE static Mask mask_not(Mask a) { return ~a; }

  RANKINE_INLINE static Int int_set1(IntElement x) { return x - Int{}; }
  RANKINE_INLINE static Int int_load(const IntElement* p) {
    Int v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
  }
  RANKINE_INLINE static void int_store(IntElement* p, Int x) { __builtin_memcpy(p, &x, sizeof x); }
  RANKINE_INLINE static Int int_add(Int a, Int b) { return (Int)((Unsigned)a + (Unsigned)b); }
  RANKINE_INLINE static Int int_sub(Int a, Int b) { return (Int)((Unsigned)a - (Unsigned)b); }
  RANKINE_INLINE static Int int_and(Int a, Int b) { return a & b; }
  RANKINE_INLINE static Int int_or(Int a, Int b) { return a | b; }
  RANKINE_INLINE static Int int_xor(Int a, Int b) { return a ^ b; }
  RANKINE_INLINE static Mask int_equal(Int a, Int b) { return (Int)(a == b); }
  RANKINE_INLINE static Mask int_greater(Int a, Int b) { return (Int)(a > b); }
  RANKINE_INLINE static Int int_select(Mask m, Int yes, Int no) { return (m & yes) | (~m & no); }
  template <int bits>
  RANKINE_INLINE static Int shift_left(Int a) {
    return (Int)((Unsigned)a << bits);
  }
  template <int bits>
  RANKINE_INLINE static Int shift_right(Int a) {
    return (Int)((Unsigned)a >> bits);
  }

 private:
  RANKINE_INLINE static T larger(T a, T b) { return a > b ? a : b; }
};

/// 64-bit products of the lower halves of 64-bit lanes, without sign.
RANKINE_INLINE Native<double>::Int multiply_register_halves(Native<double>::Int a, Native<double>::Int b) {
  using Unsigned = Native<double>::Unsigned;
  const Unsigned half = Unsigned{} + 0xffffffffU;
  return (Native<double>::Int)(((Unsigned)a & half) * ((Unsigned)b & half));
}

/// Register i of sixteen doubles from sixteen floats, and the other way (rounded to nearest).
RANKINE_INLINE Native<double>::Real widen_register(const Native<float>::Real* floats, int i) {
  const Native<float>::Real& half = floats[i / 2];
  return Native<double>::Real{half[i % 2 * 2], half[i % 2 * 2 + 1]};
}
RANKINE_INLINE Native<float>::Real narrow_registers(const Native<double>::Real* doubles, int i) {
  const Native<double>::Real &low = doubles[2 * i], &high = doubles[2 * i + 1];
  return Native<float>::Real{static_cast<float>(low[0]), static_cast<float>(low[1]),
                             static_cast<float>(high[0]), static_cast<float>(high[1])};
}

}  // namespace rankine::RANKINE_ISA
