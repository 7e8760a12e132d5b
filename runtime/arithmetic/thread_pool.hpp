#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace rankine {

/// A fixed set of threads that share the items of one loop at a time. The calling thread works too, so a pool
/// of one has no threads of its own. What an item computes must not depend on who runs it: then results are
/// equal for any number of threads.
class ThreadPool {
 public:
  /// `threads` >= 1 counts the caller.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls fn(item) or fn(item, worker), worker in [0, threads()), for each item in [0, n), and returns when
  /// all are done. The first exception that an item throws is thrown here; items that haven't begun by then
  /// are left out. One loop at a time, from one thread; `fn` must not start another.
  template <class F>
  void parallel_for(std::int64_t n, F&& fn) {
    if (n == 0) return;
    if (workers_.empty() || n == 1) {
      for (std::int64_t i = 0; i < n; ++i) call(fn, i, 0);
      return;
    }
    using Function = std::remove_reference_t<F>;
    run(
        n, [](void* f, std::int64_t i, int worker) { call(*static_cast<Function*>(f), i, worker); },
        const_cast<void*>(static_cast<const void*>(&fn)));
  }

 private:
  using Invoke = void (*)(void* function, std::int64_t item, int worker);
  template <class F>
  static void call(F& fn, std::int64_t i, int worker) {
    if constexpr (std::is_invocable_v<F&, std::int64_t, int>) {
      fn(i, worker);
    } else {
      fn(i);
    }
  }
  void run(std::int64_t n, Invoke invoke, void* function);
  void take_items(int worker);
  void work(int worker);
  bool wait_for_loop(std::uint64_t seen);

  // The loop in progress. Written by the caller under mutex_ while no worker is inside it.
  std::int64_t items_ = 0;
  Invoke invoke_ = nullptr;
  void* function_ = nullptr;
  std::atomic<std::int64_t> next_{0};
  std::exception_ptr error_;

  std::mutex mutex_;
  std::condition_variable opened_, left_;
  std::atomic<std::uint64_t> loop_{0};  ///< number of the newest loop; workers spin on it
  std::atomic<int> inside_{0};          ///< workers inside it; changed under mutex_
  bool open_ = false;                   ///< whether workers may still enter it
  bool stop_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace rankine
