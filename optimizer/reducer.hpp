#pragma once

#include <span>
#include <utility>
#include <vector>

#include "optimizer/bucket.hpp"
#include "runtime/arithmetic/leaf.hpp"
#include "runtime/compute/backend.hpp"
#include "runtime/mesh/communicator.hpp"

namespace rankine {

/// The most values that a NodeStack over `leaves` leaves holds at once while these passes come, the one under
/// way included.
int pending_copies(std::span<const Node> passes, std::int64_t leaves);

/// Sums the gradients of a step in tree order: over the passes of this rank in the passes' own memory, then
/// over the ranks, bucket by bucket while the last pass's backward still runs.
///
/// The flat gradient memory exists once for each pending node. Copy 0 holds the leftmost node, and the
/// result. Buckets are reduced in the order of their index on every rank, whatever order they become complete
/// in, so the collectives of the group match.
class Reducer {
 public:
  /// Allocates `copies` (at least 1) copies of the memory. Steps that need more than any before them take
  /// more.
  Reducer(BucketLayout layout, int copies, Communicator& group, Backend& backend);

  /// A rank without passes starts all reductions at once.
  void begin_step(const TreeShares& shares);
  /// Passes are begun in order; one whose node has been begun in this step goes on. For each use they become
  /// ready in the order of the passes.
  void begin_pass(Node node, bool last);
  /// Memory of a use in the pass under way.
  void* memory(int use) const;
  void ready(int use);
  void progress();
  /// Blocks until bucket b is reduced. Buckets are waited for in order.
  void wait(int b);
  /// Memory of the reduced gradient of a use.
  void* reduced(int use) const;
  const BucketLayout& layout() const { return layout_; }

 private:
  void* at(int copy, std::int64_t offset) const;
  Tensor view(int copy, std::size_t use) const;
  int take_copy();
  void add_copy();
  void check_last_pass() const;
  void start(int b);
  void start_complete();

  BucketLayout layout_;
  Communicator& group_;
  Backend& backend_;
  std::vector<Buffer> copies_;
  std::vector<bool> taken_;

  TreeShares shares_;
  NodeStack<int> pending_{0};  // values are copies
  struct BegunPass {
    Node node;
    int copy = 0;
    std::vector<std::pair<int, int>> merges;  // copies that it lets merge, right into left
    std::vector<bool> use_ready;
  };
  std::vector<BegunPass> passes_;  // of this step
  std::size_t current_ = 0;
  bool last_ = false;         // the last pass has begun, or there is none
  std::vector<int> missing_;  // of the last pass: uses, by bucket

  std::vector<std::vector<void*>> nodes_;  // by bucket, alive while its reduction is
  std::vector<WorkHandle> works_;          // by bucket
  int started_ = 0;
};

}  // namespace rankine
