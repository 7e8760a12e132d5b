#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "test/launched.hpp"

using namespace rankine;

// Hidden tests that must fail: run_faults.py checks how the launched test main ends with them.

TEST_CASE("one rank fails alone", "[.fault]") {
  test::group().set_deadline(std::chrono::seconds(2));
  REQUIRE(test::group().rank() != 1);
  CHECK_THROWS(test::group().barrier());  // nobody waits for ever
}

TEST_CASE("one rank never comes", "[.fault]") {
  if (test::group().rank() == 1) std::this_thread::sleep_for(std::chrono::hours(1));
  test::group().barrier();
}
