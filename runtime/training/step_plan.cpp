#include "runtime/training/step_plan.hpp"

#include <algorithm>

namespace rankine {

Range StepPlan::samples() const {
  return passes.empty() ? Range{} : Range{passes.front().samples.begin, passes.back().samples.end};
}

std::int64_t StepPlan::largest_pass() const {
  std::int64_t largest = 0;
  for (const PlannedPass& pass : passes) largest = std::max(largest, pass.samples.size());
  return largest;
}

StepPlan plan_step(std::int64_t samples, std::int64_t samples_per_leaf, int ranks, int rank, int accumulate) {
  StepPlan plan;
  plan.batch = {samples, samples_per_leaf};
  plan.shares.leaves = plan.batch.leaves();
  plan.shares.runs = split_evenly(plan.shares.leaves, ranks);
  const Range run = plan.shares.runs[static_cast<std::size_t>(rank)];
  for (const Range part : split_evenly(run.size(), accumulate)) {
    for (const Node node :
         canonical_nodes({run.begin + part.begin, run.begin + part.end}, plan.shares.leaves)) {
      plan.passes.push_back({node, plan.batch.samples_of(leaves_under(node, plan.shares.leaves))});
    }
  }
  return plan;
}

}  // namespace rankine
