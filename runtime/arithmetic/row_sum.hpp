#pragma once

// Sums and maxima along one row. For kernel sources only; the definition of the sum is row_kernels.hpp's.

#include "runtime/arithmetic/each_vector.hpp"

namespace rankine::RANKINE_ISA {

/// Leaf values of one row on their way through the tree: a binary counter.
template <class T>
class LeafCounter {
 public:
  RANKINE_INLINE void push(T value) {
    for (std::int64_t bits = count_++; (bits & 1) != 0; bits >>= 1) value = waiting_[--top_] + value;
    waiting_[top_++] = value;
  }
  /// The tree over all that came; +0 for none. Absent right children pass through.
  RANKINE_INLINE T total() {
    if (top_ == 0) return T(0);
    T value = waiting_[--top_];
    while (top_ > 0) value = waiting_[--top_] + value;
    return value;
  }

 private:
  T waiting_[64];
  int top_ = 0;
  std::int64_t count_ = 0;
};

/// The sum of term(i, part), a vector of the terms i, i + 1, ... of a row of n (lanes without a term may hold
/// anything).
template <class T, class Term>
RANKINE_INLINE T row_sum(std::int64_t n, std::int64_t leaf, Term term) {
  LeafCounter<T> counter;
  for (std::int64_t begin = 0; begin < n; begin += leaf) {
    auto lanes = Vec<T>::zero();
    each_vector<T>(n - begin < leaf ? n - begin : leaf, [&](std::int64_t i, auto part) RANKINE_INLINE_LAMBDA {
      // A lane's chain is never -0, so adding +0 where there is no term leaves it alone.
      lanes = lanes + part.or_absent(term(begin + i, part), Vec<T>::zero());
    });
    counter.push(reduce_add(lanes));
  }
  return counter.total();
}

/// The largest element, -infinity for none; undefined when there is a NaN.
template <class T>
RANKINE_INLINE T row_max(const T* x, std::int64_t n) {
  const auto lowest = Vec<T>::set1(-T(__builtin_huge_val()));
  auto lanes = lowest;
  each_vector<T>(n, [&](std::int64_t i, auto part) RANKINE_INLINE_LAMBDA {
    lanes = max(lanes, part.or_absent(part.load(x + i), lowest));
  });
  return reduce_max(lanes);
}

}  // namespace rankine::RANKINE_ISA
