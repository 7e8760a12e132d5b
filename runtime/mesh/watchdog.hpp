#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace rankine {

/// A thread that ends the job when this rank waits too long, or when a rank of its node has died. It makes no
/// MPI call but the abort. Waits throw by themselves at their deadline, so the thread leaves them a grace: it
/// acts for those that are stuck inside a library.
class Watchdog {
 public:
  using Clock = std::chrono::steady_clock;
  /// One wait in progress.
  struct Wait {
    Clock::time_point deadline;
    std::function<std::string()> describe;  ///< who is missing; called on the watchdog's thread
  };
  /// Names a rank that died, or gives an empty text. Called several times a second.
  using FindDead = std::function<std::string()>;
  /// Ends the job and says why. Doesn't return.
  using EndJob = std::function<void(const std::string& why)>;

  Watchdog(FindDead find_dead, EndJob end_job);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  void begin(const Wait& wait);
  void end(const Wait& wait);

 private:
  void run();

  FindDead find_dead_;
  EndJob end_job_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::vector<const Wait*> waits_;
  std::thread thread_;
};

}  // namespace rankine
