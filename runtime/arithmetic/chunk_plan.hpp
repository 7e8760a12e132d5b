#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/arithmetic/gemm_kernels.hpp"
#include "runtime/arithmetic/leaf.hpp"

namespace rankine {

/// A run of terms that one call of a kernel multiplies. It leaves one value: of a whole subtree of leaves, or
/// of the part of a long leaf so far. Values that wait are a stack of `slots`; a chunk pushes its value at
/// slot `store` after folding slots store + folds - 1, ..., store into it.
struct Chunk {
  Range terms;
  std::size_t first_piece = 0;
  int pieces = 0;
  bool continues = false;  ///< its first chain goes on from the value in slot `store + folds`
  int folds = 0;
  int store = 0;
};

/// How the K of a product is worked off, `max_terms` at a time: leaf_steps in chunks. The last chunk stores
/// slot 0. An extent of 0 has one chunk of no terms, whose value is +0.
class ChunkPlan {
 public:
  ChunkPlan(const Leaves& leaves, std::int64_t max_terms);

  std::span<const Chunk> chunks() const { return chunks_; }
  std::span<const LeafPiece> pieces(const Chunk& chunk) const {
    return std::span(pieces_).subspan(chunk.first_piece, static_cast<std::size_t>(chunk.pieces));
  }
  int slots() const { return slots_; }

 private:
  void add_long_leaf(const LeafStep& step, std::int64_t max_terms);
  std::size_t add_run(std::span<const LeafStep> steps, std::int64_t max_terms);
  void add(Chunk chunk, int folds);

  std::vector<Chunk> chunks_;
  std::vector<LeafPiece> pieces_;
  int depth_ = 0;
  int slots_ = 1;
};

/// Plans by leaves, so that a repeated product plans nothing.
class ChunkPlans {
 public:
  /// The reference holds until the next call.
  const ChunkPlan& get(const Leaves& leaves, std::int64_t max_terms);

 private:
  struct Entry {
    Leaves leaves;
    std::int64_t max_terms;
    ChunkPlan plan;
  };
  std::vector<Entry> entries_;
};

}  // namespace rankine
