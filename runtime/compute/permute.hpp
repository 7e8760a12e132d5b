#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/shape.hpp"

namespace rankine {

/// A permutation of dimensions, brought to its simplest form: dimensions that stay together are one.
/// Dimension d of the result has `sizes[d]` elements that lie `strides[d]` apart in the source.
struct Permutation {
  std::vector<std::int64_t> sizes, strides;

  /// `order` must be a permutation of the dimensions of `from`: result dimension d is source dimension
  /// order[d].
  Permutation(const Shape& from, std::span<const int> order);

  /// Elements of the result under one index of its first dimension.
  std::int64_t inner_elements() const;
  /// The part of the result with first indices in [begin, end). `Element` is an unsigned integer as large as
  /// the array's elements.
  template <class Element>
  void copy(std::int64_t begin, std::int64_t end, const Element* from, Element* to) const;
};

extern template void Permutation::copy(std::int64_t, std::int64_t, const std::uint32_t*,
                                       std::uint32_t*) const;
extern template void Permutation::copy(std::int64_t, std::int64_t, const std::uint64_t*,
                                       std::uint64_t*) const;

}  // namespace rankine
