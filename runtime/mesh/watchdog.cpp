#include "runtime/mesh/watchdog.hpp"

#include <algorithm>
#include <utility>

namespace rankine {
namespace {

constexpr auto k_period = std::chrono::milliseconds(250);
constexpr auto k_grace = std::chrono::seconds(3);

}  // namespace

Watchdog::Watchdog(FindDead find_dead, EndJob end_job)
    : find_dead_(std::move(find_dead)), end_job_(std::move(end_job)), thread_([this] { run(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void Watchdog::begin(const Wait& wait) {
  const std::lock_guard lock(mutex_);
  waits_.push_back(&wait);
}

void Watchdog::end(const Wait& wait) {
  const std::lock_guard lock(mutex_);
  waits_.erase(std::find(waits_.begin(), waits_.end(), &wait));
}

void Watchdog::run() {
  std::unique_lock lock(mutex_);
  std::string dead;
  while (!wake_.wait_for(lock, k_period, [&] { return stopping_; })) {
    // A death counts when it is seen twice, and launchers that end the job by themselves get time to do so.
    std::string dead_now = find_dead_();
    std::string why;
    if (!dead_now.empty() && dead_now == dead) why = dead_now;
    dead = std::move(dead_now);
    for (const Wait* wait : waits_) {
      if (why.empty() && Clock::now() > wait->deadline + k_grace) why = wait->describe();
    }
    if (!why.empty()) end_job_(why);
  }
}

}  // namespace rankine
