#pragma once

#include "runtime/compute/backend.hpp"

namespace rankine {

/// y[rows, out] = x[rows, in] W[in, out] + bias[out] with its gradients, all matrices contiguous. The leaves
/// say how the sums over `in` (forward) and over `out` (the input's gradient) are cut.
struct LinearMap {
  std::int64_t in = 0, out = 0;
  Leaves in_leaves, out_leaves;

  /// Leaves of both dimensions as feature dimensions.
  static LinearMap of(std::int64_t in, std::int64_t out) {
    return {in, out, Leaves::of(in, feature_leaf(in)), Leaves::of(out, feature_leaf(out))};
  }

  /// The bias may be absent.
  void forward(Backend& backend, const Tensor& x, const Tensor& kernel, const Tensor& bias,
               const Tensor& y) const;
  /// dx = dy W^T, or dx + dy W^T with `accumulate`.
  void input_gradient(Backend& backend, const Tensor& dy, const Tensor& kernel, const Tensor& dx,
                      bool accumulate = false) const;
  /// dW = x^T dy, the sum over rows cut as `rows` says.
  void kernel_gradient(Backend& backend, const Tensor& x, const Tensor& dy, const Leaves& rows,
                       const Tensor& dkernel) const;
};

}  // namespace rankine
