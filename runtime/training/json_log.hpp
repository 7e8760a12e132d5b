#pragma once

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "runtime/training/callback.hpp"

namespace rankine {

/// The run's log: one JSON object a line, written and flushed as things happen. Floats are printed so that
/// they read back exactly; a value that isn't finite is a string ("nan", "inf"). Only the rank that speaks
/// has one.
class JsonLog : public Callback {
 public:
  /// Appends to `path`. `start` goes into the first line as {"event":"start", ...}: pairs of a key and a JSON
  /// value. Throws ConfigError when the file can't be opened.
  JsonLog(const std::string& path, std::vector<std::pair<std::string, std::string>> start);

  void on_train_begin() override;
  void on_step_end(const StepReport& report, bool& stop) override;
  void on_epoch_end(const EpochReport& report, bool& stop) override;
  void on_train_end() override;

 private:
  void write_line(const std::string& line);

  std::string path_;
  std::ofstream file_;
  std::vector<std::pair<std::string, std::string>> start_;
  std::int64_t last_step_ = 0;
};

/// The shortest decimal text that reads back as exactly this value; "null"-safe JSON for what isn't finite.
std::string exact_json_number(double value);

}  // namespace rankine
