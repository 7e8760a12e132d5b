#pragma once

#include <map>
#include <string>

#include "runtime/training/batch_passes.hpp"

namespace rankine {

/// Losses and metrics of many batches, as Keras reports them for an epoch.
class Totals {
 public:
  void add(std::span<const OutputLoss> losses, const StepSums& sums, std::int64_t samples);
  /// Under Keras's names: "loss", "accuracy"; with several outputs also "<output>_loss" and
  /// "<output>_accuracy".
  std::map<std::string, double> values(std::span<const OutputLoss> losses) const;

 private:
  struct Fraction {
    double sum = 0.0, divisor = 0.0;
  };
  /// One an output. Of a loss that isn't a mean over all entries, batches weigh as much as they have samples.
  std::vector<Fraction> losses_;
  Fraction penalty_;  ///< of the regularizers: batches weigh as much as they have samples
  std::vector<Fraction> metrics_;
};

/// Losses and metrics of a model over a whole dataset, `batch` samples at a time in their order, without
/// dropout. Collective over passes.data(). Throws DataError, agreed.
Totals evaluate(Executor& executor, const BatchPasses& passes, Dataset& dataset, std::int64_t batch);

}  // namespace rankine
