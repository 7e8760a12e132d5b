#include "runtime/training/progress.hpp"

#include <unistd.h>

namespace rankine {
namespace {

using Clock = std::chrono::steady_clock;

std::string duration_text(double seconds) {
  const auto whole = static_cast<long>(seconds + 0.5);
  char text[32];
  if (whole >= 3600) {
    std::snprintf(text, sizeof text, "%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
  } else {
    std::snprintf(text, sizeof text, "%ld:%02ld", whole / 60, whole % 60);
  }
  return text;
}

}  // namespace

Progress::Progress(std::int64_t steps_planned)
    : steps_planned_(steps_planned), terminal_(isatty(STDOUT_FILENO) == 1) {}

void Progress::on_train_begin() {
  begun_ = Clock::now();
  printed_ = begun_;
  std::printf("%12s %10s %12s %10s %12s %8s\n", "step", "loss", "grad norm", "rate", "samples/s", "left");
}

void Progress::on_step_end(const StepReport& report, bool&) {
  last_ = report;
  const auto interval = terminal_ ? std::chrono::milliseconds(250) : std::chrono::milliseconds(10000);
  if (report.step != 1 && Clock::now() - printed_ < interval) return;
  print(report, terminal_ ? '\r' : '\n');
}

void Progress::print(const StepReport& report, char end) {
  printed_ = Clock::now();
  const double elapsed = std::chrono::duration<double>(printed_ - begun_).count();
  const double left =
      elapsed / static_cast<double>(report.step) * static_cast<double>(steps_planned_ - report.step);
  const std::string step = std::to_string(report.step) + "/" + std::to_string(steps_planned_);
  std::printf("%12s %10.4f %12.4g %10.4g %12.1f %8s%s%c", step.c_str(), report.loss, report.gradient_norm,
              report.learning_rate, report.samples_per_second, duration_text(left).c_str(),
              terminal_ ? "   " : "", end);
  std::fflush(stdout);
  line_open_ = end == '\r';
}

void Progress::on_epoch_end(const EpochReport& report, bool&) {
  if (line_open_) std::printf("\n");
  line_open_ = false;
  std::printf("epoch %lld:", static_cast<long long>(report.epoch));
  for (const auto& [key, value] : report.values) std::printf("  %s %.5g", key.c_str(), value);
  std::printf("\n");
  std::fflush(stdout);
}

void Progress::on_train_end() {
  if (line_open_) print(last_, '\n');
  const double elapsed = std::chrono::duration<double>(Clock::now() - begun_).count();
  std::printf("%lld steps in %s\n", static_cast<long long>(last_.step), duration_text(elapsed).c_str());
  std::fflush(stdout);
}

}  // namespace rankine
