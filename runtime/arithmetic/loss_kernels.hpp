#pragma once

#include <cstdint>

/// Losses of Keras with their gradients, as JAX differentiates them. Sums over a row are row_kernels.hpp's
/// with feature_leaf(columns) as the leaf.
namespace rankine {

/// One call on a run of rows of x.
template <class T>
struct LossCall {
  const T* x = nullptr;
  const T* targets = nullptr;            ///< as x; unused by sparse_cross_entropy
  const std::int32_t* labels = nullptr;  ///< one a row, in range; sparse_cross_entropy only
  bool from_logits = false;
  double label_smoothing = 0.0;
  double delta = 1.0;  ///< huber only
  double scale = 1.0;
  std::int64_t rows = 0, columns = 0, leaf = 1;
  double* element_loss = nullptr;
  T* dx = nullptr;       ///< may be null
  T* scratch = nullptr;  ///< one row
};

/// With s = T(scale), S a row's sum as said, m a row's maximum, e = exp(x - m), clip to [1e-7, 1 - 1e-7] with
/// slope 1 inside, 1/2 at the bounds, 0 outside:
template <class T>
struct LossKernels {
  /// logits: log(double(S(e))) - (double(x_l) - double(m)); dx = e * (s / S), and s less at the label l.
  /// probabilities: p = x_l / S(x), -log(double(clip(p))); g = -slope / clip(p), dx = (0 - g * p) * (s / S),
  /// at the label (g - g * p) * (s / S).
  void (*sparse_cross_entropy)(const LossCall<T>& call) = nullptr;
  /// t = target * T(1 - smoothing) + T(smoothing) / T(columns) if there is smoothing.
  /// logits: double(S(t)) * log(double(S(e))) - double(S(t * (x - m))); dx = e * ((S(t) * s) / S(e)) - t * s.
  /// probabilities: p = x / S(x), -double(S(t * log(clip(p)))); g = -t / clip(p) * slope,
  /// dx = (g - S(g * p)) * (s / S(x)).
  void (*categorical_cross_entropy)(const LossCall<T>& call) = nullptr;
  /// t = target * T(1 - smoothing) + T(smoothing / 2) if there is smoothing; s = T(scale / columns);
  /// logits: u = log1p(exp(-|x|)), terms t * (max(0, -x) + u) + (1 - t) * (max(0, x) + u); dx = (sigmoid(x) -
  /// t) * s.
  /// probabilities: c = clip(x), terms -(t * log(c) + (1 - t) * log(1 - c)); dx = (slope * ((1 - t) / (1 - c)
  /// - t / c)) * s. The loss is double(S(terms)) / columns.
  void (*binary_cross_entropy)(const LossCall<T>& call) = nullptr;
  /// d = x - target: double(S(d * d)) / columns, dx = d * T(2 * scale / columns).
  void (*mean_squared_error)(const LossCall<T>& call) = nullptr;
  /// With f = T(scale / columns): double(S(|d|)) / columns, dx = f with the sign of d, and d where it is 0 or
  /// NaN.
  void (*mean_absolute_error)(const LossCall<T>& call) = nullptr;
  /// With a = |d|, D = T(delta): terms D * a - 0.5 * (D * D) where a > D, else 0.5 * (d * d); dx = (D with
  /// the sign of d, else d) * f. The loss is double(S(terms)) / columns.
  void (*huber)(const LossCall<T>& call) = nullptr;
};

#ifdef RANKINE_ISA
namespace RANKINE_ISA {
void fill(LossKernels<float>& kernels);
void fill(LossKernels<double>& kernels);
}  // namespace RANKINE_ISA
#endif

}  // namespace rankine
