#pragma once

#include <cstdint>

#include "runtime/arithmetic/leaf.hpp"
#include "runtime/dtype.hpp"

namespace rankine {

/// C[m, n] = op(A)[m, k] op(B)[k, n] (+ bias[n]) (+ C), the sum over k cut as `k_leaves` says. Leading
/// dimensions are in elements. `batch` independent products, `stride_*` elements apart. m, n, k and batch may
/// be 0; k = 0 gives 0. The bias is added once, after the sum; `accumulate` then adds the old C to that: C +
/// (sum + bias).
struct Gemm {
  DType dtype = DType::float32;
  bool transpose_a = false;
  bool transpose_b = false;
  std::int64_t m = 0, n = 0, k = 0;
  const void* a = nullptr;
  std::int64_t lda = 0;
  const void* b = nullptr;
  std::int64_t ldb = 0;
  void* c = nullptr;
  std::int64_t ldc = 0;
  Leaves k_leaves;
  const void* bias = nullptr;
  bool accumulate = false;
  std::int64_t batch = 1;
  std::int64_t stride_a = 0, stride_b = 0, stride_c = 0;
};

}  // namespace rankine
