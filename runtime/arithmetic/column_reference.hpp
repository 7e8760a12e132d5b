#pragma once

#include <span>
#include <vector>

#include "runtime/arithmetic/leaf.hpp"
#include "runtime/shape.hpp"

/// Sums down columns and over whole tensors, word for word (see column_kernels.hpp and Backend): what the
/// kernels must equal bit for bit.
namespace rankine::reference {

/// Sum over rows of a or, where b isn't empty, of a * b.
template <class T>
std::vector<T> column_sum(const std::vector<T>& a, const std::vector<T>& b, const Leaves& rows,
                          std::int64_t columns);
template <class T>
std::vector<T> scatter_add(const std::vector<std::int32_t>& ids, const std::vector<T>& dy, const Leaves& rows,
                           std::int64_t vocabulary, std::int64_t columns);
template <class T>
double sum_of_squares(const std::vector<T>& x, const Shape& shape);

}  // namespace rankine::reference
