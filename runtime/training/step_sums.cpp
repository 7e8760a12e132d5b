#include "runtime/training/step_sums.hpp"

namespace rankine {

void TreeSums::add(const PlannedPass& pass, PassSums sums) {
  nodes_.push(pass.node, std::move(sums), [](PassSums& left, const PassSums& right) {
    for (std::size_t i = 0; i < left.size(); ++i) left[i] += right[i];
  });
}

PassSums TreeSums::reduce(Communicator& data) {
  PassSums result(sums_, 0.0);
  std::vector<void*> values;
  for (auto& entry : nodes_.entries()) values.push_back(entry.value.data());
  data.tree_all_reduce(DType::float64, plan_.shares, values, static_cast<std::int64_t>(sums_), result.data())
      ->wait();
  return result;
}

double total_loss(std::span<const OutputLoss> losses, const StepSums& sums) {
  double total = sums.penalty;
  for (std::size_t o = 0; o < losses.size(); ++o)
    total += losses[o].weight * sums.loss(o) / losses[o].divisor(sums.counted[o]);
  return total;
}

}  // namespace rankine
