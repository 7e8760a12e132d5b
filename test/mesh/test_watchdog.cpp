#include <atomic>
#include <catch2/catch.hpp>

#include "runtime/mesh/watchdog.hpp"

using namespace rankine;
using namespace std::chrono_literals;

namespace {

/// What a watchdog said when it ended the job.
class Verdict {
 public:
  Watchdog::EndJob end_job() {
    return [this](const std::string& why) {
      const std::lock_guard lock(mutex_);
      if (text_.empty()) text_ = why;
      said_.notify_all();
    };
  }
  /// Empty when nothing is said within the time.
  std::string within(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    said_.wait_for(lock, time, [&] { return !text_.empty(); });
    return text_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable said_;
  std::string text_;
};

std::string nobody() {
  return "";
}

}  // namespace

TEST_CASE("a watchdog ends a job whose wait passed its deadline and grace", "[mesh][threads]") {
  Verdict verdict;
  Watchdog watchdog(nobody, verdict.end_job());
  const Watchdog::Wait wait{Watchdog::Clock::now(), [] { return std::string("rank 3 is missing"); }};
  watchdog.begin(wait);
  CHECK(verdict.within(2000ms).empty());
  CHECK(verdict.within(20s) == "rank 3 is missing");
  watchdog.end(wait);
}

TEST_CASE("a wait that ended in time is forgotten", "[mesh][threads]") {
  Verdict verdict;
  Watchdog watchdog(nobody, verdict.end_job());
  const Watchdog::Wait late{Watchdog::Clock::now() - 1h, [] { return std::string("late"); }};
  const Watchdog::Wait early{Watchdog::Clock::now() + 1h, [] { return std::string("early"); }};
  watchdog.begin(early);
  watchdog.begin(late);
  watchdog.end(late);
  CHECK(verdict.within(1000ms).empty());
  watchdog.end(early);
}

TEST_CASE("a death counts when it is seen twice", "[mesh][threads]") {
  Verdict verdict;
  std::atomic<int> looks = 0;
  const auto once = [&] { return std::string(++looks == 2 ? "rank 1 is dead" : ""); };
  {
    Watchdog watchdog(once, verdict.end_job());
    while (looks < 4 && verdict.within(100ms).empty()) {
    }
    CHECK(verdict.within(0ms).empty());
  }
  Watchdog watchdog([] { return std::string("rank 1 is dead"); }, verdict.end_job());
  CHECK(verdict.within(20s) == "rank 1 is dead");
}

TEST_CASE("a watchdog that isn't needed any more stops at once", "[mesh][threads]") {
  const auto begin = Watchdog::Clock::now();
  for (int i = 0; i < 20; ++i) Watchdog watchdog(nobody, [](const std::string&) {});
  CHECK(Watchdog::Clock::now() - begin < 5s);
}
