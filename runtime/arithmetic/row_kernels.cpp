// Compiled once an instruction set. See row_kernels.hpp.

#include "runtime/arithmetic/row_kernels.hpp"

#include "runtime/arithmetic/elementary.hpp"
#include "runtime/arithmetic/row_sum.hpp"

namespace rankine::RANKINE_ISA {
namespace {

template <class T>
void softmax_row(const T* x, bool as_log, std::int64_t n, T* y) {
  const auto largest = all(row_max(x, n));
  each_vector<T>(n, [&](std::int64_t i, auto part)
                        RANKINE_INLINE_LAMBDA { part.store(y + i, exp(part.load(x + i) - largest)); });
  const auto sum = all(row_sum<T>(
      n, k_row_sum_leaf, [&](std::int64_t i, auto part) RANKINE_INLINE_LAMBDA { return part.load(y + i); }));
  if (as_log) {
    const auto log_sum = log(sum);
    each_vector<T>(n, [&](std::int64_t i, auto part) RANKINE_INLINE_LAMBDA {
      part.store(y + i, (part.load(x + i) - largest) - log_sum);
    });
  } else {
    const auto reciprocal = all(T(1)) / sum;
    each_vector<T>(n, [&](std::int64_t i, auto part)
                          RANKINE_INLINE_LAMBDA { part.store(y + i, part.load(y + i) * reciprocal); });
  }
}

template <class T>
void softmax(const T* x, bool as_log, std::int64_t rows, std::int64_t columns, T* y) {
  for (std::int64_t r = 0; r < rows; ++r) softmax_row(x + r * columns, as_log, columns, y + r * columns);
}

template <class T>
void softmax_gradient_row(const T* y, const T* dy, std::int64_t n, T* dx) {
  const auto sum = all(row_sum<T>(n, k_row_sum_leaf, [&](std::int64_t i, auto part) RANKINE_INLINE_LAMBDA {
    return part.load(y + i) * part.load(dy + i);
  }));
  each_vector<T>(n, [&](std::int64_t i, auto part) RANKINE_INLINE_LAMBDA {
    part.store(dx + i, part.load(y + i) * (part.load(dy + i) - sum));
  });
}

template <class T>
void log_softmax_gradient_row(const T* y, const T* dy, std::int64_t n, T* dx) {
  const auto sum = all(row_sum<T>(
      n, k_row_sum_leaf, [&](std::int64_t i, auto part) RANKINE_INLINE_LAMBDA { return part.load(dy + i); }));
  each_vector<T>(n, [&](std::int64_t i, auto part) RANKINE_INLINE_LAMBDA {
    part.store(dx + i, part.load(dy + i) - exp(part.load(y + i)) * sum);
  });
}

template <class T>
void softmax_gradient(const T* y, bool as_log, const T* dy, std::int64_t rows, std::int64_t columns, T* dx) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t at = r * columns;
    if (as_log) {
      log_softmax_gradient_row(y + at, dy + at, columns, dx + at);
    } else {
      softmax_gradient_row(y + at, dy + at, columns, dx + at);
    }
  }
}

/// The first index at which `test` holds in a lane, or -1.
template <class T, class Test>
RANKINE_INLINE std::int64_t find_first(const T* x, std::int64_t n, Test test) {
  for (std::int64_t i = 0; i < n; i += k_lanes) {
    const int count = n - i < k_lanes ? static_cast<int>(n - i) : k_lanes;
    const unsigned hits = test(Vec<T>::load(x + i, count)).bits() & (0xffffU >> (k_lanes - count));
    if (hits != 0) return i + __builtin_ctz(hits);
  }
  return -1;
}

template <class T>
std::int64_t arg_max(const T* x, std::int64_t n) {
  const std::int64_t nan = find_first(x, n, [](Vec<T> v) RANKINE_INLINE_LAMBDA { return is_nan(v); });
  if (nan >= 0) return nan;
  const auto largest = all(row_max(x, n));
  return find_first(x, n, [&](Vec<T> v) RANKINE_INLINE_LAMBDA { return v == largest; });
}

template <class T>
std::int64_t find_non_finite(const T* x, std::int64_t n) {
  const auto limit = all(Limits<T>::infinity);
  return find_first(x, n, [&](Vec<T> v) RANKINE_INLINE_LAMBDA { return ~(abs(v) < limit); });
}

template <class T>
constexpr RowKernels<T> k_kernels{softmax<T>, softmax_gradient<T>, arg_max<T>, find_non_finite<T>};

}  // namespace

void fill(RowKernels<float>& kernels) {
  kernels = k_kernels<float>;
}
void fill(RowKernels<double>& kernels) {
  kernels = k_kernels<double>;
}

}  // namespace rankine::RANKINE_ISA
