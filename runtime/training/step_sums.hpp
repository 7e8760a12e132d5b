#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/mesh/communicator.hpp"
#include "runtime/training/executor.hpp"
#include "runtime/training/step_plan.hpp"

namespace rankine {

/// The losses and hits of one global batch, gathered from the passes of all ranks in tree order.
class StepSums {
 public:
  /// One an output: entries of its loss that count in the batch, and whether a mask says so. `penalty` is
  /// what the regularizers add to the batch's loss.
  StepSums(const StepPlan& plan, std::vector<std::int64_t> entries, std::vector<bool> masked,
           std::size_t metrics, double penalty);
  /// The sums of this rank's next pass, in leaf order.
  void add(const PlannedPass& pass, PassSums sums);
  /// Combines with all other ranks; the same bits everywhere. Collective over `data`.
  void reduce(Communicator& data);

  /// After reduce: one sum of unreduced losses an output.
  const std::vector<double>& losses() const { return losses_; }
  const std::vector<std::int64_t>& entries() const { return entries_; }
  const std::vector<bool>& masked() const { return masked_; }
  double penalty() const { return penalty_; }
  /// After reduce: one count a metric, outputs in order.
  const std::vector<std::int64_t>& hits() const { return hits_; }

 private:
  const StepPlan& plan_;
  NodeStack<std::vector<double>> nodes_;
  std::vector<std::int64_t> entries_;
  std::vector<bool> masked_;
  double penalty_;
  std::vector<double> losses_;
  std::vector<std::int64_t> hits_;
};

/// Keras's total loss of a batch: the sum over outputs of weight * sum / divisor, and the penalty.
double total_loss(std::span<const OutputLoss> losses, const StepSums& sums);

}  // namespace rankine
