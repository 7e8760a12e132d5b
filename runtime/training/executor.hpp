#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/mesh/communicator.hpp"
#include "runtime/model/loss.hpp"
#include "runtime/model/model.hpp"
#include "runtime/training/optimizer.hpp"
#include "runtime/training/pass_run.hpp"
#include "runtime/training/step_plan.hpp"

namespace rankine {

/// Tree sums of one pass, to be combined over passes and ranks: the unreduced loss of each output, then the
/// numerators and denominators of the metrics, two a metric, outputs in order.
using PassSums = std::vector<double>;

/// A value that isn't finite.
struct NonFinite {
  std::int64_t stage =
      -1;  ///< how early a step meets it: inputs, targets, weights, calls; -1: none was found
  std::string text;
};

/// Runs a model's graph forward and backward on passes of up to `max_samples` samples. All tensors live in
/// one pool whose places are planned once, so that nothing is allocated while training. Not collective.
class Executor {
 public:
  /// `losses` may be empty for predictions only; with `training` room for backward is planned. Throws
  /// ConfigError when the pool doesn't fit into memory. Where layers need sums over the batch of a step, up
  /// to `most_passes` passes are in memory at once.
  Executor(const Model& model, Backend& backend, std::vector<OutputLoss> losses, std::int64_t max_samples,
           bool training, std::size_t most_passes = 1);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Uses in the order in which backward makes their gradients.
  const std::vector<GradientUse>& gradient_uses() const;
  const std::vector<OutputLoss>& losses() const;
  std::size_t pool_bytes() const;

  /// What the regularizers of the trained weights add to the loss of every batch.
  double penalty() const;

  /// One an output: whether what counts of its loss depends on what is in the batch.
  std::vector<bool> counts_vary(bool has_weights) const;
  /// One an output: entries of its unreduced loss in `samples` samples.
  std::vector<double> entries(std::int64_t samples) const;
  /// One an output: those of this pass that count. Runs what makes the masks and nothing else.
  std::vector<double> count_entries(const Pass& pass);

  /// Forward, losses and backward. Gradients go to optimizer.gradient(use). Whatever it throws (DataError for
  /// an id or label out of range), every use has been reported ready before, so that no peer waits for this
  /// rank's reductions.
  PassSums train(const Pass& pass, Optimizer& optimizer);
  /// Whether layers need sums over the whole batch of a training step (BatchNormalization), so that its
  /// passes must be trained together.
  bool takes_passes_together() const;
  /// As `train`, of all passes of this rank: call by call, and where a call needs sums over the batch, all
  /// ranks wait for them. Collective over `data`; whatever it throws, this rank has taken part to the end.
  std::vector<PassSums> train_together(const StepPlan& plan, std::span<const Pass> passes, Communicator& data,
                                       Optimizer& optimizer);
  /// After the optimizer's update of such a step: what the sums change in variables that aren't trained.
  void after_update(const BatchLeaves& batch);
  /// Reports every use ready without computing: what a rank does with the passes after one that failed.
  void skip(Optimizer& optimizer) const;
  /// Forward without dropout, losses and metrics.
  PassSums evaluate(const Pass& pass);
  /// Forward without dropout. The outputs stay valid until the next call.
  std::vector<Tensor> predict(std::span<const Tensor> inputs, std::int64_t samples);
  /// Repeats a training pass's forward and names the first value that isn't finite: an input, a weight or the
  /// output of a layer, with the place in it. Sums over the batch are those of the last training step.
  NonFinite find_non_finite(const Pass& pass);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rankine
