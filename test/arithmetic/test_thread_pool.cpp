#include <atomic>
#include <catch2/catch.hpp>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "runtime/arithmetic/float_environment.hpp"
#include "runtime/arithmetic/thread_pool.hpp"

#ifdef __SSE2__
#include <xmmintrin.h>
#endif

using namespace rankine;

TEST_CASE("every item of a loop runs once", "[threads]") {
  for (const int threads : {1, 2, 3, 5}) {
    ThreadPool pool(threads);
    CHECK(pool.threads() == threads);
    for (std::int64_t n = 0; n < 50; ++n) {
      std::vector<std::atomic<int>> seen(static_cast<std::size_t>(n));
      std::atomic<bool> worker_in_range{true};
      pool.parallel_for(n, [&](std::int64_t i, int worker) {
        ++seen[static_cast<std::size_t>(i)];
        if (worker < 0 || worker >= threads) worker_in_range = false;
      });
      for (const auto& count : seen) CHECK(count == 1);
      CHECK(worker_in_range);
    }
  }
}

TEST_CASE("what an item throws reaches the caller and the pool goes on", "[threads]") {
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    CHECK_THROWS_WITH(pool.parallel_for(100,
                                        [](std::int64_t i) {
                                          if (i == 7) throw std::runtime_error("item seven");
                                        }),
                      "item seven");
    std::atomic<std::int64_t> sum{0};
    pool.parallel_for(100, [&](std::int64_t i) { sum += i; });
    CHECK(sum == 4950);
  }
  CHECK_THROWS_AS(ThreadPool(0), std::invalid_argument);
}

TEST_CASE("threads compute in the one floating-point state", "[threads]") {
#ifdef __SSE2__
  _mm_setcsr(_mm_getcsr() | 0x8040);  // flush denormals to zero, as some libraries do when they are loaded
  CHECK_FALSE(float_environment_is_set());
#endif
  set_float_environment();
  CHECK(float_environment_is_set());
  ThreadPool pool(3);
  std::atomic<int> good{0};
  pool.parallel_for(64, [&](std::int64_t) { good += float_environment_is_set() ? 1 : 0; });
  CHECK(good == 64);
}
