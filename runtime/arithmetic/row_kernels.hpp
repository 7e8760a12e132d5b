#pragma once

#include <cstdint>

/// What works along rows [columns].
///
/// The sum over a row has one definition. The row is cut into leaves of a fixed length. In a leaf, element i
/// (counted from the leaf's start) belongs to lane i mod 16; each lane is a chain of additions from +0; the
/// lanes are added i with i + 8, then i + 4, i + 2, i + 1. The leaves' values go through the tree of
/// leaf.hpp. The leaf is `k_row_sum_leaf` for softmax and normalisations, whose rows are never split, and
/// feature_leaf for losses, whose rows (classes) may be.
namespace rankine {

inline constexpr std::int64_t k_row_sum_leaf = 256;

template <class T>
struct RowKernels {
  /// y = exp(x - max) * (1 / sum), the sum over a row of exp(x - max); with `log`, (x - max) - log(sum).
  void (*softmax)(const T* x, bool log, std::int64_t rows, std::int64_t columns, T* y) = nullptr;
  /// dx = y * (dy - sum(y * dy)); with `log`, dy - exp(y) * sum(dy).
  void (*softmax_gradient)(const T* y, bool log, const T* dy, std::int64_t rows, std::int64_t columns,
                           T* dx) = nullptr;
  /// Index of the largest element, the lowest among equals; the first NaN if there is one; -1 for none.
  std::int64_t (*arg_max)(const T* x, std::int64_t columns) = nullptr;
  /// Index of the first element that is NaN or infinite, or -1.
  std::int64_t (*find_non_finite)(const T* x, std::int64_t n) = nullptr;
};

#ifdef RANKINE_ISA
namespace RANKINE_ISA {
void fill(RowKernels<float>& kernels);
void fill(RowKernels<double>& kernels);
}  // namespace RANKINE_ISA
#endif

}  // namespace rankine
