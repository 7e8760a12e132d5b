#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/arithmetic/leaf.hpp"
#include "runtime/compute/tensor.hpp"
#include "runtime/data/batch_schedule.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/data/sample_order.hpp"

namespace rankine {

/// This rank's part of a global batch of `samples` samples: ranges of places in it, in order. Asked for each
/// step, perhaps on another thread; it must depend on nothing but its argument.
using BatchShare = std::function<std::vector<Range>(std::int64_t samples)>;

/// This rank's rows of one step's global batch.
struct Batch {
  std::int64_t step = 0;
  BatchPlace place;
  std::vector<Range> ranges;  ///< this rank's places in the global batch; empty ones are left out
  /// One tensor a field in the dataset's order; rows: the samples of `ranges`, one range after another. A
  /// rank without samples has tensors of no rows.
  std::vector<Tensor> inputs;
  std::vector<Tensor> targets;
  std::vector<Tensor> weights;  ///< one a target, or none: the samples' weights

  std::int64_t rows() const;
};

/// Reads this rank's rows of any step, on the caller's thread. The dataset must outlive it and be used by
/// nothing else.
class BatchReader {
 public:
  /// Throws DataError when the dataset or the order is empty, ConfigError when batch < 1.
  BatchReader(Dataset& dataset, const SampleOrder& order, std::int64_t batch, BatchShare share);

  const BatchSchedule& schedule() const { return schedule_; }
  /// The memory of a batch, kept from step to step.
  struct Memory {
    Batch batch;
    std::vector<Buffer> buffers;  ///< one a field
  };
  /// Fills `into` with the rows of `step` (from 1). Throws DataError.
  void read(std::int64_t step, Memory& into);

 private:
  Dataset& dataset_;
  SampleOrder order_;
  BatchSchedule schedule_;
  BatchShare share_;
  std::vector<std::int64_t> indices_;
};

}  // namespace rankine
