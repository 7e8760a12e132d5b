#include "runtime/arithmetic/reference.hpp"

#include <cmath>

namespace rankine::reference {
namespace {

/// An operand without elements has no address to count from.
template <class T>
T* sample(T* data, std::int64_t offset) {
  return data == nullptr ? nullptr : data + offset;
}

}  // namespace

template <class T>
void gemm(const Gemm& g) {
  for (std::int64_t s = 0; s < g.batch; ++s) {
    const T* a = sample(static_cast<const T*>(g.a), s * g.stride_a);
    const T* b = sample(static_cast<const T*>(g.b), s * g.stride_b);
    T* c = sample(static_cast<T*>(g.c), s * g.stride_c);
    for (std::int64_t i = 0; i < g.m; ++i) {
      for (std::int64_t j = 0; j < g.n; ++j) {
        T value = leaf_sum<T>(g.k_leaves, [&](std::int64_t k, T acc) {
          const T left = g.transpose_a ? a[k * g.lda + i] : a[i * g.lda + k];
          const T right = g.transpose_b ? b[j * g.ldb + k] : b[k * g.ldb + j];
          return std::fma(left, right, acc);
        });
        if (g.bias != nullptr) value = value + static_cast<const T*>(g.bias)[j];
        T& out = c[i * g.ldc + j];
        out = g.accumulate ? out + value : value;
      }
    }
  }
}
template void gemm<float>(const Gemm&);
template void gemm<double>(const Gemm&);

}  // namespace rankine::reference
