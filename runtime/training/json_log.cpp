#include "runtime/training/json_log.hpp"

#include <charconv>
#include <cmath>

#include "runtime/error.hpp"

namespace rankine {
namespace {

class Line {
 public:
  void field(const std::string& key, const std::string& json_value) {
    text_ += (text_.size() > 1 ? ",\"" : "\"") + key + "\":" + json_value;
  }
  void field(const std::string& key, std::int64_t value) { field(key, std::to_string(value)); }
  void field(const std::string& key, double value) { field(key, exact_json_number(value)); }
  std::string finish() const { return text_ + "}"; }

 private:
  std::string text_ = "{";
};

}  // namespace

std::string exact_json_number(double value) {
  if (std::isnan(value)) return "\"nan\"";
  if (std::isinf(value)) return value > 0 ? "\"inf\"" : "\"-inf\"";
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return std::string(text, end);
}

JsonLog::JsonLog(const std::string& path, std::vector<std::pair<std::string, std::string>> start)
    : path_(path), file_(path, std::ios::app), start_(std::move(start)) {
  if (!file_) throw ConfigError("can't open the log file " + path + " for writing; choose another --log");
}

void JsonLog::on_train_begin() {
  Line line;
  line.field("event", "\"start\"");
  for (const auto& [key, value] : start_) line.field(key, value);
  write_line(line.finish());
}

void JsonLog::on_step_end(const StepReport& report, bool&) {
  Line line;
  line.field("step", report.step);
  line.field("update", report.update);
  line.field("epoch", report.epoch);
  line.field("loss", report.loss);
  line.field("learning_rate", report.learning_rate);
  line.field("gradient_norm", report.gradient_norm);
  line.field("seconds", report.seconds);
  line.field("samples_per_second", report.samples_per_second);
  last_step_ = report.step;
  write_line(line.finish());
}

void JsonLog::on_epoch_end(const EpochReport& report, bool&) {
  Line line;
  line.field("event", "\"epoch\"");
  line.field("epoch", report.epoch);
  line.field("step", report.step);
  for (const auto& [key, value] : report.values) line.field(key, value);
  write_line(line.finish());
}

void JsonLog::on_train_end() {
  Line line;
  line.field("event", "\"end\"");
  line.field("step", last_step_);
  write_line(line.finish());
}

void JsonLog::write_line(const std::string& line) {
  file_ << line << '\n' << std::flush;
  if (!file_) throw ConfigError("can't write to the log file " + path_ + "; is the disk full?");
}

}  // namespace rankine
