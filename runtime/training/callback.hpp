#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace rankine {

/// What happened in one step (one global batch).
struct StepReport {
  std::int64_t step = 0;    ///< from 1
  std::int64_t update = 0;  ///< weight changes so far
  std::int64_t epoch = 0;   ///< from 1
  double loss = 0.0;
  double learning_rate = 0.0;
  double gradient_norm = 0.0;
  double seconds = 0.0;
  double samples_per_second = 0.0;
};

/// Means over an epoch, weighted by samples, as Keras reports them; "val_…" keys where there is validation
/// data.
struct EpochReport {
  std::int64_t epoch = 0;  ///< from 1
  std::int64_t step = 0;   ///< last step of it
  std::map<std::string, double> values;
};

/// Something that watches training. Every rank has the same callbacks and calls them at the same places with
/// the same values, so they may be collective. Set `stop` to end training after the current step.
class Callback {
 public:
  virtual ~Callback() = default;
  virtual void on_train_begin() {}
  virtual void on_step_end(const StepReport& report, bool& stop) {
    (void)report;
    (void)stop;
  }
  virtual void on_epoch_end(const EpochReport& report, bool& stop) {
    (void)report;
    (void)stop;
  }
  virtual void on_train_end() {}
};

}  // namespace rankine
