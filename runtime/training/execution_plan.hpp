#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/model/graph.hpp"
#include "runtime/training/optimizer.hpp"
#include "runtime/training/pool_plan.hpp"

namespace rankine {

/// A tensor with a place in the pool. With `per_sample` the pass's samples are put in front of `shape`.
struct PoolTensor {
  TensorSpec spec;
  std::size_t offset = 0;
};

/// Where the bits of a graph value are: the model input `input`, or the pool tensor `pool`. Views share a
/// place.
struct ValuePlace {
  int input = -1;
  int pool = -1;
};

/// Where a call writes the gradient of one of its inputs. When another use has already written it, the call
/// writes to a tensor of its own, which is then added.
struct GradientTarget {
  int write = -1;   ///< pool tensor; -1: not wanted
  int add_to = -1;  ///< pool tensor that `write` is added to afterwards; -1: none
};

/// What the executor does for one call of the graph.
struct PlannedCall {
  bool is_view = false;  ///< nothing to do, forward or backward
  std::vector<int> saved, forward_scratch, backward_scratch;
  /// Elements of the sums over the whole batch of a step that come before forward and before backward.
  std::vector<std::int64_t> forward_sums, backward_sums;
  bool runs_backward = false;
  int output_gradient = -1;  ///< pool tensor
  std::vector<GradientTarget> input_gradients;
  std::vector<int> uses;  ///< one a variable: index into `gradient_uses`, or -1
};

/// A model output's place in the losses.
struct PlannedOutput {
  // Pool tensors, -1 where not needed. The first three are float64 with one element a row.
  int element_loss = -1;                   ///< the unreduced loss
  int numerators = -1, denominators = -1;  ///< of one metric after another
  int counts = -1, labels = -1;            ///< int32: which rows count, and labels without those that don't
  GradientTarget gradient;                 ///< of the output value
};

/// What one output's loss needs to know for planning.
struct OutputNeed {
  std::int64_t loss_elements = 0;  ///< a sample
  bool has_metrics = false;
  bool ignores_labels = false;  ///< Loss::ignored
};

/// The order of work and the place of every tensor for passes of up to `max_samples` samples. Time runs over
/// the calls forward (0 .. n-1), the losses (n), and the calls backward (call i at 2n - i).
struct ExecutionPlan {
  std::vector<PoolTensor> tensors;
  std::vector<ValuePlace> values;
  std::vector<PlannedCall> calls;
  std::vector<PlannedOutput> outputs;
  std::vector<GradientUse> gradient_uses;
  std::size_t bytes = 0;
};

/// Plans forward and losses (none if `outputs` is empty) and, with `training`, backward.
ExecutionPlan plan_execution(const Graph& graph, std::span<const Variable> variables,
                             std::span<const OutputNeed> outputs, std::int64_t max_samples, bool training);

}  // namespace rankine
