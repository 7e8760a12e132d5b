#pragma once

// Clipping, and its slope as JAX differentiates it. For kernel sources only.

#include "runtime/arithmetic/elementary.hpp"

namespace rankine::RANKINE_ISA {

/// x clipped to [low, high]; NaN stays.
template <class T>
RANKINE_INLINE Vec<T> clip(Vec<T> x, Vec<T> low, Vec<T> high) {
  return min(high, max(low, x));
}
/// `yes` where m, else 0.
template <class T>
RANKINE_INLINE Vec<T> where(Mask<T> m, double yes) {
  return select(m, all(T(yes)), all(T(0)));
}
/// Slope of a clip: half at the bounds themselves.
template <class T>
RANKINE_INLINE Vec<T> clip_slope(Vec<T> x, Vec<T> low, Vec<T> high) {
  return select((x == low) | (x == high), all(T(0.5)), where((x > low) & (x < high), 1.0));
}

}  // namespace rankine::RANKINE_ISA
