#include "runtime/training/batch_sums.hpp"

#include <algorithm>

namespace rankine {

BatchSums::BatchSums(const Graph& graph, const ExecutionPlan& plan, std::size_t passes, Backend& backend)
    : backend_(&backend), sums_(plan.calls.size()) {
  constexpr std::size_t k_line = 64;
  std::size_t bytes = 0;
  std::vector<std::pair<Tensor*, std::size_t>> places;
  for (std::size_t i = 0; i < plan.calls.size(); ++i) {
    std::vector<std::int64_t> sizes = plan.calls[i].forward_sums;
    sizes.insert(sizes.end(), plan.calls[i].backward_sums.begin(), plan.calls[i].backward_sums.end());
    for (const std::int64_t size : sizes)
      sums_[i].push_back({nullptr, graph.calls[i].layer->common().dtype, {size}});
    for (Tensor& sum : sums_[i]) {
      places.emplace_back(&sum, bytes);
      const std::size_t room = (sum.bytes() + k_line - 1) / k_line * k_line;
      share_bytes_ = std::max(share_bytes_, room);
      bytes += room;
    }
  }
  if (bytes == 0) return;
  memory_ = backend.allocate(bytes);
  for (const auto& [sum, offset] : places) {
    sum->data = memory_.data() + offset;
    backend.fill(*sum, 0.0);
  }
  shares_ = backend.allocate(share_bytes_ * std::max<std::size_t>(passes, 1));
  backend.fill(
      {shares_.data(), DType::float64, {static_cast<std::int64_t>(shares_.bytes() / sizeof(double))}}, 0.0);
}

Tensor BatchSums::share(std::size_t call, std::size_t sum, std::size_t pass) const {
  Tensor share = sums_[call][sum];
  share.data = shares_.data() + pass * share_bytes_;
  return share;
}

void BatchSums::reduce(std::size_t call, std::size_t sum, const StepPlan& plan, Communicator& data) const {
  NodeStack<Tensor> nodes(plan.shares.leaves);
  for (std::size_t p = 0; p < plan.passes.size(); ++p)
    nodes.push(plan.passes[p].node, share(call, sum, p),
               [this](const Tensor& left, const Tensor& right) { backend_->add(left, right, left); });
  std::vector<void*> values;
  for (const auto& entry : nodes.entries()) values.push_back(entry.value.data);
  const Tensor& whole = sums_[call][sum];
  backend_->synchronize();
  data.tree_all_reduce(whole.dtype, plan.shares, values, whole.elements(), whole.data)->wait();
}

}  // namespace rankine
