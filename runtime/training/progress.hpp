#pragma once

#include <chrono>
#include <cstdio>

#include "runtime/training/callback.hpp"

namespace rankine {

/// The progress line on standard output. On a terminal one line is rewritten a few times a second; elsewhere
/// (a file, a pipe, a Slurm log) a line is added at most every ten seconds and at the end of each epoch.
class Progress : public Callback {
 public:
  explicit Progress(std::int64_t steps_planned);
  void on_train_begin() override;
  void on_step_end(const StepReport& report, bool& stop) override;
  void on_epoch_end(const EpochReport& report, bool& stop) override;
  void on_train_end() override;

 private:
  void print(const StepReport& report, char end);

  std::int64_t steps_planned_;
  bool terminal_;
  std::chrono::steady_clock::time_point begun_;
  std::chrono::steady_clock::time_point printed_;
  StepReport last_;
  bool line_open_ = false;
};

}  // namespace rankine
