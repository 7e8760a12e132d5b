#include "runtime/arithmetic/activation_reference.hpp"

#include <cmath>

#include "runtime/arithmetic/scalar_functions.hpp"

namespace rankine::reference {
namespace {

template <class T>
constexpr T k_selu_scale = T(1.0507009873554804934193349852946);
template <class T>
constexpr T k_selu_alpha = T(1.6732632423543772848170429916717);

template <class T>
T relu(const ActivationFunction& f, T x) {
  const T threshold = static_cast<T>(f.threshold);
  T y = threshold != 0 ? (x > threshold ? x : T(0)) : (x < 0 ? T(0) : x);
  if (f.max_value >= 0) y = clip(y, T(0), static_cast<T>(f.max_value));
  if (f.negative_slope != 0) {
    const T below = threshold - x;
    y = y - static_cast<T>(f.negative_slope) * (below < 0 ? T(0) : below);
  }
  return y;
}

template <class T>
T relu_slope(const ActivationFunction& f, T x) {
  const T threshold = static_cast<T>(f.threshold), maximum = static_cast<T>(f.max_value);
  T slope = x > threshold ? T(1) : T(0);
  if (f.max_value == 6 && threshold == 0) {
    slope = slope * (x < maximum ? T(1) : T(0));
  } else if (f.max_value >= 0) {
    const T y = threshold != 0 ? (x > threshold ? x : T(0)) : (x < 0 ? T(0) : x);
    slope = slope * clip_slope(y, T(0), maximum);
  }
  if (f.negative_slope != 0) slope = slope + (threshold - x > 0 ? static_cast<T>(f.negative_slope) : T(0));
  return slope;
}

template <class T>
T gelu_bend(T x) {
  return tanh(T(0.79788456080286535588) * (x + T(0.044715) * (x * x * x)));
}

/// tanh(log(1 + e^x))
template <class T>
T mish_gate(T x) {
  const T u = exp(-std::fabs(x));
  const T top = x < 0 ? u * (u + T(2)) : T(1) + (u + u);
  return top / (top + (x < 0 ? T(2) : T(2) * u * u));
}

template <class T>
T hard_sigmoid(T x) {
  return clip(x + T(3), T(0), T(6)) / T(6);
}
template <class T>
T hard_sigmoid_slope(T x) {
  return x + T(3) > 0 && x + T(3) < T(6) ? T(1.0 / 6.0) : T(0);
}

}  // namespace

template <class T>
T activation(const ActivationFunction& f, T x) {
  const T alpha = static_cast<T>(f.alpha), threshold = static_cast<T>(f.threshold);
  switch (f.kind) {
    case ActivationKind::linear:
      return x;
    case ActivationKind::relu:
      return relu(f, x);
    case ActivationKind::relu6:
      return clip(x, T(0), T(6));
    case ActivationKind::leaky_relu:
      return x >= 0 ? x : static_cast<T>(f.negative_slope) * x;
    case ActivationKind::elu:
      return x > 0 ? x : alpha * expm1(x);
    case ActivationKind::selu:
      return k_selu_scale<T> * (x > 0 ? x : k_selu_alpha<T> * expm1(x));
    case ActivationKind::celu:
      return x > 0 ? x : alpha * expm1(x / alpha);
    case ActivationKind::gelu:
      return x * normal_below(x);
    case ActivationKind::gelu_tanh:
      return x * (T(0.5) * (T(1) + gelu_bend(x)));
    case ActivationKind::silu:
      return x * sigmoid(x);
    case ActivationKind::softplus:
      return softplus(x);
    case ActivationKind::reciprocal:
      return T(1) / x;
    case ActivationKind::softsign:
      return x / (std::fabs(x) + T(1));
    case ActivationKind::tanh:
      return tanh(x);
    case ActivationKind::sigmoid:
      return sigmoid(x);
    case ActivationKind::hard_sigmoid:
      return hard_sigmoid(x);
    case ActivationKind::hard_silu:
      return x * hard_sigmoid(x);
    case ActivationKind::hard_tanh:
      return clip(x, T(-1), T(1));
    case ActivationKind::mish:
      return x * mish_gate(x);
    case ActivationKind::exponential:
      return exp(x);
    case ActivationKind::log_sigmoid:
      return -softplus(-x);
    case ActivationKind::squareplus:
      return (x + std::sqrt(x * x + alpha)) * T(0.5);
    case ActivationKind::hard_shrink:
      return std::fabs(x) > threshold ? x : T(0);
    case ActivationKind::soft_shrink:
      return x > threshold ? x - threshold : x < -threshold ? x + threshold : T(0);
    case ActivationKind::tanh_shrink:
      return x - tanh(x);
    case ActivationKind::threshold:
      return x > threshold ? x : alpha;
    case ActivationKind::sparse_plus:
      return x >= 1 ? x : x <= -1 ? T(0) : (x + T(1)) * (x + T(1)) * T(0.25);
    case ActivationKind::sparse_sigmoid:
      return T(0.5) * clip(x + T(1), T(0), T(2));
  }
  return x;
}

template <class T>
T activation_slope(const ActivationFunction& f, T x) {
  const T alpha = static_cast<T>(f.alpha), threshold = static_cast<T>(f.threshold);
  switch (f.kind) {
    case ActivationKind::linear:
      return T(1);
    case ActivationKind::relu:
      return relu_slope(f, x);
    case ActivationKind::relu6:
      return x > 0 && x < 6 ? T(1) : T(0);
    case ActivationKind::leaky_relu:
      return x >= 0 ? T(1) : static_cast<T>(f.negative_slope);
    case ActivationKind::elu:
      return x > 0 ? T(1) : alpha * exp(x);
    case ActivationKind::selu:
      return k_selu_scale<T> * (x > 0 ? T(1) : k_selu_alpha<T> * exp(x));
    case ActivationKind::celu:
      return x > 0 ? T(1) : exp(x / alpha);
    case ActivationKind::gelu:
      return std::fma(x * T(0.39894228040143267794), normal_bell(x), normal_below(x));
    case ActivationKind::gelu_tanh: {
      const T t = gelu_bend(x);
      const T inner = T(0.79788456080286535588) * (T(1) + T(3) * T(0.044715) * (x * x));
      return T(0.5) * (T(1) + t) + T(0.5) * x * std::fma(-t, t, T(1)) * inner;
    }
    case ActivationKind::silu:
      return sigmoid(x) * std::fma(x, T(1) - sigmoid(x), T(1));
    case ActivationKind::softplus:
      return sigmoid(x);
    case ActivationKind::reciprocal:
      return T(-1) / (x * x);
    case ActivationKind::softsign: {
      const T d = std::fabs(x) + T(1);
      return T(1) / (d * d);
    }
    case ActivationKind::tanh:
      return std::fma(-tanh(x), tanh(x), T(1));
    case ActivationKind::sigmoid:
      return sigmoid(x) * (T(1) - sigmoid(x));
    case ActivationKind::hard_sigmoid:
      return hard_sigmoid_slope(x);
    case ActivationKind::hard_silu:
      return hard_sigmoid(x) + x * hard_sigmoid_slope(x);
    case ActivationKind::hard_tanh:
      return std::fabs(x) <= 1 ? T(1) : T(0);
    case ActivationKind::mish: {
      const T t = mish_gate(x);
      return t + x * std::fma(-t, t, T(1)) * sigmoid(x);
    }
    case ActivationKind::exponential:
      return exp(x);
    case ActivationKind::log_sigmoid:
      return sigmoid(-x);
    case ActivationKind::squareplus:
      return T(0.5) * (T(1) + x / std::sqrt(x * x + alpha));
    case ActivationKind::hard_shrink:
      return std::fabs(x) > threshold ? T(1) : T(0);
    case ActivationKind::soft_shrink:
      return x > threshold || x < -threshold ? T(1) : T(0);
    case ActivationKind::tanh_shrink:
      return tanh(x) * tanh(x);
    case ActivationKind::threshold:
      return x > threshold ? T(1) : T(0);
    case ActivationKind::sparse_plus:
      return x >= 1 ? T(1) : x <= -1 ? T(0) : (x + T(1)) * T(0.5);
    case ActivationKind::sparse_sigmoid:
      return T(0.5) * clip_slope(x + T(1), T(0), T(2));
  }
  return T(1);
}

template float activation(const ActivationFunction&, float);
template double activation(const ActivationFunction&, double);
template float activation_slope(const ActivationFunction&, float);
template double activation_slope(const ActivationFunction&, double);

}  // namespace rankine::reference
