#pragma once

#include <cstdint>
#include <vector>

namespace rankine {

/// The Q of A = Q R with R's diagonal positive, in place. `columns` is A column by column, each of `rows`
/// elements, no more columns than rows, of full rank. The order of every sum is fixed, so the bits are equal
/// on every machine; a library's blocked QR depends on the size of the cache.
void orthonormalize(std::vector<double>& columns, std::int64_t rows);

}  // namespace rankine
