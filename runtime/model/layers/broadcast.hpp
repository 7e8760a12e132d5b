#pragma once

#include <span>
#include <vector>

#include "runtime/model/layer.hpp"

namespace rankine {

/// to = from with every dimension of size 1 repeated as often as `to` has it. Both have the same rank.
void broadcast(Backend& backend, const Tensor& from, const Tensor& to);

/// The way back: sums over the dimensions that a broadcast repeated. Works on shapes of one sample; the batch
/// is never summed. Each run of neighbouring dimensions is one sum, cut like a feature dimension.
class BroadcastSum {
 public:
  BroadcastSum(Shape from, Shape to) : from_(std::move(from)), to_(std::move(to)) {}

  bool is_nothing() const { return from_ == to_; }
  /// Elements a sample of the results between the runs, one scratch each.
  std::vector<std::int64_t> between() const;
  /// Elements of a tensor of ones (not per sample) that `run` fills and uses.
  std::int64_t ones() const;

  /// to = sum of from. `leading` is the size of everything in front of a sample.
  void run(Backend& backend, const Tensor& from, const Tensor& to, std::int64_t leading,
           std::span<const Tensor> between, const Tensor& ones) const;

 private:
  struct Step {
    std::int64_t outer, summed, inner;
  };
  /// From the last run of dimensions to the first.
  std::vector<Step> steps() const;

  Shape from_, to_;
};

/// The output of an elementwise layer over inputs of one shape, where a size of 1 (not of the batch) is
/// repeated. Refuses inputs that don't fit.
ValueSpec broadcast_output(const LayerCommon& common, std::span<const ValueSpec> inputs);

/// What `sum_back` needs for the gradients of these inputs: ones, then the results between the runs.
std::vector<TensorSpec> broadcast_sum_scratch(const ValueSpec& output, std::span<const ValueSpec> inputs);

/// to = from, summed over the dimensions that the broadcast of an input repeated; a copy when there are none
/// (nothing when both are one tensor). `scratch` is that of broadcast_sum_scratch.
void sum_back(const CallContext& call, const Tensor& from, const Tensor& to, std::span<const Tensor> scratch);

}  // namespace rankine
