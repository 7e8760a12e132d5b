#include <atomic>
#include <cmath>
#include <limits>

#include "runtime/compute/checks.hpp"
#include "runtime/compute/cpu_backend.hpp"

namespace rankine {
namespace {

/// Whether fewer than k elements of a row are larger than the one at `label`.
template <class T>
bool is_in_top_k(const T* row, std::int64_t columns, std::int64_t label, std::int64_t k) {
  if (label < 0) label += columns;
  T wanted = -std::numeric_limits<T>::infinity();
  if (label >= 0 && label < columns && !std::isnan(row[label])) wanted = row[label];
  std::int64_t larger = 0;
  for (std::int64_t c = 0; c < columns; ++c) larger += row[c] > wanted ? 1 : 0;
  return larger < k;
}

}  // namespace

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

void CpuBackend::sparse_top_k_hits(Tensor x, Tensor labels, std::int64_t k, Tensor hits) {
  checks::present("sparse_top_k_hits", {{"x", x}});
  checks::labels("sparse_top_k_hits", x, labels);
  const std::int64_t columns = checks::rows_and_columns(x).columns;
  checks::with_floating("sparse_top_k_hits", x.dtype, [&](auto zero) {
    using T = decltype(zero);
    count_in_rows<T>("sparse_top_k_hits", x, hits, [&](const T* row, std::int64_t r) {
      return is_in_top_k(row, columns, labels.as<std::int32_t>()[r], k) ? 1 : 0;
    });
  });
}

void CpuBackend::categorical_top_k_hits(Tensor x, Tensor targets, std::int64_t k, Tensor hits) {
  checks::present("categorical_top_k_hits", {{"x", x}});
  checks::targets("categorical_top_k_hits", x, targets);
  const std::int64_t columns = checks::rows_and_columns(x).columns;
  checks::with_floating("categorical_top_k_hits", x.dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto arg_max = table<T>().row.arg_max;
    count_in_rows<T>("categorical_top_k_hits", x, hits, [&](const T* row, std::int64_t r) {
      return is_in_top_k(row, columns, arg_max(targets.as<T>() + r * columns, columns), k) ? 1 : 0;
    });
  });
}

void CpuBackend::count_positives(Tensor x, Tensor targets, double threshold, Tensor both, Tensor predicted,
                                 Tensor wanted) {
  checks::present("count_positives", {{"x", x}});
  checks::targets("count_positives", x, targets);
  const std::int64_t columns = checks::rows_and_columns(x).columns;
  checks::with_floating("count_positives", x.dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto count = [&](const Tensor& into, auto holds) {
      if (!into) return;
      count_in_rows<T>("count_positives", x, into, [&](const T* row, std::int64_t r) {
        const T* target = targets.as<T>() + r * columns;
        std::int64_t found = 0;
        for (std::int64_t c = 0; c < columns; ++c)
          found += holds(row[c] > static_cast<T>(threshold), target[c] != T(0)) ? 1 : 0;
        return found;
      });
    };
    count(both, [](bool is_predicted, bool is_wanted) { return is_predicted && is_wanted; });
    count(predicted, [](bool is_predicted, bool) { return is_predicted; });
    count(wanted, [](bool, bool is_wanted) { return is_wanted; });
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
