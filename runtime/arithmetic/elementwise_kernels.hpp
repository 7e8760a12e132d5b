#pragma once

#include <cstdint>

/// What acts on each element by itself. Outputs may be inputs.
namespace rankine {

/// Which elements of a run inside one sample a dropout keeps (see RandomUse::dropout): element e of the
/// sample is kept where the upper 24 bits of its random word are >= `threshold`.
struct DropoutRun {
  std::uint64_t key = 0;
  std::uint32_t first_block = 0;  ///< block of the run's first element
  std::uint32_t sample = 0, step = 0, use = 0;
  std::uint32_t threshold = 0;
};

template <class T>
struct ElementwiseKernels {
  void (*add)(const T* a, const T* b, std::int64_t n, T* out) = nullptr;
  void (*multiply)(const T* a, const T* b, std::int64_t n, T* out) = nullptr;
  void (*scale)(const T* x, T factor, std::int64_t n, T* out) = nullptr;
  /// out[i] = x[i] / divisor
  void (*divide)(const T* x, T divisor, std::int64_t n, T* out) = nullptr;
  /// The larger, or the smaller, of two elements. Not a number where one of them isn't.
  void (*maximum)(const T* a, const T* b, std::int64_t n, T* out) = nullptr;
  void (*minimum)(const T* a, const T* b, std::int64_t n, T* out) = nullptr;
  /// dy where a is larger (smaller) than b, half of it where they are equal, else 0: the gradient of a.
  void (*maximum_gradient)(const T* a, const T* b, const T* dy, std::int64_t n, T* da) = nullptr;
  void (*minimum_gradient)(const T* a, const T* b, const T* dy, std::int64_t n, T* da) = nullptr;
  void (*add_bias)(const T* x, const T* bias, std::int64_t rows, std::int64_t columns, T* out) = nullptr;
  /// out[i] = fma(x[i] - centre[i], scale[i], shift[i]); a null centre or shift is zeros.
  void (*affine)(const T* x, const T* centre, const T* scale, const T* shift, std::int64_t n,
                 T* out) = nullptr;
  /// y[i] = kept ? x[i] * factor : +0
  void (*dropout)(const DropoutRun& run, T factor, const T* x, std::int64_t n, T* y) = nullptr;
};

#ifdef RANKINE_ISA
namespace RANKINE_ISA {
void fill(ElementwiseKernels<float>& kernels);
void fill(ElementwiseKernels<double>& kernels);
}  // namespace RANKINE_ISA
#endif

}  // namespace rankine
