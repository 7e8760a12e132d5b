// Compiled once an instruction set. See gemm_kernels.hpp for what each function does.

#include "runtime/arithmetic/gemm_kernels.hpp"

#include "runtime/arithmetic/gemm_tile.hpp"

namespace rankine::RANKINE_ISA {
namespace {

RANKINE_INLINE std::int64_t ceil_divide(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// Calls f(first column, columns) for each panel of B. Panels have the vectors of a tile; where one vector
/// would be left over, the last two share what is left, since a tile of one vector is slow.
template <class T, class F>
RANKINE_INLINE void each_panel(std::int64_t columns, F&& f) {
  constexpr int vectors = Tile<T>::vectors;
  for (std::int64_t at = 0; at < columns;) {
    const std::int64_t left = ceil_divide(columns - at, k_lanes);
    const std::int64_t width = (left == vectors + 1 ? (left + 1) / 2
                                : left < vectors    ? left
                                                    : vectors) *
                               k_lanes;
    const std::int64_t end = at + width < columns ? at + width : columns;
    f(at, static_cast<int>(end - at));
    at = end;
  }
}

// Tiles with fewer rows or vectors than the full one: one function each, chosen by number.
template <class T>
using TileFunction = void (*)(const PanelProduct<T>&, const TileCall<T>&);

template <class T, bool packed, int rows, int vectors>
TileFunction<T> partial_tile(int wanted_rows, int wanted_vectors) {
  if constexpr (rows > 1) {
    if (wanted_rows < rows) return partial_tile<T, packed, rows - 1, vectors>(wanted_rows, wanted_vectors);
  }
  if constexpr (vectors > 1) {
    if (wanted_vectors < vectors) return partial_tile<T, packed, rows, vectors - 1>(rows, wanted_vectors);
  }
  return tile<T, rows, vectors, true, packed>;
}
template <class T, bool packed>
TileFunction<T> tile_function(int rows, int columns) {
  constexpr int most_rows = Tile<T>::rows, vectors = Tile<T>::vectors;
  if (rows == most_rows && columns == k_tile_columns<T>) return tile<T, most_rows, vectors, false, packed>;
  return partial_tile<T, packed, most_rows, vectors>(rows, static_cast<int>(ceil_divide(columns, k_lanes)));
}

template <class T, bool packed>
void multiply_tiles(const PanelProduct<T>& p) {
  constexpr int tile_rows = Tile<T>::rows;
  const std::int64_t next_rows = tile_rows * (packed ? p.terms : p.a.row);
  AheadLines<T> ahead(p.ahead, ceil_divide(p.rows, tile_rows) * ceil_divide(p.columns, k_tile_columns<T>) *
                                   ceil_divide(p.terms, k_fetch_every));
  const T* b = p.b;
  each_panel<T>(p.b_columns, [&](std::int64_t column, int packed_columns) {
    if (column >= p.columns) return;
    const int columns =
        static_cast<int>(p.columns - column < packed_columns ? p.columns - column : packed_columns);
    const TileFunction<T> full = tile_function<T, packed>(tile_rows, columns);
    TileCall<T> call{0, column, columns, p.a.data, b, nullptr, ahead};
    for (; call.row < p.rows; call.row += tile_rows) {
      const std::int64_t left = p.rows - call.row;
      call.next = left > tile_rows ? p.out.data + (call.row + tile_rows) * p.out.row + column
                                   : p.out.data + column + columns;
      const TileFunction<T> run =
          left >= tile_rows ? full : tile_function<T, packed>(static_cast<int>(left), columns);
      run(p, call);
      call.a += next_rows;
    }
    b += p.b_panel;
  });
}

template <class T>
void multiply(const PanelProduct<T>& p) {
  p.a_packed ? multiply_tiles<T, true>(p) : multiply_tiles<T, false>(p);
}

// packed[k * width + i] = from[i][k] for i < count <= 16 and k < terms, zeros for i in [count, 16).
template <class T>
void pack_across(Rows<const T> from, int count, std::int64_t terms, int width, T* packed) {
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
      RANKINE_UNROLL for (int i = 0; i < k_lanes; ++i) block[i].store(packed + (k + i) * width);
    } else {
      alignas(64) T rest[k_lanes][k_lanes];
      RANKINE_UNROLL for (int i = 0; i < k_lanes; ++i) block[i].store(rest[i]);
      for (int i = 0; i < left; ++i) Vec<T>::load(rest[i]).store(packed + (k + i) * width);
    }
  }
}

/// Copies `terms` rows of `count` elements; `stored` of them are written, the others are zeros.
template <class T>
RANKINE_INLINE void copy_rows(Rows<const T> from, int count, std::int64_t terms, Rows<T> to, int stored) {
  for (std::int64_t k = 0; k < terms; ++k) {
    const T* source = from.data + k * from.row;
    T* target = to.data + k * to.row;
    for (int i = 0; i < stored; i += k_lanes)
      Vec<T>::load(source + i, count - i).store(target + i, stored - i);
  }
}

// Of an A that is stored [terms, rows]: several panels at a time, so that whole cache lines are read at once.
template <class T>
void pack_a_transposed(Rows<const T> a, std::int64_t rows, std::int64_t terms, T* packed) {
  constexpr int width = Tile<T>::rows, run = 4;
  std::int64_t i = 0;
  for (; i + run * width <= rows; i += run * width) {
    T* to = packed + i * terms;
    for (std::int64_t k = 0; k < terms; ++k) {
      const T* row = a.data + k * a.row + i;
      RANKINE_UNROLL for (int panel = 0; panel < run; ++panel) {
        __builtin_memcpy(to + (panel * terms + k) * width, row + panel * width, width * sizeof(T));
      }
    }
  }
  for (; i < rows; i += width) {
    const int count = rows - i < width ? static_cast<int>(rows - i) : width;
    copy_rows<T>({a.data + i, a.row}, count, terms, {packed + i * terms, count}, count);
  }
}

// Of an A that is stored [rows, terms]: as many whole panels as sixteen rows hold are turned together.
template <class T>
void pack_a_stored(Rows<const T> a, std::int64_t rows, std::int64_t terms, T* packed) {
  constexpr int width = Tile<T>::rows, run = k_lanes / width * width, most_terms = 64;
  alignas(64) T turned[most_terms * k_lanes];
  for (std::int64_t i = 0; i < rows; i += run) {
    const int count = rows - i < run ? static_cast<int>(rows - i) : run;
    for (std::int64_t k = 0; k < terms; k += most_terms) {
      const std::int64_t some = terms - k < most_terms ? terms - k : most_terms;
      pack_across<T>({a.data + i * a.row + k, a.row}, count, some, k_lanes, turned);
      for (int panel = 0; panel < count; panel += width) {
        const int panel_rows = count - panel < width ? count - panel : width;
        T* to = packed + (i + panel) * terms + k * panel_rows;
        if (panel_rows < width) {
          copy_rows<T>({turned + panel, k_lanes}, panel_rows, some, {to, panel_rows}, panel_rows);
          continue;
        }
        for (std::int64_t j = 0; j < some; ++j)
          __builtin_memcpy(to + j * width, turned + j * k_lanes + panel, width * sizeof(T));
      }
    }
  }
}

template <class T>
void pack_a(bool transposed, Rows<const T> a, std::int64_t rows, std::int64_t terms, T* packed) {
  transposed ? pack_a_transposed(a, rows, terms, packed) : pack_a_stored(a, rows, terms, packed);
}

template <class T>
void pack_b(bool transposed, Rows<const T> b, std::int64_t terms, std::int64_t columns, T* packed) {
  constexpr int width = k_tile_columns<T>;
  each_panel<T>(columns, [&](std::int64_t column, int count) {
    if (transposed) {
      for (int j = 0; j < count; j += k_lanes) {
        const Rows<const T> from{b.data + (column + j) * b.row, b.row};
        pack_across(from, count - j < k_lanes ? count - j : k_lanes, terms, width, packed + j);
      }
    } else if (count == width) {
      copy_rows<T>({b.data + column, b.row}, width, terms, {packed, width}, width);
    } else {
      const int stored = static_cast<int>(ceil_divide(count, k_lanes)) * k_lanes;
      copy_rows<T>({b.data + column, b.row}, count, terms, {packed, width}, stored);
    }
    packed += width * terms;
  });
}

template <class T>
void fill_for(GemmKernels<T>& kernels) {
  kernels = {Tile<T>::rows, k_tile_columns<T>, k_packs_stored_a, pack_a<T>, pack_b<T>, multiply<T>};
}

}  // namespace

void fill(GemmKernels<float>& kernels) {
  fill_for(kernels);
}
void fill(GemmKernels<double>& kernels) {
  fill_for(kernels);
}

}  // namespace rankine::RANKINE_ISA
