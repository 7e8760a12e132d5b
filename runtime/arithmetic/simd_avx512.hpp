#pragma once

// AVX-512 registers. Included by simd.hpp only.

#include <immintrin.h>

#include <cstdint>

#include "runtime/arithmetic/simd_fold.hpp"

namespace rankine::RANKINE_ISA {

template <class Op, class Half>
RANKINE_INLINE auto fold(Op op, Half low, Half high) {
  return fold(op, op(low, high));
}

template <class T>
struct Native;

template <>
struct Native<float> {
  using Real = __m512;
  using Int = __m512i;
  using IntElement = std::int32_t;
  using Mask = __mmask16;
  static constexpr int k_lanes = 16;
  static constexpr bool k_has_transpose = true;
  static constexpr bool k_fma_reads_element = true;

  RANKINE_INLINE static __m512 set1(float x) { return _mm512_set1_ps(x); }
  RANKINE_INLINE static __m512 load(const float* p) { return _mm512_loadu_ps(p); }
  RANKINE_INLINE static __m512 load_first(const float* p, int n) {
    return _mm512_maskz_loadu_ps(first(n), p);
  }
  RANKINE_INLINE static void store(float* p, __m512 x) { _mm512_storeu_ps(p, x); }
  RANKINE_INLINE static void store_first(float* p, int n, __m512 x) { _mm512_mask_storeu_ps(p, first(n), x); }
  RANKINE_INLINE static __m512 add(__m512 a, __m512 b) { return _mm512_add_ps(a, b); }
  RANKINE_INLINE static __m512 sub(__m512 a, __m512 b) { return _mm512_sub_ps(a, b); }
  RANKINE_INLINE static __m512 mul(__m512 a, __m512 b) { return _mm512_mul_ps(a, b); }
  RANKINE_INLINE static __m512 div(__m512 a, __m512 b) { return _mm512_div_ps(a, b); }
  RANKINE_INLINE static __m512 fma(__m512 a, __m512 b, __m512 c) { return _mm512_fmadd_ps(a, b, c); }
  // As assembly, since compilers spread an element that is used more than once.
  RANKINE_INLINE static void fma_element(const float* a, __m512 b, __m512& c) {
    asm("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(c) : "v"(b), "m"(*a));
  }
  RANKINE_INLINE static __m512 fnma(__m512 a, __m512 b, __m512 c) { return _mm512_fnmadd_ps(a, b, c); }
  RANKINE_INLINE static __m512 sqrt(__m512 a) { return _mm512_sqrt_ps(a); }
  RANKINE_INLINE static __m512 min(__m512 a, __m512 b) { return _mm512_min_ps(a, b); }
  RANKINE_INLINE static __m512 max(__m512 a, __m512 b) { return _mm512_max_ps(a, b); }
  RANKINE_INLINE static __mmask16 less(__m512 a, __m512 b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
  RANKINE_INLINE static __mmask16 less_equal(__m512 a, __m512 b) {
    return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ);
  }
  RANKINE_INLINE static __mmask16 equal(__m512 a, __m512 b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
  RANKINE_INLINE static __mmask16 unordered(__m512 a, __m512 b) {
    return _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q);
  }
  RANKINE_INLINE static __m512 select(__mmask16 m, __m512 yes, __m512 no) {
    return _mm512_mask_blend_ps(m, no, yes);
  }
  RANKINE_INLINE static __m512i bits_of(__m512 a) { return _mm512_castps_si512(a); }
  RANKINE_INLINE static __m512 from_bits(__m512i a) { return _mm512_castsi512_ps(a); }
  RANKINE_INLINE static float fold_add(__m512 a) {
    return fold(Add{}, _mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
  }
  RANKINE_INLINE static float fold_max(__m512 a) {
    return fold(Max{}, _mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
  }

  RANKINE_INLINE static __mmask16 first(int n) {
    return n >= k_lanes ? __mmask16(0xffff) : n <= 0 ? __mmask16(0) : static_cast<__mmask16>((1U << n) - 1);
  }
  RANKINE_INLINE static unsigned mask_bits(__mmask16 m) { return m; }
  RANKINE_INLINE static __mmask16 mask_and(__mmask16 a, __mmask16 b) { return static_cast<__mmask16>(a & b); }
  RANKINE_INLINE static __mmask16 mask_or(__mmask16 a, __mmask16 b) { return static_cast<__mmask16>(a | b); }
  RANKINE_INLINE static __mmask16 mask_not(__mmask16 a) { return static_cast<__mmask16>(~a); }

  RANKINE_INLINE static __m512i int_set1(std::int32_t x) { return _mm512_set1_epi32(x); }
  RANKINE_INLINE static __m512i int_load(const std::int32_t* p) { return _mm512_loadu_si512(p); }
  RANKINE_INLINE static void int_store(std::int32_t* p, __m512i x) { _mm512_storeu_si512(p, x); }
  RANKINE_INLINE static __m512i int_add(__m512i a, __m512i b) { return _mm512_add_epi32(a, b); }
  RANKINE_INLINE static __m512i int_sub(__m512i a, __m512i b) { return _mm512_sub_epi32(a, b); }
  RANKINE_INLINE static __m512i int_and(__m512i a, __m512i b) { return _mm512_and_si512(a, b); }
  RANKINE_INLINE static __m512i int_or(__m512i a, __m512i b) { return _mm512_or_si512(a, b); }
  RANKINE_INLINE static __m512i int_xor(__m512i a, __m512i b) { return _mm512_xor_si512(a, b); }
  RANKINE_INLINE static __mmask16 int_equal(__m512i a, __m512i b) { return _mm512_cmpeq_epi32_mask(a, b); }
  RANKINE_INLINE static __mmask16 int_greater(__m512i a, __m512i b) { return _mm512_cmpgt_epi32_mask(a, b); }
  RANKINE_INLINE static __m512i int_select(__mmask16 m, __m512i yes, __m512i no) {
    return _mm512_mask_blend_epi32(m, no, yes);
  }
  template <int bits>
  RANKINE_INLINE static __m512i shift_left(__m512i a) {
    return _mm512_slli_epi32(a, bits);
  }
  template <int bits>
  RANKINE_INLINE static __m512i shift_right(__m512i a) {
    return _mm512_srli_epi32(a, bits);
  }

  /// Sixteen registers as a 16 x 16 matrix.
  RANKINE_INLINE static void transpose(__m512* r) {
    __m512 t[16], u[16];
    _Pragma("GCC unroll 8") for (int i = 0; i < 8; ++i) {
      t[2 * i] = _mm512_unpacklo_ps(r[2 * i], r[2 * i + 1]);
      t[2 * i + 1] = _mm512_unpackhi_ps(r[2 * i], r[2 * i + 1]);
    }
    _Pragma("GCC unroll 4") for (int i = 0; i < 4; ++i) {
      _Pragma("GCC unroll 2") for (int h = 0; h < 2; ++h) {
        const __m512d a = _mm512_castps_pd(t[4 * i + h]), b = _mm512_castps_pd(t[4 * i + 2 + h]);
        u[4 * i + 2 * h] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
        u[4 * i + 2 * h + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
      }
    }
    _Pragma("GCC unroll 4") for (int i = 0; i < 4; ++i) {
      const __m512 a = _mm512_shuffle_f32x4(u[i], u[4 + i], 0x88);
      const __m512 b = _mm512_shuffle_f32x4(u[8 + i], u[12 + i], 0x88);
      const __m512 c = _mm512_shuffle_f32x4(u[i], u[4 + i], 0xdd);
      const __m512 d = _mm512_shuffle_f32x4(u[8 + i], u[12 + i], 0xdd);
      r[i] = _mm512_shuffle_f32x4(a, b, 0x88);
      r[8 + i] = _mm512_shuffle_f32x4(a, b, 0xdd);
      r[4 + i] = _mm512_shuffle_f32x4(c, d, 0x88);
      r[12 + i] = _mm512_shuffle_f32x4(c, d, 0xdd);
    }
  }
};

template <>
struct Native<double> {
  using Real = __m512d;
  using Int = __m512i;
  using IntElement = std::int64_t;
  using Mask = __mmask8;
  static constexpr int k_lanes = 8;
  static constexpr bool k_has_transpose = false;
  static constexpr bool k_fma_reads_element = true;

  RANKINE_INLINE static __m512d set1(double x) { return _mm512_set1_pd(x); }
  RANKINE_INLINE static __m512d load(const double* p) { return _mm512_loadu_pd(p); }
  RANKINE_INLINE static __m512d load_first(const double* p, int n) {
    return _mm512_maskz_loadu_pd(first(n), p);
  }
  RANKINE_INLINE static void store(double* p, __m512d x) { _mm512_storeu_pd(p, x); }
  RANKINE_INLINE static void store_first(double* p, int n, __m512d x) {
    _mm512_mask_storeu_pd(p, first(n), x);
  }
  RANKINE_INLINE static __m512d add(__m512d a, __m512d b) { return _mm512_add_pd(a, b); }
  RANKINE_INLINE static __m512d sub(__m512d a, __m512d b) { return _mm512_sub_pd(a, b); }
  RANKINE_INLINE static __m512d mul(__m512d a, __m512d b) { return _mm512_mul_pd(a, b); }
  RANKINE_INLINE static __m512d div(__m512d a, __m512d b) { return _mm512_div_pd(a, b); }
  RANKINE_INLINE static __m512d fma(__m512d a, __m512d b, __m512d c) { return _mm512_fmadd_pd(a, b, c); }
  // As assembly, since compilers spread an element that is used more than once.
  RANKINE_INLINE static void fma_element(const double* a, __m512d b, __m512d& c) {
    asm("vfmadd231pd %2%{1to8%}, %1, %0" : "+v"(c) : "v"(b), "m"(*a));
  }
  RANKINE_INLINE static __m512d fnma(__m512d a, __m512d b, __m512d c) { return _mm512_fnmadd_pd(a, b, c); }
  RANKINE_INLINE static __m512d sqrt(__m512d a) { return _mm512_sqrt_pd(a); }
  RANKINE_INLINE static __m512d min(__m512d a, __m512d b) { return _mm512_min_pd(a, b); }
  RANKINE_INLINE static __m512d max(__m512d a, __m512d b) { return _mm512_max_pd(a, b); }
  RANKINE_INLINE static __mmask8 less(__m512d a, __m512d b) { return _mm512_cmp_pd_mask(a, b, _CMP_LT_OQ); }
  RANKINE_INLINE static __mmask8 less_equal(__m512d a, __m512d b) {
    return _mm512_cmp_pd_mask(a, b, _CMP_LE_OQ);
  }
  RANKINE_INLINE static __mmask8 equal(__m512d a, __m512d b) { return _mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ); }
  RANKINE_INLINE static __mmask8 unordered(__m512d a, __m512d b) {
    return _mm512_cmp_pd_mask(a, b, _CMP_UNORD_Q);
  }
  RANKINE_INLINE static __m512d select(__mmask8 m, __m512d yes, __m512d no) {
    return _mm512_mask_blend_pd(m, no, yes);
  }
  RANKINE_INLINE static __m512i bits_of(__m512d a) { return _mm512_castpd_si512(a); }
  RANKINE_INLINE static __m512d from_bits(__m512i a) { return _mm512_castsi512_pd(a); }
  RANKINE_INLINE static double fold_add(__m512d a) {
    return fold(Add{}, _mm512_castpd512_pd256(a), _mm512_extractf64x4_pd(a, 1));
  }
  RANKINE_INLINE static double fold_max(__m512d a) {
    return fold(Max{}, _mm512_castpd512_pd256(a), _mm512_extractf64x4_pd(a, 1));
  }

  RANKINE_INLINE static __mmask8 first(int n) {
    return n >= k_lanes ? __mmask8(0xff) : n <= 0 ? __mmask8(0) : static_cast<__mmask8>((1U << n) - 1);
  }
  RANKINE_INLINE static unsigned mask_bits(__mmask8 m) { return m; }
  RANKINE_INLINE static __mmask8 mask_and(__mmask8 a, __mmask8 b) { return static_cast<__mmask8>(a & b); }
  RANKINE_INLINE static __mmask8 mask_or(__mmask8 a, __mmask8 b) { return static_cast<__mmask8>(a | b); }
  RANKINE_INLINE static __mmask8 mask_not(__mmask8 a) { return static_cast<__mmask8>(~a); }

  RANKINE_INLINE static __m512i int_set1(std::int64_t x) { return _mm512_set1_epi64(x); }
  RANKINE_INLINE static __m512i int_load(const std::int64_t* p) { return _mm512_loadu_si512(p); }
  RANKINE_INLINE static void int_store(std::int64_t* p, __m512i x) { _mm512_storeu_si512(p, x); }
  RANKINE_INLINE static __m512i int_add(__m512i a, __m512i b) { return _mm512_add_epi64(a, b); }
  RANKINE_INLINE static __m512i int_sub(__m512i a, __m512i b) { return _mm512_sub_epi64(a, b); }
  RANKINE_INLINE static __m512i int_and(__m512i a, __m512i b) { return _mm512_and_si512(a, b); }
  RANKINE_INLINE static __m512i int_or(__m512i a, __m512i b) { return _mm512_or_si512(a, b); }
  RANKINE_INLINE static __m512i int_xor(__m512i a, __m512i b) { return _mm512_xor_si512(a, b); }
  RANKINE_INLINE static __mmask8 int_equal(__m512i a, __m512i b) { return _mm512_cmpeq_epi64_mask(a, b); }
  RANKINE_INLINE static __mmask8 int_greater(__m512i a, __m512i b) { return _mm512_cmpgt_epi64_mask(a, b); }
  RANKINE_INLINE static __m512i int_select(__mmask8 m, __m512i yes, __m512i no) {
    return _mm512_mask_blend_epi64(m, no, yes);
  }
  template <int bits>
  RANKINE_INLINE static __m512i shift_left(__m512i a) {
    return _mm512_slli_epi64(a, bits);
  }
  template <int bits>
  RANKINE_INLINE static __m512i shift_right(__m512i a) {
    return _mm512_srli_epi64(a, bits);
  }
};

/// 64-bit products of the lower halves of 64-bit lanes, without sign.
RANKINE_INLINE __m512i multiply_register_halves(__m512i a, __m512i b) {
  return _mm512_mul_epu32(a, b);
}

/// Register i of sixteen doubles from sixteen floats, and the other way (rounded to nearest).
RANKINE_INLINE __m512d widen_register(const __m512* floats, int i) {
  return _mm512_cvtps_pd(i == 0 ? _mm512_castps512_ps256(floats[0]) : _mm512_extractf32x8_ps(floats[0], 1));
}
RANKINE_INLINE __m512 narrow_registers(const __m512d* doubles, int i) {
  return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(doubles[2 * i])),
                            _mm512_cvtpd_ps(doubles[2 * i + 1]), 1);
}

}  // namespace rankine::RANKINE_ISA
