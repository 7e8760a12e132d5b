#pragma once

#include <span>
#include <vector>

#include "runtime/model/model.hpp"
#include "runtime/training/batch_sums.hpp"
#include "runtime/training/execution_plan.hpp"
#include "runtime/training/optimizer.hpp"

namespace rankine {

/// One aligned subtree of a step's leaves with the samples under it.
struct Pass {
  std::int64_t step = 0;
  std::uint64_t seed = 0;
  BatchLeaves batch;               ///< of the whole step
  Range samples;                   ///< places in the step's global batch
  std::span<const Tensor> inputs;  ///< rows: these samples
  std::span<const Tensor> targets;
  std::span<const Tensor> weights;  ///< one an output, or none
  std::span<const double> counted;  ///< one an output: what counts of its loss in the whole step
};

/// One run of a plan over one pass: turns places into tensors and calls the layers. What it is given must
/// outlive it.
class PassRun {
 public:
  /// The plan's tensors lie in `pool`.
  PassRun(const Model& model, Backend& backend, const ExecutionPlan& plan, const BatchSums& sums,
          std::byte* pool, const Pass& pass)
      : model_(model), backend_(backend), plan_(plan), sums_(sums), pool_(pool), pass_(pass) {}

  const Pass& pass() const { return pass_; }
  const ExecutionPlan& plan() const { return plan_; }
  std::int64_t samples() const { return pass_.samples.size(); }
  Tensor value(int value) const;
  Shape shape_of(int value) const;
  Tensor pool_tensor(int index) const;
  /// The mask of output o, absent where it has none.
  Tensor output_mask(std::size_t o) const;

  void forward(std::size_t call, bool training) const;
  /// Gradients of variables go to optimizer.gradient.
  void backward(std::size_t call, Optimizer& optimizer) const;
  /// Writes this pass's share of the sum number `sum` over the batch, forward's and backward's counted on.
  void add_to_sum(std::size_t call, std::size_t sum, const Tensor& share) const;
  /// Adds a gradient that had a place of its own to the others of its value.
  void add_up(const GradientTarget& target) const;

 private:
  /// The tensors of one call, kept alive while its context points at them.
  struct Binding {
    std::vector<Tensor> inputs, masks, variables, saved, scratch, input_gradients, variable_gradients;
    CallContext context;
  };
  Binding bind(std::size_t call, bool training) const;
  void bind_scratch(Binding& binding, const std::vector<int>& scratch) const;
  void bind_gradients(Binding& binding, std::size_t call) const;
  std::vector<Tensor> pool_tensors(const std::vector<int>& indices) const;

  const Model& model_;
  Backend& backend_;
  const ExecutionPlan& plan_;
  const BatchSums& sums_;
  std::byte* pool_;
  const Pass& pass_;
};

}  // namespace rankine
