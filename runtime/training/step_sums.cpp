#include "runtime/training/step_sums.hpp"

namespace rankine {

StepSums::StepSums(const StepPlan& plan, std::size_t outputs, std::size_t metrics)
    : plan_(plan), nodes_(plan.shares.leaves), losses_(outputs, 0.0), hits_(metrics, 0) {}

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

double total_loss(std::span<const OutputLoss> losses, std::span<const ValueSpec> predictions,
                  std::span<const double> sums, std::int64_t samples) {
  double total = 0.0;
  for (std::size_t o = 0; o < losses.size(); ++o) {
    total += losses[o].weight * sums[o] / losses[o].divisor(predictions[o], samples);
  }
  return total;
}

}  // namespace rankine
