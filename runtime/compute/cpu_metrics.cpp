#include <atomic>

#include "runtime/compute/checks.hpp"
#include "runtime/compute/cpu_backend.hpp"

namespace rankine {

template <class T, class F>
void CpuBackend::count_in_rows(std::string_view name, const Tensor& x, const Tensor& hits, F&& count) {
  const auto size = checks::rows_and_columns(x);
  checks::present(name, {{"hits", hits}});
  checks::dtype(name, {"hits", hits}, DType::float64);
  checks::size(name, {"hits", hits}, size.rows);
  split_rows(size.rows, size.columns, [&](std::int64_t r, std::int64_t end, int) {
    for (; r < end; ++r) hits.as<double>()[r] = static_cast<double>(count(x.as<T>() + r * size.columns, r));
  });
}

void CpuBackend::sparse_hits(Tensor x, Tensor labels, Tensor hits) {
  checks::present("sparse_hits", {{"x", x}});
  checks::labels("sparse_hits", x, labels);
  const std::int64_t columns = checks::rows_and_columns(x).columns;
  checks::with_floating("sparse_hits", x.dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto arg_max = table<T>().row.arg_max;
    count_in_rows<T>("sparse_hits", x, hits, [&](const T* row, std::int64_t r) {
      return arg_max(row, columns) == labels.as<std::int32_t>()[r] ? 1 : 0;
    });
  });
}

void CpuBackend::categorical_hits(Tensor x, Tensor targets, Tensor hits) {
  checks::present("categorical_hits", {{"x", x}});
  checks::targets("categorical_hits", x, targets);
  const std::int64_t columns = checks::rows_and_columns(x).columns;
  checks::with_floating("categorical_hits", x.dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto arg_max = table<T>().row.arg_max;
    count_in_rows<T>("categorical_hits", x, hits, [&](const T* row, std::int64_t r) {
      return arg_max(row, columns) == arg_max(targets.as<T>() + r * columns, columns) ? 1 : 0;
    });
  });
}

void CpuBackend::binary_hits(Tensor x, Tensor targets, double threshold, Tensor hits) {
  checks::present("binary_hits", {{"x", x}});
  checks::targets("binary_hits", x, targets);
  const std::int64_t columns = checks::rows_and_columns(x).columns;
  checks::with_floating("binary_hits", x.dtype, [&](auto zero) {
    using T = decltype(zero);
    count_in_rows<T>("binary_hits", x, hits, [&](const T* row, std::int64_t r) {
      std::int64_t count = 0;
      for (std::int64_t c = 0; c < columns; ++c)
        count +=
            targets.as<T>()[r * columns + c] == (row[c] > static_cast<T>(threshold) ? T(1) : T(0)) ? 1 : 0;
      return count;
    });
  });
}

std::int64_t CpuBackend::find_non_finite(Tensor x) {
  checks::present("find_non_finite", {{"x", x}});
  const std::int64_t n = x.elements();
  std::atomic<std::int64_t> first{n};
  checks::with_floating("find_non_finite", x.dtype, [&](auto zero) {
    using T = decltype(zero);
    split_rows(n, 1, [&](std::int64_t begin, std::int64_t end, int) {
      if (begin >= first) return;
      const std::int64_t place = table<T>().row.find_non_finite(x.as<T>() + begin, end - begin);
      if (place < 0) return;
      std::int64_t known = first;
      while (begin + place < known && !first.compare_exchange_weak(known, begin + place)) {
      }
    });
  });
  return first == n ? -1 : first.load();
}

}  // namespace rankine
