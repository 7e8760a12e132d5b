#include "runtime/arithmetic/gemm.hpp"

#include <algorithm>
#include <cassert>

namespace rankine {
namespace {

// Blocks, measured on shapes of a GPT; they don't change bits. Rows of a packed block of A are few, so that
// the rows of C which a block touches stay in the TLB.
constexpr std::int64_t k_block_rows = 64;
// Columns of a packed block of B: wide where A passes, narrow enough for the second-level cache where B
// passes.
constexpr std::int64_t k_block_columns = 1024;
constexpr std::int64_t k_passing_columns = 128;
// Rows up to which all of A is packed at once.
constexpr std::int64_t k_few_rows = 256;
/// Columns from which on each element of a stored A is used often enough to be packed first.
constexpr std::int64_t k_worth_packing = 192;
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

/// `range` in blocks of `size`; the last may be short.
class Blocks {
 public:
  class Iterator {
   public:
    Iterator(std::int64_t at, std::int64_t end, std::int64_t size) : at_(at), end_(end), size_(size) {}
    Range operator*() const { return {at_, std::min(end_, at_ + size_)}; }
    void operator++() { at_ = std::min(end_, at_ + size_); }
    bool operator!=(const Iterator& other) const { return at_ != other.at_; }

   private:
    std::int64_t at_, end_, size_;
  };
  Blocks(Range range, std::int64_t size) : range_(range), size_(size) {}
  Iterator begin() const { return {range_.begin, range_.end, size_}; }
  Iterator end() const { return {range_.end, range_.end, size_}; }

 private:
  Range range_;
  std::int64_t size_;
};

/// One part of C, worked off by one thread.
template <class T>
class Part {
 public:
  Part(const GemmKernels<T>& kernels, const Gemm& product, const ChunkPlan& plan, GemmWorkspace::Area& area)
      : kernels_(kernels), g_(product), plan_(plan), area_(area) {}

  /// With few rows all of A stays while B passes through the second-level cache; otherwise B is packed in
  /// wide blocks and A passes through.
  void multiply(Range rows, Range columns) {
    const bool few_rows = rows.size() <= k_few_rows;
    const std::int64_t rows_block =
        few_rows ? rows.size() : even_block(rows.size(), k_block_rows, kernels_.tile_rows);
    const std::int64_t columns_block =
        even_block(columns.size(), few_rows ? k_passing_columns : k_block_columns, kernels_.tile_columns);
    std::int64_t terms = 0;
    for (const Chunk& chunk : plan_.chunks()) terms = std::max(terms, chunk.terms.size());
    pack_a_ = g_.transpose_a || (kernels_.packs_stored_a && columns.size() >= k_worth_packing);
    if (pack_a_) a_ = area_.a.get<T>(static_cast<std::size_t>(rows_block * terms));
    b_ = area_.b.get<T>(static_cast<std::size_t>(columns_block * terms));
    for (const Range wide : Blocks(columns, few_rows ? columns.size() : columns_block)) {
      take_slots(rows, wide);
      list_steps(rows, rows_block, wide, columns_block);
      for (std::size_t i = 0; i < area_.steps.size(); ++i) {
        const GemmStep& step = area_.steps[i];
        if (step.new_a && pack_a_) pack_a(step);
        if (step.new_b) pack_b(step);
        multiply_packed(step, i + 1 < area_.steps.size() ? &area_.steps[i + 1] : nullptr);
      }
    }
  }

 private:
  void list_steps(Range rows, std::int64_t rows_block, Range columns, std::int64_t columns_block) {
    area_.steps.clear();
    for (const Chunk& chunk : plan_.chunks()) {
      for (const Range block : Blocks(columns, columns_block)) {
        for (const Range part : Blocks(rows, rows_block)) {
          const GemmStep* last = area_.steps.empty() ? nullptr : &area_.steps.back();
          const bool new_chunk = last == nullptr || last->chunk != &chunk;
          area_.steps.push_back({&chunk, part, block, new_chunk || !(last->rows == part),
                                 new_chunk || !(last->columns == block)});
        }
      }
    }
  }

  /// C itself is slot 0, unless its old elements are still needed.
  void take_slots(Range rows, Range columns) {
    first_slot_ = g_.accumulate && plan_.chunks().size() > 1 ? 0 : 1;
    slot_rows_ = rows;
    slot_columns_ = columns;
    slots_ = area_.slots.get<T>(
        static_cast<std::size_t>(rows.size() * columns.size() * (plan_.slots() - first_slot_)));
  }
  /// Slot `index` from element [row, column] of C on.
  Rows<T> slot(int index, std::int64_t row, std::int64_t column) const {
    if (index < first_slot_) return c(row, column);
    const std::int64_t width = slot_columns_.size();
    const std::int64_t first_row = (index - first_slot_) * slot_rows_.size() + row - slot_rows_.begin;
    return {slots_ + first_row * width + column - slot_columns_.begin, width};
  }
  Rows<T> c(std::int64_t row, std::int64_t column) const {
    return {static_cast<T*>(g_.c) + row * g_.ldc + column, g_.ldc};
  }
  /// The operands of a step as they are stored.
  Ahead<T> stored_a(const GemmStep& step) const {
    return stored(g_.a, g_.lda, g_.transpose_a ? step.chunk->terms : step.rows,
                  g_.transpose_a ? step.rows : step.chunk->terms);
  }
  Ahead<T> stored_b(const GemmStep& step) const {
    return stored(g_.b, g_.ldb, g_.transpose_b ? step.columns : step.chunk->terms,
                  g_.transpose_b ? step.chunk->terms : step.columns);
  }
  static Ahead<T> stored(const void* matrix, std::int64_t row, Range rows, Range columns) {
    return {
        {static_cast<const T*>(matrix) + rows.begin * row + columns.begin, row}, rows.size(), columns.size()};
  }

  // Without terms there may be no operand to point into, and nothing is packed.
  void pack_a(const GemmStep& step) {
    if (step.chunk->terms.size() == 0) return;
    kernels_.pack_a(g_.transpose_a, stored_a(step).from, step.rows.size(), step.chunk->terms.size(), a_);
  }
  void pack_b(const GemmStep& step) {
    if (step.chunk->terms.size() == 0) return;
    kernels_.pack_b(g_.transpose_b, stored_b(step).from, step.chunk->terms.size(), step.columns.size(), b_);
  }
  void multiply_packed(const GemmStep& step, const GemmStep* next) {
    const Chunk& chunk = *step.chunk;
    const bool last = &chunk == &plan_.chunks().back();
    const auto source = [&](int index) {
      const Rows<T> rest = slot(index, step.rows.begin, step.columns.begin);
      return Rows<const T>{rest.data, rest.row};
    };
    PanelProduct<T> p;
    p.rows = step.rows.size();
    p.columns = step.columns.size();
    p.terms = chunk.terms.size();
    p.a_packed = pack_a_ || p.terms == 0;
    p.a = p.a_packed ? Rows<const T>{a_, 0} : stored_a(step).from;
    p.b = b_;
    p.b_columns = p.columns;
    p.b_panel = kernels_.tile_columns * p.terms;
    p.pieces = plan_.pieces(chunk).data();
    p.piece_count = chunk.pieces;
    if (chunk.continues) p.carry = source(chunk.store + chunk.folds);
    p.source_count = chunk.folds;
    for (int f = 0; f < chunk.folds; ++f) p.sources[f] = source(chunk.store + chunk.folds - 1 - f);
    if (last && g_.bias != nullptr) p.bias = static_cast<const T*>(g_.bias) + step.columns.begin;
    p.accumulate = last && g_.accumulate;
    p.out = last ? c(step.rows.begin, step.columns.begin)
                 : slot(chunk.store, step.rows.begin, step.columns.begin);
    if (next != nullptr && next->new_b) p.ahead[0] = stored_b(*next);
    if (next != nullptr && next->new_a) p.ahead[1] = stored_a(*next);
    kernels_.multiply(p);
  }

  const GemmKernels<T>& kernels_;
  const Gemm& g_;
  const ChunkPlan& plan_;
  GemmWorkspace::Area& area_;
  T *a_ = nullptr, *b_ = nullptr, *slots_ = nullptr;
  Range slot_rows_, slot_columns_;
  int first_slot_ = 0;
  bool pack_a_ = false;
};

Gemm batch_item(const Gemm& product, std::int64_t index) {
  const auto moved = [&](const void* data, std::int64_t stride) -> const std::byte* {
    if (data == nullptr) return nullptr;  // an operand without elements
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
