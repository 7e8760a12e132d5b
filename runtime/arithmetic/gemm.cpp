#include "runtime/arithmetic/gemm.hpp"

#include <algorithm>
#include <cassert>

namespace rankine {
namespace {

constexpr std::int64_t k_block_columns = 2048;
/// Multiply-adds below which waking threads costs more than it saves.
constexpr std::int64_t k_worth_sharing = std::int64_t{1} << 18;

std::int64_t ceil_divide(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}
std::int64_t round_up(std::int64_t a, std::int64_t b) {
  return ceil_divide(a, b) * b;
}
/// The block size at most `most` that cuts n into equal blocks of whole tiles.
std::int64_t even_block(std::int64_t n, std::int64_t most, std::int64_t tile) {
  const std::int64_t blocks = std::max<std::int64_t>(1, ceil_divide(n, most));
  return round_up(std::max<std::int64_t>(1, ceil_divide(n, blocks)), tile);
}

/// One part of C, worked off by one thread.
template <class T>
class Part {
 public:
  Part(const GemmKernels<T>& kernels, const Gemm& product, const ChunkPlan& plan, GemmWorkspace::Area& area)
      : kernels_(kernels), g_(product), plan_(plan), area_(area) {}

  void multiply(Range rows, Range columns) {
    const std::int64_t columns_block = even_block(columns.size(), k_block_columns, kernels_.tile_columns);
    for (std::int64_t j = columns.begin; j < columns.end; j += columns_block) {
      const Range block{j, std::min(columns.end, j + columns_block)};
      take_memory(rows, block);
      for (const Chunk& chunk : plan_.chunks()) multiply_chunk(chunk, rows, block);
    }
  }

 private:
  void take_memory(Range rows, Range columns) {
    std::int64_t terms = 0;
    for (const Chunk& chunk : plan_.chunks()) terms = std::max(terms, chunk.terms.size());
    rows_block_ =
        even_block(rows.size(), std::max<std::int64_t>(k_block_rows, kernels_.tile_rows), kernels_.tile_rows);
    a_ = area_.a.get<T>(static_cast<std::size_t>(rows_block_ * terms));
    b_ = area_.b.get<T>(static_cast<std::size_t>(round_up(columns.size(), kernels_.tile_columns) * terms));
    slot_size_ = rows.size() * columns.size();
    // C itself is slot 0, unless its old elements are still needed.
    const int slots = plan_.slots() - 1 + (needs_slot_0() ? 1 : 0);
    slots_ = area_.slots.get<T>(static_cast<std::size_t>(slot_size_ * slots));
    first_slot_ = needs_slot_0() ? 0 : 1;
  }
  bool needs_slot_0() const { return g_.accumulate && plan_.chunks().size() > 1; }

  /// Slot `index` of the block whose first element is C[rows.begin, columns.begin].
  Rows<T> slot(int index, Range rows, Range columns) const {
    if (index < first_slot_) return c(rows, columns);
    return {slots_ + (index - first_slot_) * slot_size_, columns.size()};
  }
  Rows<T> c(Range rows, Range columns) const {
    return {static_cast<T*>(g_.c) + rows.begin * g_.ldc + columns.begin, g_.ldc};
  }
  Rows<const T> operand(const void* data, std::int64_t ld, bool transposed, std::int64_t row,
                        std::int64_t column) const {
    return {static_cast<const T*>(data) + (transposed ? column * ld + row : row * ld + column), ld};
  }

  void multiply_chunk(const Chunk& chunk, Range rows, Range columns) {
    const bool last = &chunk == &plan_.chunks().back();
    PanelProduct<T> p;
    p.columns = columns.size();
    p.terms = chunk.terms.size();
    p.a = a_;
    p.b = b_;
    p.b_panel = kernels_.tile_columns * p.terms;
    p.pieces = plan_.pieces(chunk).data();
    p.piece_count = chunk.pieces;
    p.source_count = chunk.folds;
    if (last && g_.bias != nullptr) p.bias = static_cast<const T*>(g_.bias) + columns.begin;
    p.accumulate = last && g_.accumulate;
    kernels_.pack_b(g_.transpose_b, operand(g_.b, g_.ldb, g_.transpose_b, chunk.terms.begin, columns.begin),
                    p.terms, p.columns, b_);
    for (std::int64_t i = rows.begin; i < rows.end; i += rows_block_) {
      p.rows = std::min(rows_block_, rows.end - i);
      kernels_.pack_a(g_.transpose_a, operand(g_.a, g_.lda, g_.transpose_a, i, chunk.terms.begin), p.rows,
                      p.terms, a_);
      const auto at = [&](Rows<T> block) {
        return Rows<T>{block.data + (i - rows.begin) * block.row, block.row};
      };
      const auto source = [&](int index) {
        const Rows<T> block = at(slot(index, rows, columns));
        return Rows<const T>{block.data, block.row};
      };
      if (chunk.continues) p.carry = source(chunk.store + chunk.folds);
      for (int f = 0; f < chunk.folds; ++f) p.sources[f] = source(chunk.store + chunk.folds - 1 - f);
      p.out = at(last ? c(rows, columns) : slot(chunk.store, rows, columns));
      kernels_.multiply(p);
    }
  }

  const GemmKernels<T>& kernels_;
  const Gemm& g_;
  const ChunkPlan& plan_;
  GemmWorkspace::Area& area_;
  std::int64_t rows_block_ = 0, slot_size_ = 0;
  T *a_ = nullptr, *b_ = nullptr, *slots_ = nullptr;
  int first_slot_ = 0;
};

Gemm batch_item(const Gemm& product, std::int64_t index) {
  const auto moved = [&](const void* data, std::int64_t stride) {
    return static_cast<const std::byte*>(data) +
           index * stride * static_cast<std::int64_t>(size_of(product.dtype));
  };
  Gemm item = product;
  item.a = moved(product.a, product.stride_a);
  item.b = moved(product.b, product.stride_b);
  item.c = const_cast<std::byte*>(moved(product.c, product.stride_c));
  return item;
}

/// Part `index` of `parts` near-equal runs of whole tiles of [0, n).
Range tiles_of(std::int64_t n, std::int64_t tile, std::int64_t parts, std::int64_t index) {
  const std::int64_t tiles = ceil_divide(n, tile);
  return {std::min(n, tiles * index / parts * tile), std::min(n, tiles * (index + 1) / parts * tile)};
}

}  // namespace

template <class T>
void gemm(const KernelTable<T>& table, const Gemm& product, ThreadPool& pool, GemmWorkspace& workspace) {
  assert(product.dtype == dtype_of<T> && product.k_leaves.extent == product.k);
  if (product.m == 0 || product.n == 0 || product.batch == 0) return;
  const ChunkPlan& plan = workspace.plans().get(product.k_leaves, k_block_terms<T>);

  // Threads take samples of the batch, or runs of rows or columns, whichever are more.
  const bool share = product.batch * product.m * product.n * product.k >= k_worth_sharing;
  const std::int64_t parts =
      share ? ceil_divide(pool.threads(), std::min<std::int64_t>(product.batch, pool.threads())) : 1;
  const bool by_rows = product.m >= product.n;
  const auto one = [&](std::int64_t item, int worker) {
    const Gemm single = batch_item(product, item / parts);
    const std::int64_t index = item % parts;
    Range rows{0, product.m}, columns{0, product.n};
    (by_rows ? rows : columns) = by_rows ? tiles_of(product.m, table.gemm.tile_rows, parts, index)
                                         : tiles_of(product.n, table.gemm.tile_columns, parts, index);
    if (rows.size() == 0 || columns.size() == 0) return;
    Part<T>(table.gemm, single, plan, workspace.area(worker)).multiply(rows, columns);
  };
  if (share) {
    pool.parallel_for(product.batch * parts, one);
  } else {
    for (std::int64_t item = 0; item < product.batch; ++item) one(item, 0);
  }
}
template void gemm<float>(const KernelTable<float>&, const Gemm&, ThreadPool&, GemmWorkspace&);
template void gemm<double>(const KernelTable<double>&, const Gemm&, ThreadPool&, GemmWorkspace&);

}  // namespace rankine
