// Kernels, the reading of the next batch and the reduction of gradients beside each other, for the thread
// sanitizer.
#include <catch2/catch.hpp>

#include "runtime/mesh/self_communicator.hpp"
#include "test/training/fixture_run.hpp"

using namespace rankine;
using namespace rankine::testing;

TEST_CASE("a run with two threads has the bits of one", "[training][threads]") {
  for (const char* fixture : {"gqa", "dropout"}) {
    RunOptions options;
    options.steps = 3;
    options.accumulate = 2;
    options.shuffle = true;
    SelfCommunicator alone("one rank");
    const std::string expected = run_fixture(alone, fixture, options).digest;
    options.threads = 2;
    CHECK(run_fixture(alone, fixture, options).digest == expected);
  }
}
