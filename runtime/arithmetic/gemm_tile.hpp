#pragma once

// One tile of a matrix product: as many elements of C as the registers hold. For gemm_kernels.cpp only.

#include "runtime/arithmetic/gemm_kernels.hpp"
#include "runtime/arithmetic/simd.hpp"

namespace rankine::RANKINE_ISA {

// Accumulators fill the registers: 24 of 32, 12 of 16. No more than eight rows, since A may be read where it
// is: rows that lie a power of two apart share one set of the first-level cache.
template <class T>
struct Tile;
#if defined(__AVX512F__)
template <>
struct Tile<float> {
  static constexpr int rows = 8, vectors = 3;
};
template <>
struct Tile<double> {
  static constexpr int rows = 8, vectors = 1;
};
#elif defined(__AVX2__)
template <>
struct Tile<float> {
  static constexpr int rows = 6, vectors = 1;
};
template <>
struct Tile<double> {
  static constexpr int rows = 3, vectors = 1;
};
#else
template <class T>
struct Tile {
  static constexpr int rows = 4, vectors = 1;
};
#endif
// Packed rows spare instructions where a multiplication reads one element for all lanes by itself; elsewhere
// packing only costs.
#if defined(__AVX512F__)
constexpr bool k_packs_stored_a = true;
#else
constexpr bool k_packs_stored_a = false;
#endif
template <class T>
constexpr int k_tile_columns = Tile<T>::vectors* k_lanes;

#define RANKINE_UNROLL _Pragma("GCC unroll 16")

/// The rows of A of one tile: element (row i, term k). Packed, or where they are.
template <class T, int rows, bool packed>
class TileOfA {
 public:
  RANKINE_INLINE TileOfA(const T* a, std::int64_t) : panel_(a) {}
  RANKINE_INLINE const T* at(int i, std::int64_t k) const { return panel_ + k * rows + i; }
  /// Every other row's elements are read by the multiplication itself: that spares instructions, which are
  /// what a core has too few of when another thread runs on it; with all rows, loads would be too many.
  RANKINE_INLINE static bool fma_reads(int i) { return i % 2 == 1; }

 private:
  const T* panel_;
};
template <class T, int rows>
class TileOfA<T, rows, false> {
 public:
  RANKINE_INLINE TileOfA(const T* a, std::int64_t row) {
    RANKINE_UNROLL for (int i = 0; i < rows; ++i) rows_[i] = a + i * row;
  }
  RANKINE_INLINE const T* at(int i, std::int64_t k) const { return rows_[i] + k; }
  RANKINE_INLINE static bool fma_reads(int) { return false; }

 private:
  const T* rows_[rows];
};

/// Terms of B that are on their way to the first-level cache, which a panel of it doesn't fit into.
constexpr int k_terms_ahead = 16;

template <class T, int rows, int vectors>
struct Accumulators {
  Vec<T> v[rows][vectors];

  template <class F>
  RANKINE_INLINE void each(F&& f) {
    RANKINE_UNROLL for (int i = 0; i < rows; ++i) {
      RANKINE_UNROLL for (int j = 0; j < vectors; ++j) f(v[i][j], i, j);
    }
  }
  /// Terms [first, end); b starts at term `first`.
  template <class A>
  RANKINE_INLINE void chain(const A& a, std::int64_t first, std::int64_t end, const T* b) {
    _Pragma("GCC unroll 2") for (std::int64_t k = first; k < end; ++k) {
      Vec<T> bv[vectors];
      RANKINE_UNROLL for (int j = 0; j < vectors; ++j) bv[j] = Vec<T>::load(b + j * k_lanes);
      RANKINE_UNROLL for (int i = 0; i < rows; ++i) {
        if (A::fma_reads(i)) {
          RANKINE_UNROLL for (int j = 0; j < vectors; ++j) v[i][j] = fma_element(a.at(i, k), bv[j], v[i][j]);
        } else {
          const auto av = Vec<T>::set1(*a.at(i, k));
          RANKINE_UNROLL for (int j = 0; j < vectors; ++j) v[i][j] = fma(av, bv[j], v[i][j]);
        }
      }
      RANKINE_UNROLL for (int j = 0; j < vectors; ++j)
          __builtin_prefetch(b + k_terms_ahead * k_tile_columns<T> + j * k_lanes);
      b += k_tile_columns<T>;
    }
  }
};

/// Where one tile lies in the matrices of a product. The last vector has `last` columns when `partial`.
template <bool partial>
struct Place {
  std::int64_t row, column;
  int last;

  template <class T>
  RANKINE_INLINE T* at(const Rows<T>& m, int i, int j) const {
    return m.data + (row + i) * m.row + column + j * k_lanes;
  }
  template <int vectors, class T>
  RANKINE_INLINE Vec<T> load(const T* p, int j) const {
    return partial && j == vectors - 1 ? Vec<T>::load(p, last) : Vec<T>::load(p);
  }
  template <int vectors, class T>
  RANKINE_INLINE void store(T* p, int j, Vec<T> x) const {
    if (partial && j == vectors - 1) {
      x.store(p, last);
    } else {
      x.store(p);
    }
  }
};

// While chains run, memory is fetched that is needed soon, or stores and packing would wait for it: a few
// lines every few terms, since many at once would keep the panels' lines waiting.
constexpr int k_fetch_every = 16;
constexpr int k_line = 64;

/// The next tile of C, into the first-level cache, a row at a time.
template <class T>
class NextTile {
 public:
  RANKINE_INLINE NextTile(const T* next, std::int64_t row) : row_(next), stride_(row) {}
  RANKINE_INLINE void fetch() {
    if (rows_ == 0) return;
    for (int at = 0; at < k_tile_columns<T>; at += k_line / static_cast<int>(sizeof(T)))
      __builtin_prefetch(row_ + at, 0, 3);
    row_ += stride_;
    --rows_;
  }

 private:
  const T* row_;
  std::int64_t stride_;
  int rows_ = Tile<T>::rows;
};

/// What the next product reads, into the second-level cache. Lives through all tiles of a product.
template <class T>
class AheadLines {
 public:
  /// `fetches` says how often fetch() will be called.
  AheadLines(const Ahead<T> (&ahead)[2], std::int64_t fetches) : matrix_(ahead), end_(ahead + 2) {
    std::int64_t lines = 0;
    for (const Ahead<T>& m : ahead)
      lines += m.rows * (m.columns * static_cast<std::int64_t>(sizeof(T)) / k_line + 1);
    lines_ = lines > 2 * fetches ? 4 : 2;
    take_matrix();
  }
  RANKINE_INLINE void fetch() {
    for (int i = 0; i < lines_ && at_ != nullptr; ++i) {
      __builtin_prefetch(at_, 0, 2);
      at_ += k_line;
      if (at_ >= row_end_) take_row();
    }
  }

 private:
  void take_matrix() {
    while (matrix_ != end_ && (matrix_->rows == 0 || matrix_->columns == 0)) ++matrix_;
    at_ = nullptr;
    if (matrix_ == end_) return;
    row_ = matrix_->from.data;
    rows_ = matrix_->rows;
    take_row();
  }
  RANKINE_INLINE void take_row() {
    if (rows_ == 0) {
      ++matrix_;
      return take_matrix();
    }
    at_ = reinterpret_cast<const char*>(reinterpret_cast<std::uintptr_t>(row_) / k_line * k_line);
    row_end_ = reinterpret_cast<const char*>(row_ + matrix_->columns);
    row_ += matrix_->from.row;
    --rows_;
  }

  const Ahead<T>*matrix_, *end_;
  const char *at_ = nullptr, *row_end_ = nullptr;  ///< in the row that is being fetched
  const T* row_ = nullptr;                         ///< the one after it
  std::int64_t rows_ = 0;                          ///< that are left of the matrix
  int lines_ = 1;
};

/// What a tile is called with besides the product.
template <class T>
struct TileCall {
  std::int64_t row, column;
  int columns;
  const T *a, *b;  ///< its rows of A, its panel of B
  const T* next;   ///< the tile of C that is stored after this one
  AheadLines<T>& ahead;
};

template <class T, int rows, int vectors, bool partial>
RANKINE_INLINE void finish(const PanelProduct<T>& p, Place<partial> place,
                           Accumulators<T, rows, vectors>& acc) {
  for (int s = 0; s < p.source_count; ++s) {
    const Rows<const T> source = p.sources[s];
    acc.each(
        [&](Vec<T>& x, int i, int j) { x = place.template load<vectors>(place.at(source, i, j), j) + x; });
  }
  if (p.bias != nullptr) {
    const T* bias = p.bias + place.column;
    acc.each([&](Vec<T>& x, int, int j) { x = x + place.template load<vectors>(bias + j * k_lanes, j); });
  }
  if (p.accumulate) {
    acc.each([&](Vec<T>& x, int i, int j) {
      x = place.template load<vectors>(static_cast<const T*>(place.at(p.out, i, j)), j) + x;
    });
  }
  acc.each([&](Vec<T>& x, int i, int j) { place.template store<vectors>(place.at(p.out, i, j), j, x); });
}

template <class T, int rows, int vectors, bool partial, bool packed>
void tile(const PanelProduct<T>& p, const TileCall<T>& call) {
  const Place<partial> place{call.row, call.column, call.columns - (vectors - 1) * k_lanes};
  const TileOfA<T, rows, packed> a(call.a, p.a.row);
  const T* b = call.b;
  Accumulators<T, rows, vectors> acc;
  NextTile<T> next(call.next, p.out.row);
  alignas(64) T stack[k_tile_stack][rows * vectors * k_lanes];
  acc.each([](Vec<T>& x, int, int) { x = Vec<T>::zero(); });
  if (p.carry.data != nullptr) {
    acc.each([&](Vec<T>& x, int i, int j) { x = place.template load<vectors>(place.at(p.carry, i, j), j); });
  }
  int depth = 0;
  std::int64_t k = 0;
  for (int n = 0; n < p.piece_count; ++n) {
    const LeafPiece piece = p.pieces[n];
    for (const std::int64_t end = k + piece.terms; k < end;) {
      const std::int64_t stop = end - k < k_fetch_every ? end : k + k_fetch_every;
      acc.chain(a, k, stop, b);
      b += (stop - k) * k_tile_columns<T>;
      k = stop;
      next.fetch();
      call.ahead.fetch();
    }
    for (int fold = 0; fold < piece.folds; ++fold) {
      const T* top = stack[--depth];
      acc.each([&](Vec<T>& x, int i, int j) { x = Vec<T>::load(top + (i * vectors + j) * k_lanes) + x; });
    }
    if (n + 1 < p.piece_count) {
      T* top = stack[depth++];
      acc.each([&](Vec<T>& x, int i, int j) { x.store(top + (i * vectors + j) * k_lanes); });
      acc.each([](Vec<T>& x, int, int) { x = Vec<T>::zero(); });
    }
  }
  finish(p, place, acc);
}

}  // namespace rankine::RANKINE_ISA
