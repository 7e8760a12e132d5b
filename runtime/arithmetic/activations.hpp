#pragma once

// Each activation of Keras and its slope, as JAX differentiates it (also at the kinks). One struct a kind
// with value(x) and slope(x), made from the function's parameters. For activation_kernels.cpp only.

#include "runtime/arithmetic/activation_function.hpp"
#include "runtime/arithmetic/clip.hpp"
#include "runtime/arithmetic/elementary.hpp"

namespace rankine::RANKINE_ISA {

/// A kind without parameters.
struct Plain {
  RANKINE_INLINE explicit Plain(const ActivationFunction&) {}
};
// What every kind has.
#define RANKINE_VALUE RANKINE_FUNCTION Vec<T> value(Vec<T> x) const
#define RANKINE_SLOPE RANKINE_FUNCTION Vec<T> slope([[maybe_unused]] Vec<T> x) const

template <class T>
struct Linear : Plain {
  using Plain::Plain;
  RANKINE_VALUE { return x; }
  RANKINE_SLOPE { return all(T(1)); }
};

/// Keras's relu with all its parameters: x above the threshold, clipped to the maximum, minus the slope times
/// what lies below the threshold.
template <class T>
struct Relu {
  RANKINE_INLINE explicit Relu(const ActivationFunction& f)
      : negative(all(T(f.negative_slope))),
        maximum(all(T(f.max_value))),
        threshold(all(T(f.threshold))),
        leaky(f.negative_slope != 0.0),
        clipped(f.max_value >= 0.0),
        shifted(f.threshold != 0.0),
        six(f.max_value == 6.0 && f.threshold == 0.0) {}
  RANKINE_INLINE Vec<T> above(Vec<T> x) const {
    return shifted ? select(x > threshold, x, all(T(0))) : max(all(T(0)), x);
  }
  RANKINE_VALUE {
    auto y = above(x);
    if (clipped) y = clip(y, all(T(0)), maximum);
    if (leaky) y = y - negative * max(all(T(0)), threshold - x);
    return y;
  }
  RANKINE_SLOPE {
    auto d = where(x > threshold, 1.0);
    // Keras calls relu6 for a maximum of six, whose slope is 0 at six.
    if (clipped) d = d * (six ? where(x < maximum, 1.0) : clip_slope(above(x), all(T(0)), maximum));
    if (leaky) d = d + select(threshold - x > all(T(0)), negative, all(T(0)));
    return d;
  }
  Vec<T> negative, maximum, threshold;
  bool leaky, clipped, shifted, six;
};

template <class T>
struct Relu6 : Plain {
  using Plain::Plain;
  RANKINE_VALUE { return clip(x, all(T(0)), all(T(6))); }
  RANKINE_SLOPE { return where((x > all(T(0))) & (x < all(T(6))), 1.0); }
};

template <class T>
struct LeakyRelu {
  RANKINE_INLINE explicit LeakyRelu(const ActivationFunction& f) : negative(all(T(f.negative_slope))) {}
  RANKINE_VALUE { return select(x >= all(T(0)), x, negative * x); }
  RANKINE_SLOPE { return select(x >= all(T(0)), all(T(1)), negative); }
  Vec<T> negative;
};

template <class T>
struct Elu {
  RANKINE_INLINE explicit Elu(const ActivationFunction& f) : alpha(all(T(f.alpha))) {}
  RANKINE_VALUE { return select(x > all(T(0)), x, alpha * expm1(x)); }
  RANKINE_SLOPE { return select(x > all(T(0)), all(T(1)), alpha * exp(x)); }
  Vec<T> alpha;
};

template <class T>
struct Selu : Plain {
  using Plain::Plain;
  static constexpr T k_scale = T(1.0507009873554804934193349852946);
  static constexpr T k_alpha = T(1.6732632423543772848170429916717);
  RANKINE_VALUE { return all(k_scale) * select(x > all(T(0)), x, all(k_alpha) * expm1(x)); }
  RANKINE_SLOPE { return all(k_scale) * select(x > all(T(0)), all(T(1)), all(k_alpha) * exp(x)); }
};

template <class T>
struct Celu {
  RANKINE_INLINE explicit Celu(const ActivationFunction& f) : alpha(all(T(f.alpha))) {}
  RANKINE_VALUE { return select(x > all(T(0)), x, alpha * expm1(x / alpha)); }
  RANKINE_SLOPE { return select(x > all(T(0)), all(T(1)), exp(x / alpha)); }
  Vec<T> alpha;
};

template <class T>
struct Gelu : Plain {
  using Plain::Plain;
  static constexpr T k_bell_scale = T(0.39894228040143267794);  // 1 / sqrt(2 pi)
  RANKINE_VALUE { return x * normal_distribution(x).below; }
  RANKINE_SLOPE {
    const auto normal = normal_distribution(x);
    return fma(x * all(k_bell_scale), normal.bell, normal.below);
  }
};

template <class T>
struct GeluTanh : Plain {
  using Plain::Plain;
  static constexpr T k_scale = T(0.79788456080286535588);  // sqrt(2 / pi)
  static constexpr T k_cubic = T(0.044715);
  RANKINE_INLINE static Vec<T> bent(Vec<T> x) {
    return tanh(all(k_scale) * (x + all(k_cubic) * (x * x * x)));
  }
  RANKINE_VALUE { return x * (all(T(0.5)) * (all(T(1)) + bent(x))); }
  RANKINE_SLOPE {
    const auto t = bent(x);
    const auto inner = all(k_scale) * (all(T(1)) + all(T(3) * k_cubic) * (x * x));
    return all(T(0.5)) * (all(T(1)) + t) + all(T(0.5)) * x * fnma(t, t, all(T(1))) * inner;
  }
};

template <class T>
struct Silu : Plain {
  using Plain::Plain;
  RANKINE_VALUE { return x * sigmoid(x); }
  RANKINE_SLOPE {
    const auto s = sigmoid(x);
    return s * fma(x, all(T(1)) - s, all(T(1)));
  }
};

template <class T>
struct Softplus : Plain {
  using Plain::Plain;
  RANKINE_VALUE { return softplus(x); }
  RANKINE_SLOPE { return sigmoid(x); }
};

template <class T>
struct Reciprocal : Plain {
  using Plain::Plain;
  RANKINE_VALUE { return all(T(1)) / x; }
  RANKINE_SLOPE { return all(T(-1)) / (x * x); }
};

template <class T>
struct Softsign : Plain {
  using Plain::Plain;
  RANKINE_VALUE { return x / (abs(x) + all(T(1))); }
  RANKINE_SLOPE {
    const auto d = abs(x) + all(T(1));
    return all(T(1)) / (d * d);
  }
};

template <class T>
struct Tanh : Plain {
  using Plain::Plain;
  RANKINE_VALUE { return tanh(x); }
  RANKINE_SLOPE {
    const auto t = tanh(x);
    return fnma(t, t, all(T(1)));
  }
};

template <class T>
struct Sigmoid : Plain {
  using Plain::Plain;
  RANKINE_VALUE { return sigmoid(x); }
  RANKINE_SLOPE {
    const auto s = sigmoid(x);
    return s * (all(T(1)) - s);
  }
};

template <class T>
struct HardSigmoid : Plain {
  using Plain::Plain;
  RANKINE_VALUE { return clip(x + all(T(3)), all(T(0)), all(T(6))) / all(T(6)); }
  RANKINE_SLOPE {
    const auto shifted = x + all(T(3));
    return where((shifted > all(T(0))) & (shifted < all(T(6))), 1.0 / 6.0);
  }
};

template <class T>
struct HardSilu : Plain {
  using Plain::Plain;
  RANKINE_VALUE { return x * gate.value(x); }
  RANKINE_SLOPE { return gate.value(x) + x * gate.slope(x); }
  HardSigmoid<T> gate{ActivationFunction{}};
};

template <class T>
struct HardTanh : Plain {
  using Plain::Plain;
  RANKINE_VALUE { return clip(x, all(T(-1)), all(T(1))); }
  RANKINE_SLOPE { return where(abs(x) <= all(T(1)), 1.0); }
};

/// x tanh(log(1 + e^x)), the tanh as a fraction of powers of u = e^-|x|.
template <class T>
struct Mish : Plain {
  using Plain::Plain;
  RANKINE_INLINE static Vec<T> gate(Vec<T> x) {
    const auto u = exp(-abs(x));
    const auto negative = x < all(T(0));
    const auto top = select(negative, u * (u + all(T(2))), all(T(1)) + (u + u));
    return top / (top + select(negative, all(T(2)), all(T(2)) * u * u));
  }
  RANKINE_VALUE { return x * gate(x); }
  RANKINE_SLOPE {
    const auto t = gate(x);
    return t + x * fnma(t, t, all(T(1))) * sigmoid(x);
  }
};

template <class T>
struct Exponential : Plain {
  using Plain::Plain;
  RANKINE_VALUE { return exp(x); }
  RANKINE_SLOPE { return exp(x); }
};

template <class T>
struct LogSigmoid : Plain {
  using Plain::Plain;
  RANKINE_VALUE { return -softplus(-x); }
  RANKINE_SLOPE { return sigmoid(-x); }
};

template <class T>
struct Squareplus {
  RANKINE_INLINE explicit Squareplus(const ActivationFunction& f) : b(all(T(f.alpha))) {}
  RANKINE_VALUE { return (x + sqrt(x * x + b)) * all(T(0.5)); }
  RANKINE_SLOPE { return all(T(0.5)) * (all(T(1)) + x / sqrt(x * x + b)); }
  Vec<T> b;
};

template <class T>
struct HardShrink {
  RANKINE_INLINE explicit HardShrink(const ActivationFunction& f) : threshold(all(T(f.threshold))) {}
  RANKINE_VALUE { return select(abs(x) > threshold, x, all(T(0))); }
  RANKINE_SLOPE { return where(abs(x) > threshold, 1.0); }
  Vec<T> threshold;
};

template <class T>
struct SoftShrink {
  RANKINE_INLINE explicit SoftShrink(const ActivationFunction& f) : threshold(all(T(f.threshold))) {}
  RANKINE_VALUE {
    const auto below = select(x < -threshold, x + threshold, all(T(0)));
    return select(x > threshold, x - threshold, below);
  }
  RANKINE_SLOPE { return where((x > threshold) | (x < -threshold), 1.0); }
  Vec<T> threshold;
};

template <class T>
struct TanhShrink : Plain {
  using Plain::Plain;
  RANKINE_VALUE { return x - tanh(x); }
  RANKINE_SLOPE {
    const auto t = tanh(x);
    return t * t;
  }
};

template <class T>
struct Threshold {
  RANKINE_INLINE explicit Threshold(const ActivationFunction& f)
      : threshold(all(T(f.threshold))), otherwise(all(T(f.alpha))) {}
  RANKINE_VALUE { return select(x > threshold, x, otherwise); }
  RANKINE_SLOPE { return where(x > threshold, 1.0); }
  Vec<T> threshold, otherwise;
};

template <class T>
struct SparsePlus : Plain {
  using Plain::Plain;
  RANKINE_VALUE {
    const auto shifted = x + all(T(1));
    const auto bend = select(x <= all(T(-1)), all(T(0)), shifted * shifted * all(T(0.25)));
    return select(x >= all(T(1)), x, bend);
  }
  RANKINE_SLOPE {
    const auto bend = select(x <= all(T(-1)), all(T(0)), (x + all(T(1))) * all(T(0.5)));
    return select(x >= all(T(1)), all(T(1)), bend);
  }
};

template <class T>
struct SparseSigmoid : Plain {
  using Plain::Plain;
  RANKINE_VALUE { return all(T(0.5)) * clip(x + all(T(1)), all(T(0)), all(T(2))); }
  RANKINE_SLOPE { return all(T(0.5)) * clip_slope(x + all(T(1)), all(T(0)), all(T(2))); }
};

#undef RANKINE_VALUE
#undef RANKINE_SLOPE

}  // namespace rankine::RANKINE_ISA
