#pragma once

#include <memory>
#include <vector>

#include "runtime/arithmetic/aligned_buffer.hpp"
#include "runtime/arithmetic/chunk_plan.hpp"
#include "runtime/arithmetic/gemm_call.hpp"
#include "runtime/arithmetic/kernel_table.hpp"
#include "runtime/arithmetic/thread_pool.hpp"

namespace rankine {

/// Terms of a chunk, at most: enough that reading and writing C between chunks costs little. It doesn't
/// change bits.
template <class T>
inline constexpr std::int64_t k_block_terms = 2048 / static_cast<std::int64_t>(sizeof(T));

/// One block of a product: which operands it needs that the block before it didn't.
struct GemmStep {
  const Chunk* chunk = nullptr;
  Range rows, columns;
  bool new_a = false, new_b = false;
};

/// Scratch memory of matrix products: packed panels and waiting partial sums, an area a thread. It grows to
/// what the largest product needs; after that a product allocates nothing. For one product at a time.
class GemmWorkspace {
 public:
  struct Area {
    AlignedBuffer a, b, slots;
    std::vector<GemmStep> steps;
  };
  explicit GemmWorkspace(int threads) : areas_(static_cast<std::size_t>(threads)) {}

  Area& area(int worker) { return areas_[static_cast<std::size_t>(worker)]; }
  ChunkPlans& plans() { return plans_; }

 private:
  std::vector<Area> areas_;
  ChunkPlans plans_;
};

/// The product that `product` describes (see Gemm); its dtype must be T's. `workspace` must have an area for
/// each of the pool's threads. Bits depend on the operands and on k_leaves alone.
template <class T>
void gemm(const KernelTable<T>& table, const Gemm& product, ThreadPool& pool, GemmWorkspace& workspace);

}  // namespace rankine
