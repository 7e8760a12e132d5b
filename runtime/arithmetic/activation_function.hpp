#pragma once

#include <cstdint>

namespace rankine {

/// Activations of Keras that act on one element. `softmax`, `log_softmax` and `glu` act on rows and aren't
/// here.
enum class ActivationKind : std::uint8_t {
  linear,
  relu,
  relu6,
  leaky_relu,
  elu,
  selu,
  celu,
  gelu,
  gelu_tanh,
  silu,
  softplus,
  softsign,
  tanh,
  sigmoid,
  hard_sigmoid,
  hard_silu,
  hard_tanh,
  mish,
  exponential,
  log_sigmoid,
  squareplus,
  hard_shrink,
  soft_shrink,
  tanh_shrink,
  threshold,
  sparse_plus,
  sparse_sigmoid,
  reciprocal,  ///< 1 / x; no activation of Keras, but what its operators divide by
};

/// An activation with its parameters, in Keras's meaning (keras.md F.4).
struct ActivationFunction {
  ActivationKind kind = ActivationKind::linear;
  double negative_slope = 0.0;  ///< relu, leaky_relu
  double max_value = -1.0;      ///< relu; negative means none
  double threshold = 0.0;       ///< relu, threshold, hard_shrink, soft_shrink
  double alpha = 1.0;           ///< elu, celu, squareplus (b), threshold (default value)
};

}  // namespace rankine
