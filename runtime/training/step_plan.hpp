#pragma once

#include <cstdint>
#include <vector>

#include "runtime/arithmetic/leaf.hpp"
#include "runtime/mesh/communicator.hpp"

namespace rankine {

/// One forward and backward of a rank: an aligned subtree of the step's leaves.
struct PlannedPass {
  Node node;
  Range samples;  ///< places in the step's global batch
};

/// How one step's global batch is shared: equal on every rank except `passes`.
struct StepPlan {
  BatchLeaves batch;
  TreeShares shares;                ///< runs of leaves, one a rank of the data axis
  std::vector<PlannedPass> passes;  ///< this rank's, in leaf order; none for an empty run

  /// This rank's samples: those of its passes, which adjoin.
  Range samples() const;
  std::int64_t largest_pass() const;
};

/// Cuts a batch of `samples` over `ranks` ranks in whole leaves, and rank `rank`'s run into `accumulate`
/// parts as even as can be. Each part becomes as many passes as it has canonical nodes, so every pass's sums
/// are nodes of the tree.
StepPlan plan_step(std::int64_t samples, std::int64_t samples_per_leaf, int ranks, int rank, int accumulate);

}  // namespace rankine
