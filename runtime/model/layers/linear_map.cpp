#include "runtime/model/layers/linear_map.hpp"

namespace rankine {
namespace {

/// Rows of a tensor whose last dimensions make up `columns`.
std::int64_t rows_of(const Tensor& x, std::int64_t columns) {
  return columns == 0 ? 0 : x.elements() / columns;
}

}  // namespace

void LinearMap::forward(Backend& backend, const Tensor& x, const Tensor& kernel, const Tensor& bias,
                        const Tensor& y) const {
  backend.gemm({.dtype = y.dtype,
                .m = rows_of(y, out),
                .n = out,
                .k = in,
                .a = x.data,
                .lda = in,
                .b = kernel.data,
                .ldb = out,
                .c = y.data,
                .ldc = out,
                .k_leaves = in_leaves,
                .bias = bias.data});
}

void LinearMap::input_gradient(Backend& backend, const Tensor& dy, const Tensor& kernel, const Tensor& dx,
                               bool accumulate) const {
  backend.gemm({.dtype = dx.dtype,
                .transpose_b = true,
                .m = rows_of(dx, in),
                .n = in,
                .k = out,
                .a = dy.data,
                .lda = out,
                .b = kernel.data,
                .ldb = out,
                .c = dx.data,
                .ldc = in,
                .k_leaves = out_leaves,
                .accumulate = accumulate});
}

void LinearMap::kernel_gradient(Backend& backend, const Tensor& x, const Tensor& dy, const Leaves& rows,
                                const Tensor& dkernel) const {
  backend.gemm({.dtype = dkernel.dtype,
                .transpose_a = true,
                .m = in,
                .n = out,
                .k = rows_of(dy, out),
                .a = x.data,
                .lda = in,
                .b = dy.data,
                .ldb = out,
                .c = dkernel.data,
                .ldc = out,
                .k_leaves = rows});
}

}  // namespace rankine
