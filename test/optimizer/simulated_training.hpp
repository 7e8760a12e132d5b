#pragma once

#include <memory>
#include <string>
#include <vector>

#include "optimizer/make_optimizer.hpp"
#include "runtime/training/step_plan.hpp"
#include "test/fakes/host_backend.hpp"
#include "test/fakes/simulated_group.hpp"

namespace rankine::test {

/// A training without a model: each leaf of a step has a made-up gradient of every use, the same in every
/// layout.
struct Problem {
  std::vector<Variable> variables;  ///< without values
  std::vector<GradientUse> uses;
  std::vector<std::int64_t> step_leaves;  ///< leaves of the batches of an epoch
  std::string config;
};

/// Nine variables of both dtypes, some used twice or thrice, one by nothing, one frozen.
Problem mixed_problem(const std::string& config);

/// How the work is laid out; none of it may show in the results.
struct Arrangement {
  int ranks = 1;
  int accumulate = 1;
  OptimizerOptions options;
  bool shuffle_ready = false;  ///< gradients become ready in another order on every rank
};

/// All ranks of a training, one after the other in one thread.
class SimulatedTraining {
 public:
  SimulatedTraining(const Problem& problem, const Arrangement& arrangement);
  /// One step on every rank. Memory that a pass is to fill is full of NaN before.
  void step();
  /// Every bit that matters, of one rank: weights, state, reduced gradients, reports.
  std::string bits(int rank) const;
  Optimizer& optimizer(int rank) { return *ranks_[static_cast<std::size_t>(rank)]->optimizer; }
  const HostBackend& backend(int rank) const { return ranks_[static_cast<std::size_t>(rank)]->backend; }
  const SimulatedGroup& group() const { return group_; }
  const UpdateReport& report() const { return ranks_[0]->report; }
  std::int64_t steps() const { return step_; }
  /// Takes over weights, state and place of another training, as a resume does.
  void resume_from(SimulatedTraining& other);

 private:
  struct Rank {
    HostBackend backend;
    Buffer weights;
    std::vector<Variable> variables;
    std::unique_ptr<Optimizer> optimizer;
    UpdateReport report;
  };
  void run_passes(int rank);
  StepPlan plan(int rank, std::int64_t leaves) const;

  const Problem problem_;
  const Arrangement arrangement_;
  SimulatedGroup group_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::int64_t step_ = 0;
};

}  // namespace rankine::test
