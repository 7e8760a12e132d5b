#pragma once

// Sums and maxima of the lanes of one AVX register, halves first. Included by the x86 headers only.

#include <immintrin.h>

namespace rankine::RANKINE_ISA {

struct Add {
  RANKINE_INLINE __m256 operator()(__m256 a, __m256 b) const { return _mm256_add_ps(a, b); }
  RANKINE_INLINE __m256d operator()(__m256d a, __m256d b) const { return _mm256_add_pd(a, b); }
  RANKINE_INLINE __m128 operator()(__m128 a, __m128 b) const { return _mm_add_ps(a, b); }
  RANKINE_INLINE __m128d operator()(__m128d a, __m128d b) const { return _mm_add_pd(a, b); }
};
struct Max {
  RANKINE_INLINE __m256 operator()(__m256 a, __m256 b) const { return _mm256_max_ps(a, b); }
  RANKINE_INLINE __m256d operator()(__m256d a, __m256d b) const { return _mm256_max_pd(a, b); }
  RANKINE_INLINE __m128 operator()(__m128 a, __m128 b) const { return _mm_max_ps(a, b); }
  RANKINE_INLINE __m128d operator()(__m128d a, __m128d b) const { return _mm_max_pd(a, b); }
};

template <class Op>
RANKINE_INLINE float fold(Op op, __m256 a) {
  const __m128 four = op(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  const __m128 two = op(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(op(two, _mm_shuffle_ps(two, two, 1)));
}
template <class Op>
RANKINE_INLINE double fold(Op op, __m256d a) {
  const __m128d two = op(_mm256_castpd256_pd128(a), _mm256_extractf128_pd(a, 1));
  return _mm_cvtsd_f64(op(two, _mm_unpackhi_pd(two, two)));
}

}  // namespace rankine::RANKINE_ISA
