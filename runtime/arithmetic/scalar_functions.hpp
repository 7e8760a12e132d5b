#pragma once

#include "runtime/arithmetic/kernel_table.hpp"

/// The elementary functions of one number, for the scalar references (elementary.hpp defines them; where a
/// number stands in a vector doesn't matter).
namespace rankine::reference {

#define RANKINE_SCALAR(name)                                         \
  template <class T>                                                 \
  T name(T x) {                                                      \
    T y;                                                             \
    kernels<T>(InstructionSet::portable).elementary.name(&x, 1, &y); \
    return y;                                                        \
  }
RANKINE_SCALAR(exp)
RANKINE_SCALAR(expm1)
RANKINE_SCALAR(log)
RANKINE_SCALAR(log1p_of_unit)
RANKINE_SCALAR(tanh)
RANKINE_SCALAR(sigmoid)
RANKINE_SCALAR(softplus)
RANKINE_SCALAR(normal_below)
RANKINE_SCALAR(normal_bell)
#undef RANKINE_SCALAR

/// x in [low, high]; NaN stays.
template <class T>
T clip(T x, T low, T high) {
  if (x < low) return low;
  return x > high ? high : x;
}
/// Its slope: half at the bounds.
template <class T>
T clip_slope(T x, T low, T high) {
  if (x == low || x == high) return T(0.5);
  return x > low && x < high ? T(1) : T(0);
}

}  // namespace rankine::reference
