#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/mesh/communicator.hpp"
#include "runtime/training/executor.hpp"
#include "runtime/training/step_plan.hpp"

namespace rankine {

/// Sums over one global batch, gathered from the passes of all ranks in tree order.
class TreeSums {
 public:
  TreeSums(const StepPlan& plan, std::size_t sums) : plan_(plan), nodes_(plan.shares.leaves), sums_(sums) {}
  /// The sums of this rank's next pass, in leaf order.
  void add(const PlannedPass& pass, PassSums sums);
  /// Combines with all other ranks; the same bits everywhere. Collective over `data`.
  PassSums reduce(Communicator& data);

 private:
  const StepPlan& plan_;
  NodeStack<PassSums> nodes_;
  std::size_t sums_;
};

/// What one global batch came to.
struct StepSums {
  PassSums sums;                ///< over all passes of all ranks
  std::vector<double> counted;  ///< one an output: what counts of it, as OutputLoss::divisor wants it
  std::vector<bool> varies;     ///< one an output: whether that depends on what is in the batch
  double penalty = 0.0;         ///< what the regularizers add to the batch's loss

  double loss(std::size_t output) const { return sums[output]; }
  double numerator(std::size_t metric) const { return sums[counted.size() + 2 * metric]; }
  double denominator(std::size_t metric) const { return sums[counted.size() + 2 * metric + 1]; }
};

/// Keras's total loss of a batch: the sum over outputs of weight * sum / divisor, and the penalty.
double total_loss(std::span<const OutputLoss> losses, const StepSums& sums);

}  // namespace rankine
