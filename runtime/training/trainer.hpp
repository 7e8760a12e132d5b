#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/data/dataset.hpp"
#include "runtime/mesh/communicator.hpp"
#include "runtime/model/loss.hpp"
#include "runtime/model/model.hpp"
#include "runtime/training/callback.hpp"
#include "runtime/training/optimizer.hpp"

namespace rankine {

/// How long and in which pieces to train.
struct TrainOptions {
  std::int64_t batch = 32;  ///< global: samples of one step over all ranks
  std::int64_t epochs = 1;  ///< used when steps is 0
  std::int64_t steps = 0;   ///< train up to this step in all; 0: by epochs
  std::uint64_t seed = 0;
  bool shuffle = true;
  int accumulate = 1;  ///< parts in which a rank works through its share of a step; changes memory only
};

/// Trains a model: the loop that reads from top to bottom.
///   for each step: read this rank's samples -> for each pass forward, loss, backward -> reduce -> update ->
///   report
/// All ranks of `data` construct it and call `run` together. The model must be allocated and hold its first
/// weights.
class Trainer {
 public:
  /// Checks model, losses and data against each other and plans all memory. Collective over `data`. Throws
  /// ConfigError or DataError, agreed.
  Trainer(Model& model, Backend& backend, Communicator& data, Optimizer& optimizer,
          std::vector<OutputLoss> losses, std::unique_ptr<Dataset> training,
          std::unique_ptr<Dataset> validation, const TrainOptions& options);
  ~Trainer();

  /// Trains to the end, or until a callback stops it. Collective. Throws NumericError, on all ranks, when a
  /// loss or a gradient isn't finite, naming the step and the first tensor that had it.
  void run(std::span<Callback* const> callbacks);

  std::int64_t steps_planned() const;
  std::size_t pool_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// What the model asks of a dataset: its inputs, and the targets and sample weights that its losses take, in
/// the model's order.
DataRequest data_request(const Model& model, std::span<const OutputLoss> losses);

}  // namespace rankine
