#pragma once

#include <cstdint>

/// Normalisations along rows. Sums over a row are row_kernels.hpp's with `k_row_sum_leaf`; a mean is such a
/// sum / columns.
namespace rankine {

/// One call on a run of rows. gamma and beta may be null.
template <class T>
struct NormForward {
  const T *x = nullptr, *gamma = nullptr, *beta = nullptr;
  T epsilon = 0;
  bool centre_variance = false;  ///< rms_norm only
  std::int64_t rows = 0, columns = 0;
  T *y = nullptr, *statistics = nullptr;
};

/// dx is null when the input has no gradient, normalized_dy when gamma has none.
template <class T>
struct NormBackward {
  const T *x = nullptr, *gamma = nullptr, *statistics = nullptr, *dy = nullptr;
  bool centre_variance = false;  ///< rms_norm only
  std::int64_t rows = 0, columns = 0;
  T *dx = nullptr, *normalized_dy = nullptr;
};

template <class T>
struct NormKernels {
  /// mean = mean(x), rstd = 1 / sqrt(mean((x - mean)^2) + epsilon), h = (x - mean) * rstd,
  /// y = h * gamma + beta (not fused); statistics[r] = {mean, rstd}.
  void (*layer_norm)(const NormForward<T>& call) = nullptr;
  /// g = dy * gamma, dx = rstd * ((g - mean(g)) - h * mean(g * h)), normalized_dy = dy * h.
  void (*layer_norm_gradient)(const NormBackward<T>& call) = nullptr;
  /// rstd = 1 / sqrt(mean(x^2) + epsilon) or, with centre_variance, of the variance; h = x * rstd,
  /// y = h * gamma; statistics[r] = rstd.
  void (*rms_norm)(const NormForward<T>& call) = nullptr;
  /// dx = rstd * (g - c * mean(g * h)), c = h or, with centre_variance, (x - mean) * rstd.
  void (*rms_norm_gradient)(const NormBackward<T>& call) = nullptr;
};

#ifdef RANKINE_ISA
namespace RANKINE_ISA {
void fill(NormKernels<float>& kernels);
void fill(NormKernels<double>& kernels);
}  // namespace RANKINE_ISA
#endif

}  // namespace rankine
