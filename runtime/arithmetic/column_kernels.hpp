#pragma once

#include <cstdint>

namespace rankine {

struct LeafStep;

/// Sums down the columns of a matrix whose rows are the terms, leaf by leaf (leaf.hpp). `b` null: the sum of
/// a, chained by acc = acc + a. Otherwise of a * b, chained by acc = fma(a, b, acc). Term i is row i or, with
/// `selection`, row selection[i].
template <class T>
struct ColumnSum {
  const T *a = nullptr, *b = nullptr;
  const std::int64_t* selection = nullptr;
  std::int64_t row = 0;  ///< elements from one row to the next
  std::int64_t columns = 0;
  const LeafStep* steps = nullptr;
  std::int64_t step_count = 0;
  T* waiting = nullptr;  ///< scratch: `columns` for each partial sum that may wait
  T* out = nullptr;
};

/// A tile of a tensor: `rows` runs of `columns` elements, run r starting at x[offsets[r]].
template <class T>
struct Tile {
  const T* x = nullptr;
  const std::int64_t* offsets = nullptr;
  std::int64_t rows = 0, columns = 0;
};

template <class T>
struct ColumnKernels {
  void (*sum)(const ColumnSum<T>& call) = nullptr;
  /// Sum of squares of a tile in double: element (r, c) belongs to lane c mod 16, each lane is a chain of
  /// fused multiply-adds from +0 (rows ascending, then columns), lanes are added i with i + 8, i + 4, i + 2,
  /// i + 1.
  double (*sum_of_squares)(const Tile<T>& tile) = nullptr;
};

#ifdef RANKINE_ISA
namespace RANKINE_ISA {
void fill(ColumnKernels<float>& kernels);
void fill(ColumnKernels<double>& kernels);
}  // namespace RANKINE_ISA
#endif

}  // namespace rankine
