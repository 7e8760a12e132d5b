#pragma once

#include <cstdint>

/// The inner parts of the matrix product, one set of functions an instruction set. Who calls them: gemm.cpp
/// and the attention kernels.
namespace rankine {

/// A run of terms of one leaf inside a chunk of packed panels, and how many of the chunk's own partial sums
/// are folded into it once its chain is done.
struct LeafPiece {
  std::int32_t terms = 0;
  std::int32_t folds = 0;
};

/// Partial sums of one tile that may wait at once while a chunk is multiplied.
inline constexpr int k_tile_stack = 8;
/// Partial sums in memory that the last piece of a chunk may fold.
inline constexpr int k_max_sources = 40;

/// A matrix whose rows lie `row` elements apart.
template <class T>
struct Rows {
  T* data = nullptr;
  std::int64_t row = 0;
};

/// A matrix whose lines are fetched into the second-level cache while something else is multiplied.
template <class T>
struct Ahead {
  Rows<const T> from;
  std::int64_t rows = 0, columns = 0;
};

/// out[rows, columns] = the value of one chunk of leaves: rows of A times panels of B.
///   acc = chain of each piece (the first goes on from `carry`, the others start at +0);
///   a piece's folds pop the chunk's own stack, then it is pushed; the last one folds sources[0], [1], ...
///   (each from the left), then acc = acc + bias, then out = old + acc with `accumulate`, else out = acc.
template <class T>
struct PanelProduct {
  std::int64_t rows = 0, columns = 0, terms = 0;
  Rows<const T> a;  ///< op(A) where it is, or the panels that pack_a made of it
  bool a_packed = false;
  const T* b = nullptr;        ///< packed by pack_b
  std::int64_t b_columns = 0;  ///< as packed; `columns` may be fewer
  std::int64_t b_panel = 0;    ///< elements between panels of b: tile_columns times the terms packed
  const LeafPiece* pieces = nullptr;
  int piece_count = 0;
  Rows<const T> carry;
  Rows<const T> sources[k_max_sources];
  int source_count = 0;
  const T* bias = nullptr;
  bool accumulate = false;
  Rows<T> out;
  Ahead<T> ahead[2];  ///< what will be read next; as much of it as there is time for, in order
};

template <class T>
struct GemmKernels {
  int tile_rows = 0, tile_columns = 0;
  /// A wide product is faster when a stored A is packed first, too.
  bool packs_stored_a = false;
  /// Packs op(A)[rows, terms] as panels of tile_rows rows (the last one narrower), each [terms][rows of
  /// panel]. `transposed`: A is stored [terms, rows]; otherwise it may be multiplied where it is as well.
  void (*pack_a)(bool transposed, Rows<const T> a, std::int64_t rows, std::int64_t terms,
                 T* packed) = nullptr;
  /// Packs op(B)[terms, columns] as panels of at most tile_columns columns, each [terms][tile_columns], zeros
  /// up to the next sixteen columns. There are as many panels as if all but the last were full. `transposed`:
  /// B is stored [columns, terms].
  void (*pack_b)(bool transposed, Rows<const T> b, std::int64_t terms, std::int64_t columns,
                 T* packed) = nullptr;
  void (*multiply)(const PanelProduct<T>& product) = nullptr;
};

#ifdef RANKINE_ISA
namespace RANKINE_ISA {
void fill(GemmKernels<float>& kernels);
void fill(GemmKernels<double>& kernels);
}  // namespace RANKINE_ISA
#endif

}  // namespace rankine
