#pragma once

// One lane a register, in plain C++. Included by simd.hpp only.

#include <cstdint>

namespace rankine::RANKINE_ISA {

RANKINE_INLINE float fused(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
RANKINE_INLINE double fused(double a, double b, double c) {
  return __builtin_fma(a, b, c);
}
RANKINE_INLINE float square_root(float a) {
  return __builtin_sqrtf(a);
}
RANKINE_INLINE double square_root(double a) {
  return __builtin_sqrt(a);
}

template <class T, class Integer, class Unsigned>
struct Scalar {
  using Real = T;
  using Int = Integer;
  using IntElement = Integer;
  using Mask = bool;
  static constexpr int k_lanes = 1;
  static constexpr bool k_has_transpose = false;

  RANKINE_INLINE static T set1(T x) { return x; }
  RANKINE_INLINE static T load(const T* p) { return *p; }
  RANKINE_INLINE static T load_first(const T* p, int n) { return n > 0 ? *p : T(0); }
  RANKINE_INLINE static void store(T* p, T x) { *p = x; }
  RANKINE_INLINE static void store_first(T* p, int n, T x) {
    if (n > 0) *p = x;
  }
  RANKINE_INLINE static T add(T a, T b) { return a + b; }
  RANKINE_INLINE static T sub(T a, T b) { return a - b; }
  RANKINE_INLINE static T mul(T a, T b) { return a * b; }
  RANKINE_INLINE static T div(T a, T b) { return a / b; }
  RANKINE_INLINE static T fma(T a, T b, T c) { return fused(a, b, c); }
  RANKINE_INLINE static T fnma(T a, T b, T c) { return fused(-a, b, c); }
  RANKINE_INLINE static T sqrt(T a) { return square_root(a); }
  RANKINE_INLINE static T min(T a, T b) { return a < b ? a : b; }
  RANKINE_INLINE static T max(T a, T b) { return a > b ? a : b; }
  RANKINE_INLINE static bool less(T a, T b) { return a < b; }
  RANKINE_INLINE static bool less_equal(T a, T b) { return a <= b; }
  RANKINE_INLINE static bool equal(T a, T b) { return a == b; }
  RANKINE_INLINE static bool unordered(T a, T b) { return a != a || b != b; }
  RANKINE_INLINE static T select(bool m, T yes, T no) { return m ? yes : no; }
  RANKINE_INLINE static Int bits_of(T a) { return __builtin_bit_cast(Int, a); }
  RANKINE_INLINE static T from_bits(Int a) { return __builtin_bit_cast(T, a); }
  RANKINE_INLINE static T fold_add(T a) { return a; }
  RANKINE_INLINE static T fold_max(T a) { return a; }

  RANKINE_INLINE static bool first(int n) { return n > 0; }
  RANKINE_INLINE static unsigned mask_bits(bool m) { return m ? 1U : 0U; }
  RANKINE_INLINE static bool mask_and(bool a, bool b) { return a && b; }
  RANKINE_INLINE static bool mask_or(bool a, bool b) { return a || b; }
  RANKINE_INLINE static bool mask_not(bool a) { return !a; }

  RANKINE_INLINE static Int int_set1(Int x) { return x; }
  RANKINE_INLINE static Int int_load(const Int* p) { return *p; }
  RANKINE_INLINE static void int_store(Int* p, Int x) { *p = x; }
  RANKINE_INLINE static Int int_add(Int a, Int b) {
    return static_cast<Int>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  }
  RANKINE_INLINE static Int int_sub(Int a, Int b) {
    return static_cast<Int>(static_cast<Unsigned>(a) - static_cast<Unsigned>(b));
  }
  RANKINE_INLINE static Int int_and(Int a, Int b) { return a & b; }
  RANKINE_INLINE static Int int_or(Int a, Int b) { return a | b; }
  RANKINE_INLINE static Int int_xor(Int a, Int b) { return a ^ b; }
  RANKINE_INLINE static bool int_equal(Int a, Int b) { return a == b; }
  RANKINE_INLINE static bool int_greater(Int a, Int b) { return a > b; }
  RANKINE_INLINE static Int int_select(bool m, Int yes, Int no) { return m ? yes : no; }
  template <int bits>
  RANKINE_INLINE static Int shift_left(Int a) {
    return static_cast<Int>(static_cast<Unsigned>(a) << bits);
  }
  template <int bits>
  RANKINE_INLINE static Int shift_right(Int a) {
    return static_cast<Int>(static_cast<Unsigned>(a) >> bits);
  }
};

template <class T>
struct Native;
template <>
struct Native<float> : Scalar<float, std::int32_t, std::uint32_t> {};
template <>
struct Native<double> : Scalar<double, std::int64_t, std::uint64_t> {};

/// Register i of sixteen doubles from sixteen floats, and the other way (rounded to nearest).
RANKINE_INLINE double widen_register(const float* floats, int i) {
  return floats[i];
}
RANKINE_INLINE float narrow_registers(const double* doubles, int i) {
  return static_cast<float>(doubles[i]);
}

}  // namespace rankine::RANKINE_ISA
