#pragma once

#include <algorithm>
#include <cstdint>

namespace rankine {

/// Where one step's global batch lies in the data.
struct BatchPlace {
  std::int64_t epoch = 1;    ///< from 1
  std::int64_t first = 0;    ///< position of its first sample in the epoch's order
  std::int64_t samples = 0;  ///< in the global batch; fewer in the last one of an epoch
  bool ends_epoch = false;
  bool operator==(const BatchPlace&) const = default;
};

/// Cuts epochs into global batches as Keras does: the last batch of an epoch has what is left.
struct BatchSchedule {
  std::int64_t samples = 0;  ///< in an epoch
  std::int64_t batch = 1;    ///< global

  std::int64_t steps_per_epoch() const { return (samples + batch - 1) / batch; }
  /// Steps count from 1, over all epochs.
  BatchPlace at(std::int64_t step) const {
    const std::int64_t in_epoch = (step - 1) % steps_per_epoch();
    const std::int64_t first = in_epoch * batch;
    return {(step - 1) / steps_per_epoch() + 1, first, std::min(batch, samples - first),
            in_epoch + 1 == steps_per_epoch()};
  }
};

}  // namespace rankine
