#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "runtime/compute/tensor.hpp"

/// What kernels check before they touch memory. A failure is a mistake in the calling code: std::logic_error
/// with the kernel's name and what doesn't fit.
namespace rankine::checks {

/// A tensor with the name that messages call it by.
struct Named {
  std::string_view name;
  const Tensor& tensor;
};

[[noreturn]] void fail(std::string_view kernel, const std::string& what);
void require(bool holds, std::string_view kernel, std::string_view what);
/// There, or without elements.
void present(std::string_view kernel, std::initializer_list<Named> tensors);
/// All present ones have the dtype of the first.
void same_dtype(std::string_view kernel, std::initializer_list<Named> tensors);
void dtype(std::string_view kernel, Named tensor, DType dtype);
/// As many elements as the first has.
void same_size(std::string_view kernel, std::initializer_list<Named> tensors);
void size(std::string_view kernel, Named tensor, std::int64_t elements);
void rank(std::string_view kernel, Named tensor, int rank);

/// All dimensions but the last, and the last; a scalar is one row of one column.
struct RowsAndColumns {
  std::int64_t rows, columns;
};
RowsAndColumns rows_and_columns(const Tensor& tensor);

/// Targets like the predictions x.
void targets(std::string_view kernel, const Tensor& x, const Tensor& targets);
/// One label a row of x.
void labels(std::string_view kernel, const Tensor& x, const Tensor& labels);

/// Calls f(float()) or f(double()) as the dtype says.
template <class F>
decltype(auto) with_floating(std::string_view kernel, DType dtype, F&& f) {
  if (dtype == DType::float32) return f(float{});
  if (dtype == DType::float64) return f(double{});
  fail(kernel, "works on float32 and float64, not on " + std::string(name_of(dtype)));
}

}  // namespace rankine::checks
