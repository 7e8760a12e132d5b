#pragma once

#include <catch2/catch.hpp>
#include <functional>
#include <string>

#include "runtime/mesh/communicator.hpp"
#include "runtime/mesh/world.hpp"

/// For tests that run on several ranks. All ranks run the same test cases in the same order. After each case
/// the ranks wait for each other, and the run fails everywhere when it failed anywhere.
///
/// A plain REQUIRE that fails on one rank between two collectives leaves the others waiting: they fail too,
/// but only at the groups' deadline. Check what may differ between ranks with REQUIRE_ON_ALL_RANKS.
namespace rankine::test {

World& world();

/// All ranks of the launch; a communicator of its own for every test case.
Communicator& group();

/// Runs `body` on groups of the first n ranks, for every n from `min` to `max` that the launch has.
/// Collective over group(); a body that throws on one rank ends it on all.
void for_groups(int min, int max, const std::function<void(Communicator&)>& body);

struct Verdict {
  bool ok = true;
  std::string who;  ///< the failing ranks and why
};
/// Collective over `group`.
Verdict on_all_ranks(Communicator& group, const std::function<bool()>& check);

}  // namespace rankine::test

/// Fails on all ranks of `group` when `expression` is false or throws on one of them. Collective.
#define REQUIRE_ON_ALL_RANKS(group, ...)                                                               \
  do {                                                                                                 \
    const auto verdict_ = rankine::test::on_all_ranks(group, [&]() -> bool { return (__VA_ARGS__); }); \
    INFO(#__VA_ARGS__ << " on " << verdict_.who);                                                      \
    REQUIRE(verdict_.ok);                                                                              \
  } while (false)
