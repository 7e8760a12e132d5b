#include "runtime/compute/permute.hpp"

#include <algorithm>

namespace rankine {
namespace {

constexpr std::int64_t k_block = 16;

/// to[i * columns + j] = from[i + j * stride] for i < height, j < width, both at most k_block. It goes
/// through a buffer so that whole cache lines are read and written once: with strides of powers of two, the
/// lines of a block would push each other out. Inline, so that full blocks get loops of fixed length.
template <class Element>
inline void transpose_block(const Element* from, std::int64_t stride, std::int64_t height, std::int64_t width,
                            std::int64_t columns, Element* to) {
  Element block[k_block][k_block];
  for (std::int64_t j = 0; j < width; ++j) {
    for (std::int64_t i = 0; i < height; ++i) block[j][i] = from[i + j * stride];
  }
  for (std::int64_t i = 0; i < height; ++i) {
    for (std::int64_t j = 0; j < width; ++j) to[i * columns + j] = block[j][i];
  }
}

/// The same for any height (rows) and width (columns).
template <class Element>
void transpose(const Element* from, std::int64_t stride, std::int64_t rows, std::int64_t columns,
               Element* to) {
  for (std::int64_t i = 0; i < rows; i += k_block) {
    const std::int64_t height = std::min(k_block, rows - i);
    for (std::int64_t j = 0; j < columns; j += k_block) {
      const std::int64_t width = std::min(k_block, columns - j);
      const Element* source = from + i + j * stride;
      Element* target = to + i * columns + j;
      if (height == k_block && width == k_block) {
        transpose_block(source, stride, k_block, k_block, columns, target);
      } else {
        transpose_block(source, stride, height, width, columns, target);
      }
    }
  }
}

/// `size` indices of dimension d and all of the dimensions behind it, to consecutive elements at `to`;
/// returns where they end.
template <class Element>
Element* copy_dimensions(const Permutation& p, std::size_t d, std::int64_t size, const Element* from,
                         Element* to) {
  const std::int64_t stride = p.strides[d];
  const std::size_t behind = p.sizes.size() - d - 1;
  if (behind == 0 && stride == 1) return std::copy_n(from, size, to);
  if (behind == 1 && stride == 1) {
    transpose(from, p.strides[d + 1], size, p.sizes[d + 1], to);
    return to + size * p.sizes[d + 1];
  }
  for (std::int64_t i = 0; i < size; ++i) {
    if (behind == 0) {
      *to++ = from[i * stride];
    } else {
      to = copy_dimensions(p, d + 1, p.sizes[d + 1], from + i * stride, to);
    }
  }
  return to;
}

}  // namespace

Permutation::Permutation(const Shape& from, std::span<const int> order) {
  const auto stride_of = [&](int d) { return from.product(d + 1, from.rank()); };
  for (const int d : order) {
    if (from[d] == 1) continue;
    // Neighbours that are neighbours in the source too move as one.
    if (!sizes.empty() && strides.back() == from[d] * stride_of(d)) {
      sizes.back() *= from[d];
      strides.back() = stride_of(d);
    } else {
      sizes.push_back(from[d]);
      strides.push_back(stride_of(d));
    }
  }
  if (sizes.empty()) {
    sizes.push_back(1);
    strides.push_back(1);
  }
}

std::int64_t Permutation::inner_elements() const {
  std::int64_t n = 1;
  for (std::size_t d = 1; d < sizes.size(); ++d) n *= sizes[d];
  return n;
}

template <class Element>
void Permutation::copy(std::int64_t begin, std::int64_t end, const Element* from, Element* to) const {
  copy_dimensions(*this, 0, end - begin, from + begin * strides[0], to + begin * inner_elements());
}
template void Permutation::copy(std::int64_t, std::int64_t, const std::uint32_t*, std::uint32_t*) const;
template void Permutation::copy(std::int64_t, std::int64_t, const std::uint64_t*, std::uint64_t*) const;

}  // namespace rankine
