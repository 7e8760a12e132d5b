// Compiled once an instruction set. See gemm_kernels.hpp for what each function does.

#include "runtime/arithmetic/gemm_kernels.hpp"

#include "runtime/arithmetic/simd.hpp"

namespace rankine::RANKINE_ISA {
namespace {

// Accumulators of one tile fill the registers: 28 of 32, 12 of 16.
template <class T>
struct Tile;
#if defined(__AVX512F__)
template <>
struct Tile<float> {
  static constexpr int rows = 14, vectors = 2;
};
template <>
struct Tile<double> {
  static constexpr int rows = 14, vectors = 1;
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
template <class T>
constexpr int k_tile_columns = Tile<T>::vectors* k_lanes;

#define RANKINE_UNROLL _Pragma("GCC unroll 16")

template <class T, int rows, int vectors>
struct Accumulators {
  Vec<T> v[rows][vectors];

  template <class F>
  RANKINE_INLINE void each(F&& f) {
    RANKINE_UNROLL for (int i = 0; i < rows; ++i) {
      RANKINE_UNROLL for (int j = 0; j < vectors; ++j) f(v[i][j], i, j);
    }
  }
  RANKINE_INLINE void chain(const T* a, const T* b, int terms) {
    for (int k = 0; k < terms; ++k) {
      Vec<T> bv[vectors];
      RANKINE_UNROLL for (int j = 0; j < vectors; ++j) bv[j] = Vec<T>::load(b + j * k_lanes);
      RANKINE_UNROLL for (int i = 0; i < rows; ++i) {
        const auto av = Vec<T>::set1(a[i]);
        RANKINE_UNROLL for (int j = 0; j < vectors; ++j) v[i][j] = fma(av, bv[j], v[i][j]);
      }
      a += rows;
      b += k_tile_columns<T>;
    }
  }
};

// Where one tile lies in the matrices of a product. The last vector has `last` columns when `partial`.
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

// The next tile of C comes from memory while the chains of this one run, or its stores would wait for their
// lines: one line every few terms, since many at once would keep the panels' lines waiting.
constexpr int k_prefetch_every = 8;
template <class T>
class Prefetch {
 public:
  RANKINE_INLINE Prefetch(Rows<T> out, const T* next)
      : row_(reinterpret_cast<const char*>(next)), stride_(out.row * static_cast<std::int64_t>(sizeof(T))) {}
  RANKINE_INLINE void next() {
    if (rows_ == 0) return;
    __builtin_prefetch(row_ + at_, 1, 3);
    at_ += k_line;
    if (at_ < k_tile_columns<T> * static_cast<int>(sizeof(T))) return;
    at_ = 0;
    row_ += stride_;
    --rows_;
  }

 private:
  static constexpr int k_line = 64;
  const char* row_;
  std::int64_t stride_;
  int rows_ = Tile<T>::rows, at_ = 0;
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

template <class T, int rows, int vectors, bool partial>
void tile(const PanelProduct<T>& p, std::int64_t row, std::int64_t column, int columns, const T* a,
          const T* b, const T* next) {
  const Place<partial> place{row, column, columns - (vectors - 1) * k_lanes};
  Accumulators<T, rows, vectors> acc;
  Prefetch<T> prefetch(p.out, next);
  alignas(64) T stack[k_tile_stack][rows * vectors * k_lanes];
  acc.each([](Vec<T>& x, int, int) { x = Vec<T>::zero(); });
  if (p.carry.data != nullptr) {
    acc.each([&](Vec<T>& x, int i, int j) { x = place.template load<vectors>(place.at(p.carry, i, j), j); });
  }
  int depth = 0;
  for (int n = 0; n < p.piece_count; ++n) {
    const LeafPiece piece = p.pieces[n];
    for (std::int32_t left = piece.terms; left > 0; left -= k_prefetch_every) {
      const int terms = left < k_prefetch_every ? left : k_prefetch_every;
      acc.chain(a, b, terms);
      a += terms * rows;
      b += terms * k_tile_columns<T>;
      prefetch.next();
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

// Tiles with fewer rows or vectors than the full one: one function each, chosen by number.
template <class T>
using TileFunction = void (*)(const PanelProduct<T>&, std::int64_t, std::int64_t, int, const T*, const T*,
                              const T*);

template <class T, int rows>
RANKINE_INLINE TileFunction<T> tile_function(int wanted_rows, int columns) {
  if constexpr (rows > 1) {
    if (wanted_rows < rows) return tile_function<T, rows - 1>(wanted_rows, columns);
  }
  if constexpr (Tile<T>::vectors == 2) {
    if (columns < k_lanes) return tile<T, rows, 1, true>;
    if (columns == k_lanes) return tile<T, rows, 1, false>;
  }
  return columns < k_tile_columns<T> ? tile<T, rows, Tile<T>::vectors, true>
                                     : tile<T, rows, Tile<T>::vectors, false>;
}

template <class T>
void multiply(const PanelProduct<T>& p) {
  constexpr int tile_rows = Tile<T>::rows;
  const T* b = p.b;
  for (std::int64_t column = 0; column < p.columns; column += k_tile_columns<T>) {
    const std::int64_t columns_left = p.columns - column;
    const int columns = columns_left < k_tile_columns<T> ? static_cast<int>(columns_left) : k_tile_columns<T>;
    const TileFunction<T> full = tile_function<T, tile_rows>(tile_rows, columns);
    const T* a = p.a;
    for (std::int64_t row = 0; row < p.rows; row += tile_rows) {
      const std::int64_t rows_left = p.rows - row;
      const T* next = rows_left > tile_rows ? p.out.data + (row + tile_rows) * p.out.row + column
                                            : p.out.data + column + k_tile_columns<T>;
      if (rows_left >= tile_rows) {
        full(p, row, column, columns, a, b, next);
      } else {
        tile_function<T, tile_rows>(static_cast<int>(rows_left), columns)(p, row, column, columns, a, b,
                                                                          next);
      }
      a += tile_rows * p.terms;
    }
    b += p.b_panel;
  }
}

// packed[k * width + i] = from[i][k] for i < count <= 16 and k < terms. Lanes [count, lanes) get zeros.
template <class T>
void pack_across(Rows<const T> from, int count, std::int64_t terms, int width, int lanes, T* packed) {
  for (std::int64_t k = 0; k < terms; k += k_lanes) {
    const int left = terms - k < k_lanes ? static_cast<int>(terms - k) : k_lanes;
    Vec<T> block[k_lanes];
    if (left == k_lanes && count == k_lanes) {
      RANKINE_UNROLL for (int i = 0; i < k_lanes; ++i) block[i] = Vec<T>::load(from.data + i * from.row + k);
    } else {
      RANKINE_UNROLL for (int i = 0; i < k_lanes; ++i) {
        block[i] = Vec<T>::load(from.data + i * from.row + k, i < count ? left : 0);
      }
    }
    transpose(block);
    if (left == k_lanes) {
      RANKINE_UNROLL for (int i = 0; i < k_lanes; ++i) block[i].store(packed + (k + i) * width, lanes);
    } else {
      alignas(64) T rest[k_lanes][k_lanes];
      RANKINE_UNROLL for (int i = 0; i < k_lanes; ++i) block[i].store(rest[i]);
      for (int i = 0; i < left; ++i) Vec<T>::load(rest[i]).store(packed + (k + i) * width, lanes);
    }
  }
}

// packed panels of `width` columns from a matrix that is stored [terms, columns]; each k reads runs of eight
// panels, so that rows come from memory in long pieces. Columns [n, width) of a panel get zeros with `pad`.
template <class T, int width>
void pack_along(Rows<const T> from, std::int64_t terms, std::int64_t columns, bool pad, T* packed) {
  constexpr int k_run = 8, k_ahead = 4;
  constexpr int vectors = (width + k_lanes - 1) / k_lanes;
  constexpr int last = width - (vectors - 1) * k_lanes;
  const std::int64_t full = columns / width;
  for (std::int64_t panel = 0; panel < full; panel += k_run) {
    const int run = full - panel < k_run ? static_cast<int>(full - panel) : k_run;
    const T* row = from.data + panel * width;
    T* to = packed + panel * width * terms;
    for (std::int64_t k = 0; k < terms; ++k) {
      for (int q = 0; q < run; ++q) {
        RANKINE_UNROLL for (int j = 0; j < vectors; ++j) {
          const T* p = row + q * width + j * k_lanes;
          __builtin_prefetch(p + k_ahead * from.row);
          T* t = to + q * width * terms + j * k_lanes;
          if (j == vectors - 1 && last < k_lanes) {
            Vec<T>::load(p, last).store(t, last);
          } else {
            Vec<T>::load(p).store(t);
          }
        }
      }
      row += from.row;
      to += width;
    }
  }
  const int rest = static_cast<int>(columns - full * width);
  if (rest == 0) return;
  const int stride = pad ? width : rest;
  const T* row = from.data + full * width;
  T* to = packed + full * width * terms;
  for (std::int64_t k = 0; k < terms; ++k) {
    RANKINE_UNROLL for (int j = 0; j < vectors; ++j) {
      Vec<T>::load(row + j * k_lanes, rest - j * k_lanes).store(to + j * k_lanes, stride - j * k_lanes);
    }
    row += from.row;
    to += stride;
  }
}

template <class T>
void pack_a(bool transposed, Rows<const T> a, std::int64_t rows, std::int64_t terms, T* packed) {
  constexpr int width = Tile<T>::rows;
  if (transposed) return pack_along<T, width>(a, terms, rows, false, packed);
  for (std::int64_t i = 0; i < rows; i += width) {
    const int count = rows - i < width ? static_cast<int>(rows - i) : width;
    pack_across(Rows<const T>{a.data + i * a.row, a.row}, count, terms, count, count, packed);
    packed += count * terms;
  }
}

template <class T>
void pack_b(bool transposed, Rows<const T> b, std::int64_t terms, std::int64_t columns, T* packed) {
  constexpr int width = k_tile_columns<T>;
  if (!transposed) return pack_along<T, width>(b, terms, columns, true, packed);
  for (std::int64_t j = 0; j < columns; j += width) {
    for (int part = 0; part < width; part += k_lanes) {
      const std::int64_t left = columns - j - part;
      const int count = left < 0 ? 0 : left < k_lanes ? static_cast<int>(left) : k_lanes;
      pack_across(Rows<const T>{b.data + (j + part) * b.row, b.row}, count, terms, width, k_lanes,
                  packed + part);
    }
    packed += width * terms;
  }
}

template <class T>
void fill_for(GemmKernels<T>& kernels) {
  kernels = {Tile<T>::rows, k_tile_columns<T>, pack_a<T>, pack_b<T>, multiply<T>};
}

}  // namespace

void fill(GemmKernels<float>& kernels) {
  fill_for(kernels);
}
void fill(GemmKernels<double>& kernels) {
  fill_for(kernels);
}

}  // namespace rankine::RANKINE_ISA
