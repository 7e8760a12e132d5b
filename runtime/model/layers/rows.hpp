#pragma once

#include "runtime/compute/backend.hpp"

namespace rankine {

/// All dimensions but the last, multiplied.
inline std::int64_t rows_of(const Tensor& x) {
  return x.shape.rank() == 0 ? 1 : x.shape.product(0, x.shape.rank() - 1);
}
inline std::int64_t columns_of(const Tensor& x) {
  return x.shape.rank() == 0 ? 1 : x.shape[-1];
}

/// A tensor's shape without the batch dimension.
inline Shape sample_shape(const Tensor& x) {
  return Shape(std::vector<std::int64_t>(x.shape.sizes().begin() + 1, x.shape.sizes().end()));
}

/// The address of element `index`.
inline void* element(const Tensor& x, std::int64_t index) {
  return static_cast<std::byte*>(x.data) + index * static_cast<std::int64_t>(size_of(x.dtype));
}

/// to[r, :] = from[r, first .. first + columns of to]
inline void copy_columns(Backend& backend, const Tensor& from, std::int64_t first, const Tensor& to) {
  backend.copy_block(to.dtype, rows_of(to), columns_of(to), element(from, first), columns_of(from), to.data,
                     columns_of(to));
}
/// to[r, first .. first + columns of from] = from[r, :]
inline void put_columns(Backend& backend, const Tensor& from, const Tensor& to, std::int64_t first) {
  backend.copy_block(from.dtype, rows_of(from), columns_of(from), from.data, columns_of(from),
                     element(to, first), columns_of(to));
}

}  // namespace rankine
