// Once the memory of a run is planned and touched, nothing grows.
#include <unistd.h>

#include <fstream>

#include "test/launched.hpp"
#include "test/training/fixture_run.hpp"

using namespace rankine;
using namespace rankine::testing;

namespace {

/// Bytes of this process that are in memory.
std::int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::int64_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

class ResidentMemory : public Callback {
 public:
  void on_step_end(const StepReport& report, bool&) override {
    if (report.step == 2) after_two_ = resident_bytes();
    last_ = resident_bytes();
  }
  std::int64_t growth() const { return last_ - after_two_; }

 private:
  std::int64_t after_two_ = 0, last_ = 0;
};

}  // namespace

TEST_CASE("memory doesn't grow after the second step", "[memory][unsanitized]") {
  // A pass of tiny_gpt has megabytes of activations and its gradients 180 KiB. What may come late are pages
  // of MPI's buffers and of the heap, and what the test itself records.
  constexpr std::int64_t k_steps = 200, k_late = 256 << 10;
  for (const char* fixture : {"tiny_gpt", "two_outputs"}) {
    ResidentMemory memory;
    RunOptions options;
    options.steps = k_steps;
    options.shuffle = true;
    options.accumulate = 2;
    options.threads = 2;
    options.watcher = &memory;
    run_fixture(test::group(), fixture, options);
    INFO(fixture << " grew by " << memory.growth() << " bytes");
    REQUIRE_ON_ALL_RANKS(test::group(), memory.growth() < k_late);
  }
}
