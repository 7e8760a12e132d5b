#pragma once

#include <functional>

#include "runtime/compute/backend.hpp"
#include "test/arithmetic/arrays.hpp"

/// Helpers for tests that compare backends with scalar references.
namespace rankine::testing {

template <class T>
Tensor tensor_of(std::vector<T>& data, Shape shape) {
  REQUIRE(shape.elements() == static_cast<std::int64_t>(data.size()));
  return {data.data(), dtype_of<T>, std::move(shape)};
}
template <class T>
Tensor tensor_of(const std::vector<T>& data, Shape shape) {
  return tensor_of(const_cast<std::vector<T>&>(data), std::move(shape));
}

/// Calls f(backend) for every instruction set and 1, 2 and 3 threads.
template <class F>
void each_backend(F&& f) {
  for (const auto set : instruction_sets()) {
    for (const int threads : {1, 2, 3}) {
      const auto backend = make_cpu_backend(threads, set);
      INFO(backend->description());
      f(*backend);
    }
  }
}

inline std::unique_ptr<Backend> best_backend() {
  return make_cpu_backend(1, best_instruction_set());
}

/// Equal bits, or the first difference.
template <class T>
void check_equal(const std::vector<T>& got, const std::vector<T>& want) {
  const std::int64_t at = first_difference(got, want);
  if (at >= 0) {
    CAPTURE(at, got[static_cast<std::size_t>(at)], want[static_cast<std::size_t>(at)]);
    FAIL_CHECK("bits differ");
  } else {
    SUCCEED();
  }
}

/// Row r of a matrix.
template <class T>
std::vector<T> row_of(const std::vector<T>& matrix, std::int64_t r, std::int64_t columns) {
  return {matrix.begin() + r * columns, matrix.begin() + (r + 1) * columns};
}
template <class T>
void append(std::vector<T>& to, const std::vector<T>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

}  // namespace rankine::testing
