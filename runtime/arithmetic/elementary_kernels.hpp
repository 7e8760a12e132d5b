#pragma once

#include <cstdint>

/// The elementary functions over arrays: y[i] = f(x[i]). What a function gives doesn't depend on where in the
/// array its argument stands. The kernels of layers use the same functions inline; these are for scalar
/// references and for tests.
namespace rankine {

template <class T>
struct ElementaryKernels {
  using Function = void (*)(const T* x, std::int64_t n, T* y);
  Function exp = nullptr, expm1 = nullptr, log = nullptr, log1p_of_unit = nullptr;
  Function tanh = nullptr, sigmoid = nullptr, softplus = nullptr, erf = nullptr;
  Function normal_below = nullptr, normal_bell = nullptr;
};

#ifdef RANKINE_ISA
namespace RANKINE_ISA {
void fill(ElementaryKernels<float>& kernels);
void fill(ElementaryKernels<double>& kernels);
}  // namespace RANKINE_ISA
#endif

}  // namespace rankine
