#pragma once

// AVX2 and FMA registers. Included by simd.hpp only.

#include <immintrin.h>

#include <cstdint>

#include "runtime/arithmetic/simd_fold.hpp"

namespace rankine::RANKINE_ISA {

template <class T>
struct Native;

template <>
struct Native<float> {
  using Real = __m256;
  using Int = __m256i;
  using IntElement = std::int32_t;
  using Mask = __m256;  ///< all bits of a lane are set or none
  static constexpr int k_lanes = 8;
  static constexpr bool k_has_transpose = true;
  static constexpr bool k_fma_reads_element = false;

  RANKINE_INLINE static __m256 set1(float x) { return _mm256_set1_ps(x); }
  RANKINE_INLINE static __m256 load(const float* p) { return _mm256_loadu_ps(p); }
  RANKINE_INLINE static __m256 load_first(const float* p, int n) {
    return _mm256_maskload_ps(p, _mm256_castps_si256(first(n)));
  }
  RANKINE_INLINE static void store(float* p, __m256 x) { _mm256_storeu_ps(p, x); }
  RANKINE_INLINE static void store_first(float* p, int n, __m256 x) {
    _mm256_maskstore_ps(p, _mm256_castps_si256(first(n)), x);
  }
  RANKINE_INLINE static __m256 add(__m256 a, __m256 b) { return _mm256_add_ps(a, b); }
  RANKINE_INLINE static __m256 sub(__m256 a, __m256 b) { return _mm256_sub_ps(a, b); }
  RANKINE_INLINE static __m256 mul(__m256 a, __m256 b) { return _mm256_mul_ps(a, b); }
  RANKINE_INLINE static __m256 div(__m256 a, __m256 b) { return _mm256_div_ps(a, b); }
  RANKINE_INLINE static __m256 fma(__m256 a, __m256 b, __m256 c) { return _mm256_fmadd_ps(a, b, c); }
  RANKINE_INLINE static __m256 fnma(__m256 a, __m256 b, __m256 c) { return _mm256_fnmadd_ps(a, b, c); }
  RANKINE_INLINE static __m256 sqrt(__m256 a) { return _mm256_sqrt_ps(a); }
  RANKINE_INLINE static __m256 min(__m256 a, __m256 b) { return _mm256_min_ps(a, b); }
  RANKINE_INLINE static __m256 max(__m256 a, __m256 b) { return _mm256_max_ps(a, b); }
  RANKINE_INLINE static __m256 less(__m256 a, __m256 b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
  RANKINE_INLINE static __m256 less_equal(__m256 a, __m256 b) { return _mm256_cmp_ps(a, b, _CMP_LE_OQ); }
  RANKINE_INLINE static __m256 equal(__m256 a, __m256 b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
  RANKINE_INLINE static __m256 unordered(__m256 a, __m256 b) { return _mm256_cmp_ps(a, b, _CMP_UNORD_Q); }
  RANKINE_INLINE static __m256 select(__m256 m, __m256 yes, __m256 no) {
    return _mm256_blendv_ps(no, yes, m);
  }
  RANKINE_INLINE static __m256i bits_of(__m256 a) { return _mm256_castps_si256(a); }
  RANKINE_INLINE static __m256 from_bits(__m256i a) { return _mm256_castsi256_ps(a); }
  RANKINE_INLINE static float fold_add(__m256 a) { return fold(Add{}, a); }
  RANKINE_INLINE static float fold_max(__m256 a) { return fold(Max{}, a); }

  RANKINE_INLINE static __m256 first(int n) {
    return _mm256_castsi256_ps(
        _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)));
  }
  RANKINE_INLINE static unsigned mask_bits(__m256 m) { return static_cast<unsigned>(_mm256_movemask_ps(m)); }
  RANKINE_INLINE static __m256 mask_and(__m256 a, __m256 b) { return _mm256_and_ps(a, b); }
  RANKINE_INLINE static __m256 mask_or(__m256 a, __m256 b) { return _mm256_or_ps(a, b); }
  RANKINE_INLINE static __m256 mask_not(__m256 a) {
    return _mm256_xor_ps(a, _mm256_castsi256_ps(_mm256_set1_epi32(-1)));
  }

  RANKINE_INLINE static __m256i int_set1(std::int32_t x) { return _mm256_set1_epi32(x); }
  RANKINE_INLINE static __m256i int_load(const std::int32_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  RANKINE_INLINE static void int_store(std::int32_t* p, __m256i x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), x);
  }
  RANKINE_INLINE static __m256i int_add(__m256i a, __m256i b) { return _mm256_add_epi32(a, b); }
  RANKINE_INLINE static __m256i int_sub(__m256i a, __m256i b) { return _mm256_sub_epi32(a, b); }
  RANKINE_INLINE static __m256i int_and(__m256i a, __m256i b) { return _mm256_and_si256(a, b); }
  RANKINE_INLINE static __m256i int_or(__m256i a, __m256i b) { return _mm256_or_si256(a, b); }
  RANKINE_INLINE static __m256i int_xor(__m256i a, __m256i b) { return _mm256_xor_si256(a, b); }
  RANKINE_INLINE static __m256 int_equal(__m256i a, __m256i b) {
    return _mm256_castsi256_ps(_mm256_cmpeq_epi32(a, b));
  }
  RANKINE_INLINE static __m256 int_greater(__m256i a, __m256i b) {
    return _mm256_castsi256_ps(_mm256_cmpgt_epi32(a, b));
  }
  RANKINE_INLINE static __m256i int_select(__m256 m, __m256i yes, __m256i no) {
    return _mm256_blendv_epi8(no, yes, _mm256_castps_si256(m));
  }
  template <int bits>
  RANKINE_INLINE static __m256i shift_left(__m256i a) {
    return _mm256_slli_epi32(a, bits);
  }
  template <int bits>
  RANKINE_INLINE static __m256i shift_right(__m256i a) {
    return _mm256_srli_epi32(a, bits);
  }

  /// Thirty-two registers as a 16 x 16 matrix: two a row.
  RANKINE_INLINE static void transpose(__m256* r) {
    eight_by_eight(r);
    eight_by_eight(r + 1);
    eight_by_eight(r + 16);
    eight_by_eight(r + 17);
    _Pragma("GCC unroll 8") for (int i = 0; i < 8; ++i) {
      const __m256 upper = r[2 * i + 1];
      r[2 * i + 1] = r[16 + 2 * i];
      r[16 + 2 * i] = upper;
    }
  }
  /// r[0], r[2], ..., r[14] as an 8 x 8 matrix.
  RANKINE_INLINE static void eight_by_eight(__m256* r) {
    __m256 t[8], u[8];
    _Pragma("GCC unroll 4") for (int i = 0; i < 4; ++i) {
      t[2 * i] = _mm256_unpacklo_ps(r[4 * i], r[4 * i + 2]);
      t[2 * i + 1] = _mm256_unpackhi_ps(r[4 * i], r[4 * i + 2]);
    }
    _Pragma("GCC unroll 2") for (int i = 0; i < 2; ++i) {
      _Pragma("GCC unroll 2") for (int h = 0; h < 2; ++h) {
        const __m256d a = _mm256_castps_pd(t[4 * i + h]), b = _mm256_castps_pd(t[4 * i + 2 + h]);
        u[4 * i + 2 * h] = _mm256_castpd_ps(_mm256_unpacklo_pd(a, b));
        u[4 * i + 2 * h + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(a, b));
      }
    }
    _Pragma("GCC unroll 4") for (int i = 0; i < 4; ++i) {
      r[2 * i] = _mm256_permute2f128_ps(u[i], u[4 + i], 0x20);
      r[8 + 2 * i] = _mm256_permute2f128_ps(u[i], u[4 + i], 0x31);
    }
  }
};

template <>
struct Native<double> {
  using Real = __m256d;
  using Int = __m256i;
  using IntElement = std::int64_t;
  using Mask = __m256d;  ///< all bits of a lane are set or none
  static constexpr int k_lanes = 4;
  static constexpr bool k_has_transpose = false;
  static constexpr bool k_fma_reads_element = false;

  RANKINE_INLINE static __m256d set1(double x) { return _mm256_set1_pd(x); }
  RANKINE_INLINE static __m256d load(const double* p) { return _mm256_loadu_pd(p); }
  RANKINE_INLINE static __m256d load_first(const double* p, int n) {
    return _mm256_maskload_pd(p, _mm256_castpd_si256(first(n)));
  }
  RANKINE_INLINE static void store(double* p, __m256d x) { _mm256_storeu_pd(p, x); }
  RANKINE_INLINE static void store_first(double* p, int n, __m256d x) {
    _mm256_maskstore_pd(p, _mm256_castpd_si256(first(n)), x);
  }
  RANKINE_INLINE static __m256d add(__m256d a, __m256d b) { return _mm256_add_pd(a, b); }
  RANKINE_INLINE static __m256d sub(__m256d a, __m256d b) { return _mm256_sub_pd(a, b); }
  RANKINE_INLINE static __m256d mul(__m256d a, __m256d b) { return _mm256_mul_pd(a, b); }
  RANKINE_INLINE static __m256d div(__m256d a, __m256d b) { return _mm256_div_pd(a, b); }
  RANKINE_INLINE static __m256d fma(__m256d a, __m256d b, __m256d c) { return _mm256_fmadd_pd(a, b, c); }
  RANKINE_INLINE static __m256d fnma(__m256d a, __m256d b, __m256d c) { return _mm256_fnmadd_pd(a, b, c); }
  RANKINE_INLINE static __m256d sqrt(__m256d a) { return _mm256_sqrt_pd(a); }
  RANKINE_INLINE static __m256d min(__m256d a, __m256d b) { return _mm256_min_pd(a, b); }
  RANKINE_INLINE static __m256d max(__m256d a, __m256d b) { return _mm256_max_pd(a, b); }
  RANKINE_INLINE static __m256d less(__m256d a, __m256d b) { return _mm256_cmp_pd(a, b, _CMP_LT_OQ); }
  RANKINE_INLINE static __m256d less_equal(__m256d a, __m256d b) { return _mm256_cmp_pd(a, b, _CMP_LE_OQ); }
  RANKINE_INLINE static __m256d equal(__m256d a, __m256d b) { return _mm256_cmp_pd(a, b, _CMP_EQ_OQ); }
  RANKINE_INLINE static __m256d unordered(__m256d a, __m256d b) { return _mm256_cmp_pd(a, b, _CMP_UNORD_Q); }
  RANKINE_INLINE static __m256d select(__m256d m, __m256d yes, __m256d no) {
    return _mm256_blendv_pd(no, yes, m);
  }
  RANKINE_INLINE static __m256i bits_of(__m256d a) { return _mm256_castpd_si256(a); }
  RANKINE_INLINE static __m256d from_bits(__m256i a) { return _mm256_castsi256_pd(a); }
  RANKINE_INLINE static double fold_add(__m256d a) { return fold(Add{}, a); }
  RANKINE_INLINE static double fold_max(__m256d a) { return fold(Max{}, a); }

  RANKINE_INLINE static __m256d first(int n) {
    return _mm256_castsi256_pd(_mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3)));
  }
  RANKINE_INLINE static unsigned mask_bits(__m256d m) { return static_cast<unsigned>(_mm256_movemask_pd(m)); }
  RANKINE_INLINE static __m256d mask_and(__m256d a, __m256d b) { return _mm256_and_pd(a, b); }
  RANKINE_INLINE static __m256d mask_or(__m256d a, __m256d b) { return _mm256_or_pd(a, b); }
  RANKINE_INLINE static __m256d mask_not(__m256d a) {
    return _mm256_xor_pd(a, _mm256_castsi256_pd(_mm256_set1_epi32(-1)));
  }

  RANKINE_INLINE static __m256i int_set1(std::int64_t x) { return _mm256_set1_epi64x(x); }
  RANKINE_INLINE static __m256i int_load(const std::int64_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  RANKINE_INLINE static void int_store(std::int64_t* p, __m256i x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), x);
  }
  RANKINE_INLINE static __m256i int_add(__m256i a, __m256i b) { return _mm256_add_epi64(a, b); }
  RANKINE_INLINE static __m256i int_sub(__m256i a, __m256i b) { return _mm256_sub_epi64(a, b); }
  RANKINE_INLINE static __m256i int_and(__m256i a, __m256i b) { return _mm256_and_si256(a, b); }
  RANKINE_INLINE static __m256i int_or(__m256i a, __m256i b) { return _mm256_or_si256(a, b); }
  RANKINE_INLINE static __m256i int_xor(__m256i a, __m256i b) { return _mm256_xor_si256(a, b); }
  RANKINE_INLINE static __m256d int_equal(__m256i a, __m256i b) {
    return _mm256_castsi256_pd(_mm256_cmpeq_epi64(a, b));
  }
  RANKINE_INLINE static __m256d int_greater(__m256i a, __m256i b) {
    return _mm256_castsi256_pd(_mm256_cmpgt_epi64(a, b));
  }
  RANKINE_INLINE static __m256i int_select(__m256d m, __m256i yes, __m256i no) {
    return _mm256_blendv_epi8(no, yes, _mm256_castpd_si256(m));
  }
  template <int bits>
  RANKINE_INLINE static __m256i shift_left(__m256i a) {
    return _mm256_slli_epi64(a, bits);
  }
  template <int bits>
  RANKINE_INLINE static __m256i shift_right(__m256i a) {
    return _mm256_srli_epi64(a, bits);
  }
};

/// 64-bit products of the lower halves of 64-bit lanes, without sign.
RANKINE_INLINE __m256i multiply_register_halves(__m256i a, __m256i b) {
  return _mm256_mul_epu32(a, b);
}

/// Register i of sixteen doubles from sixteen floats, and the other way (rounded to nearest).
RANKINE_INLINE __m256d widen_register(const __m256* floats, int i) {
  const __m256 from = floats[i / 2];
  return _mm256_cvtps_pd(i % 2 == 0 ? _mm256_castps256_ps128(from) : _mm256_extractf128_ps(from, 1));
}
RANKINE_INLINE __m256 narrow_registers(const __m256d* doubles, int i) {
  return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(doubles[2 * i])),
                              _mm256_cvtpd_ps(doubles[2 * i + 1]), 1);
}

}  // namespace rankine::RANKINE_ISA
