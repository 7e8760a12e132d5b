#include "runtime/training/step_sums.hpp"

namespace rankine {

StepSums::StepSums(const StepPlan& plan, std::vector<std::int64_t> entries, std::vector<bool> masked,
                   std::size_t metrics, double penalty)
    : plan_(plan),
      nodes_(plan.shares.leaves),
      entries_(std::move(entries)),
      masked_(std::move(masked)),
      penalty_(penalty),
      losses_(entries_.size(), 0.0),
      hits_(metrics, 0) {}

void StepSums::add(const PlannedPass& pass, PassSums sums) {
  nodes_.push(pass.node, std::move(sums.loss),
              [](std::vector<double>& left, const std::vector<double>& right) {
                for (std::size_t i = 0; i < left.size(); ++i) left[i] += right[i];
              });
  for (std::size_t i = 0; i < hits_.size(); ++i) hits_[i] += sums.hits[i];
}

void StepSums::reduce(Communicator& data) {
  std::vector<void*> values;
  for (auto& entry : nodes_.entries()) values.push_back(entry.value.data());
  const WorkHandle summed = data.tree_all_reduce(DType::float64, plan_.shares, values,
                                                 static_cast<std::int64_t>(losses_.size()), losses_.data());
  summed->wait();
  if (!hits_.empty()) data.all_reduce(hits_, ReduceOp::sum)->wait();
}

double total_loss(std::span<const OutputLoss> losses, const StepSums& sums) {
  double total = sums.penalty();
  for (std::size_t o = 0; o < losses.size(); ++o)
    total += losses[o].weight * sums.losses()[o] / losses[o].divisor(sums.entries()[o]);
  return total;
}

}  // namespace rankine
