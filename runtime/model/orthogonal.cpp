#include "runtime/model/orthogonal.hpp"

#include <cmath>

namespace rankine {
namespace {

/// Four chains, so that additions overlap; their order is part of the definition.
double dot(const double* a, const double* b, std::int64_t n) {
  double sum[4] = {0.0, 0.0, 0.0, 0.0};
  std::int64_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (int lane = 0; lane < 4; ++lane) sum[lane] += a[i + lane] * b[i + lane];
  for (; i < n; ++i) sum[0] += a[i] * b[i];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

}  // namespace

void orthonormalize(std::vector<double>& columns, std::int64_t rows) {
  const std::int64_t count = rows == 0 ? 0 : static_cast<std::int64_t>(columns.size()) / rows;
  for (std::int64_t j = 0; j < count; ++j) {
    double* column = columns.data() + j * rows;
    // Modified Gram-Schmidt; the second pass takes away what rounding left of the others.
    for (int pass = 0; pass < 2; ++pass) {
      for (std::int64_t i = 0; i < j; ++i) {
        const double* other = columns.data() + i * rows;
        const double along = dot(other, column, rows);
        for (std::int64_t r = 0; r < rows; ++r) column[r] -= along * other[r];
      }
    }
    const double norm = std::sqrt(dot(column, column, rows));
    for (std::int64_t r = 0; r < rows; ++r) column[r] /= norm;
  }
}

}  // namespace rankine
