#pragma once

#include <cstdint>

namespace rankine {

struct ActivationFunction;

/// Activations of one element (ActivationFunction). Outputs may be inputs.
template <class T>
struct ActivationKernels {
  void (*value)(const ActivationFunction& f, const T* x, std::int64_t n, T* y) = nullptr;
  /// dx[i] = dy[i] * f'(x[i])
  void (*gradient)(const ActivationFunction& f, const T* x, const T* dy, std::int64_t n, T* dx) = nullptr;
};

#ifdef RANKINE_ISA
namespace RANKINE_ISA {
void fill(ActivationKernels<float>& kernels);
void fill(ActivationKernels<double>& kernels);
}  // namespace RANKINE_ISA
#endif

}  // namespace rankine
