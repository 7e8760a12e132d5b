#pragma once

// Walking over an array sixteen elements at a time. For kernel sources only.

#include "runtime/arithmetic/simd.hpp"

namespace rankine::RANKINE_ISA {

/// All sixteen lanes.
struct WholeVector {
  template <class T>
  RANKINE_INLINE Vec<T> load(const T* p) const {
    return Vec<T>::load(p);
  }
  template <class T>
  RANKINE_INLINE void store(T* p, Vec<T> v) const {
    v.store(p);
  }
  /// v where there are elements, `absent` in the other lanes.
  template <class T>
  RANKINE_INLINE Vec<T> or_absent(Vec<T> v, Vec<T>) const {
    return v;
  }
};

/// The first n lanes; the others read as +0 and are never written.
struct PartOfVector {
  int n;
  template <class T>
  RANKINE_INLINE Vec<T> load(const T* p) const {
    return Vec<T>::load(p, n);
  }
  template <class T>
  RANKINE_INLINE void store(T* p, Vec<T> v) const {
    v.store(p, n);
  }
  template <class T>
  RANKINE_INLINE Vec<T> or_absent(Vec<T> v, Vec<T> absent) const {
    return select(Mask<T>::first(n), v, absent);
  }
};

/// Either of the two, decided at each load and store.
struct SomeOfVector {
  int n;
  template <class T>
  RANKINE_INLINE Vec<T> load(const T* p) const {
    return n >= k_lanes ? Vec<T>::load(p) : Vec<T>::load(p, n);
  }
  template <class T>
  RANKINE_INLINE void store(T* p, Vec<T> v) const {
    n >= k_lanes ? v.store(p) : v.store(p, n);
  }
  template <class T>
  RANKINE_INLINE Vec<T> or_absent(Vec<T> v, Vec<T> absent) const {
    return n >= k_lanes ? v : select(Mask<T>::first(n), v, absent);
  }
};

/// Calls f(i, part) for i = 0, 16, 32, ... below n, with a part that loads and stores what there is. One loop
/// body: for large ones, which a second copy would only make slow to compile.
template <class T, class F>
RANKINE_INLINE void each_vector_once(std::int64_t n, F&& f) {
  for (std::int64_t i = 0; i < n; i += k_lanes) {
    f(i, SomeOfVector{n - i < k_lanes ? static_cast<int>(n - i) : k_lanes});
  }
}

/// The same with two bodies, so that nothing is decided in the loop.
template <class T, class F>
RANKINE_INLINE void each_vector(std::int64_t n, F&& f) {
#if defined(__AVX2__)
  std::int64_t i = 0;
  for (; i + k_lanes <= n; i += k_lanes) f(i, WholeVector{});
  if (i < n) f(i, PartOfVector{static_cast<int>(n - i)});
#else
  each_vector_once<T>(n, f);
#endif
}

}  // namespace rankine::RANKINE_ISA
