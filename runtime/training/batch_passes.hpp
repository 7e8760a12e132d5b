#pragma once

#include <functional>

#include "runtime/data/batch_reader.hpp"
#include "runtime/training/executor.hpp"
#include "runtime/training/step_plan.hpp"
#include "runtime/training/step_sums.hpp"

namespace rankine {

/// How the global batches of a run are worked through: cut over the ranks of `data`, this rank's passes run
/// one after another, and what all ranks got combined. All ranks make one with the same numbers.
class BatchPasses {
 public:
  BatchPasses(Communicator& data, std::int64_t samples_per_leaf, int accumulate)
      : data_(data), samples_per_leaf_(samples_per_leaf), accumulate_(accumulate) {}

  Communicator& data() const { return data_; }
  StepPlan plan(std::int64_t samples) const;
  /// Which places of a batch this rank reads.
  BatchShare share() const;
  /// Samples of this rank's largest pass, when `samples` samples are taken `batch` at a time.
  std::int64_t largest_pass(std::int64_t samples, std::int64_t batch) const;

  /// The most passes that this rank has in a batch, then.
  std::size_t most_passes(std::int64_t samples, std::int64_t batch) const;

  struct Work {
    std::function<PassSums(const PlannedPass& planned, const Pass& pass)> run;
    /// In place of `run` after a pass that failed, so that every rank issues the same collectives.
    std::function<void(const PlannedPass& planned)> skip;
  };
  /// Runs `work` on each of this rank's passes of a batch. An error of one rank is thrown on all. Collective.
  StepSums run(const StepPlan& plan, const Batch& batch, std::uint64_t seed, Executor& executor,
               const Work& work) const;
  /// The same for a model whose passes are trained together (Executor::takes_passes_together).
  StepSums train_together(const StepPlan& plan, const Batch& batch, std::uint64_t seed, Executor& executor,
                          Optimizer& optimizer) const;

 private:
  /// What is known of a batch before its passes.
  StepSums begin(const StepPlan& plan, const Batch& batch, Executor& executor) const;
  /// One an output: what counts of its loss in the whole batch, which the gradients are divided by.
  std::vector<double> count_entries(const StepPlan& plan, const Batch& batch, Executor& executor) const;

  Communicator& data_;
  std::int64_t samples_per_leaf_;
  int accumulate_;
};

/// Calls `visit` with each of this rank's passes of a batch; `counted` is that of Pass. Not collective.
void for_each_pass(const StepPlan& plan, const Batch& batch, std::uint64_t seed,
                   std::span<const double> counted,
                   const std::function<void(const PlannedPass& planned, const Pass& pass)>& visit);

}  // namespace rankine
