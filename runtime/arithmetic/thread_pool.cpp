#include "runtime/arithmetic/thread_pool.hpp"

#include <stdexcept>

#include "runtime/arithmetic/float_environment.hpp"

namespace rankine {
namespace {

// Loops of one step follow each other within microseconds: a short spin saves most wake-ups, and it ends soon
// enough not to keep a core from other ranks.
constexpr int k_spins = 400;

void pause_briefly() {
#ifdef __x86_64__
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  if (threads < 1) throw std::invalid_argument("a thread pool needs at least one thread");
  workers_.reserve(static_cast<std::size_t>(threads - 1));
  for (int worker = 1; worker < threads; ++worker) workers_.emplace_back([this, worker] { work(worker); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    loop_.fetch_add(1);
  }
  opened_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run(std::int64_t n, Invoke invoke, void* function) {
  {
    const std::lock_guard lock(mutex_);
    items_ = n;
    invoke_ = invoke;
    function_ = function;
    next_.store(0);
    error_ = nullptr;
    open_ = true;
    loop_.fetch_add(1);
  }
  opened_.notify_all();
  take_items(0);
  // A worker that hasn't woken by now is not waited for: it finds the loop closed.
  std::unique_lock lock(mutex_);
  open_ = false;
  lock.unlock();
  for (int spin = 0; spin < k_spins && inside_.load() != 0; ++spin) pause_briefly();
  lock.lock();
  left_.wait(lock, [this] { return inside_.load() == 0; });
  if (error_) std::rethrow_exception(error_);
}

void ThreadPool::take_items(int worker) {
  try {
    for (std::int64_t i = next_.fetch_add(1); i < items_; i = next_.fetch_add(1))
      invoke_(function_, i, worker);
  } catch (...) {
    next_.store(items_);
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::current_exception();
  }
}

bool ThreadPool::wait_for_loop(std::uint64_t seen) {
  for (int spin = 0; spin < k_spins && loop_.load() == seen; ++spin) pause_briefly();
  std::unique_lock lock(mutex_);
  opened_.wait(
      lock, [&] { return stop_ || loop_.load() != seen; });  // a worker may have seen the last loop_ already
  return !stop_;
}

void ThreadPool::work(int worker) {
  set_float_environment();
  for (std::uint64_t seen = 0; wait_for_loop(seen);) {
    {
      const std::lock_guard lock(mutex_);
      seen = loop_.load();
      if (!open_) continue;
      inside_.fetch_add(1);
    }
    take_items(worker);
    const std::lock_guard lock(mutex_);
    inside_.fetch_sub(1);
    left_.notify_one();
  }
}

}  // namespace rankine
