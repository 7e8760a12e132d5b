#pragma once

#include <span>
#include <vector>

#include "runtime/compute/backend.hpp"
#include "runtime/mesh/communicator.hpp"
#include "runtime/model/graph.hpp"
#include "runtime/training/execution_plan.hpp"
#include "runtime/training/step_plan.hpp"

namespace rankine {

/// The sums over the whole batch of a step that calls wait for (CallPlan::forward_sums), in tree order: the
/// same bits whatever the ranks and passes. Those of the last step stay until the next.
class BatchSums {
 public:
  /// None.
  BatchSums() = default;
  /// For steps of up to `passes` passes of this rank.
  BatchSums(const Graph& graph, const ExecutionPlan& plan, std::size_t passes, Backend& backend);

  bool empty() const { return shares_.bytes() == 0; }
  /// Forward's sums of a call, then backward's. None where a call has none.
  std::span<const Tensor> of(std::size_t call) const {
    return call < sums_.size() ? std::span<const Tensor>(sums_[call]) : std::span<const Tensor>();
  }
  /// Where the share of a pass goes until `reduce`.
  Tensor share(std::size_t call, std::size_t sum, std::size_t pass) const;
  /// Completes a sum from the shares of all passes of all ranks. Collective over `data`.
  void reduce(std::size_t call, std::size_t sum, const StepPlan& plan, Communicator& data) const;

 private:
  Backend* backend_ = nullptr;
  std::vector<std::vector<Tensor>> sums_;  ///< by call
  Buffer memory_, shares_;
  std::size_t share_bytes_ = 0;  ///< room of one
};

}  // namespace rankine
