#pragma once

#include <cstdint>

#include "runtime/arithmetic/gemm_kernels.hpp"

/// Row operations of attention, one set of functions an instruction set. attention.hpp has the definition.
namespace rankine {

/// A block of rows over keys, one row a query. Row t sees columns [0, min(columns, first_visible + t)) when
/// causal, else all.
template <class T>
struct ScoreBlock {
  Rows<T> scores;
  std::int64_t rows = 0, columns = 0;
  std::int64_t first_visible = 0;
  bool causal = false;
  T scale = 1;
};

template <class T>
struct AttentionKernels {
  /// Replaces each product q . k by exp(scale * product - maximum), 0 where the row doesn't see;
  /// statistics[row] = {maximum, sum}.
  void (*weights)(const ScoreBlock<T>& block, T* statistics) = nullptr;
  /// Replaces each product by the probability: its weight times 1 / sum.
  void (*probabilities)(const ScoreBlock<T>& block, const T* statistics) = nullptr;
  /// block.scores holds probabilities and `gradients` the gradients for them; these become the gradients for
  /// the products q . k, 0 where the row doesn't see.
  void (*score_gradients)(const ScoreBlock<T>& block, Rows<T> gradients) = nullptr;
  /// x[row] = x[row] / the row's sum.
  void (*divide)(Rows<T> x, std::int64_t rows, std::int64_t columns, const T* statistics) = nullptr;
  /// left = left + right.
  void (*add)(Rows<T> left, Rows<const T> right, std::int64_t rows, std::int64_t columns) = nullptr;
};

#ifdef RANKINE_ISA
namespace RANKINE_ISA {
void fill(AttentionKernels<float>& kernels);
void fill(AttentionKernels<double>& kernels);
}  // namespace RANKINE_ISA
#endif

}  // namespace rankine
