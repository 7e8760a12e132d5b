#pragma once

#include <memory>
#include <string>
#include <vector>

#include "optimizer/make_optimizer.hpp"
#include "runtime/compute/backend.hpp"
#include "runtime/mesh/communicator.hpp"
#include "runtime/model/model.hpp"
#include "runtime/training/trainer.hpp"

namespace rankine::testing {

/// What must not change a bit, and what a run of a golden model is made of.
struct RunOptions {
  std::int64_t steps = 8;
  std::int64_t batch = 0;  ///< 0: the fixture's
  std::uint64_t seed = 0;
  bool shuffle = false;
  int accumulate = 1;
  int threads = 1;
  InstructionSet instructions = best_instruction_set();
  OptimizerOptions buckets;
  std::string weights =
      "initial";          ///< which of Keras's files to begin with: "initial" or "final" (with its optimizer)
  std::string optimizer;  ///< JSON or name instead of the fixture's; "": the fixture's
  bool float64 = false;   ///< compute in float64 instead of float32
  double dropout = -1.0;  ///< rate to put into every Dropout layer; negative: as in the config
  Callback* watcher = nullptr;
};

/// Everything that a run produced.
struct RunResult {
  std::vector<double> losses;
  std::vector<double> learning_rates;
  std::vector<double> gradient_norms;
  std::vector<std::vector<double>> first_gradients;  ///< one a variable; empty for those without
  std::vector<std::vector<double>> last_gradients;
  std::vector<std::vector<double>> weights;
  std::vector<std::vector<double>> optimizer_state;  ///< in Keras's order
  std::vector<std::string> weight_paths;
  /// SHA-256 over the bits of losses, last gradients, weights and optimizer state.
  std::string digest;
};

/// Path of a file in test/golden.
std::string golden(const std::string& name);

/// Trains a golden model over the ranks of `group`. Collective.
RunResult run_fixture(Communicator& group, const std::string& fixture, const RunOptions& options);

/// Outputs of the model for the first batch of its data; "final" weights or "initial" ones. Not collective.
std::vector<std::vector<double>> predict_fixture(const std::string& fixture, const std::string& weights);

}  // namespace rankine::testing
