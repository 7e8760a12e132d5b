#include <catch2/catch.hpp>

#include "runtime/mesh/node_group.hpp"

using namespace rankine;
using Catch::Matchers::Contains;

TEST_CASE("ranks with one host name and boot id share a node", "[mesh]") {
  const HostId a{"a", "1"};
  const HostId b{"b", "2"};
  const auto groups = find_node_groups({a, b, a, a}, {3, 1, 3, 3});
  CHECK(groups.nodes == 2);
  CHECK(groups.node == std::vector<int>{0, 1, 0, 0});
  CHECK(groups.local_rank == std::vector<int>{0, 0, 1, 2});
  CHECK(groups.local_size == std::vector<int>{3, 1, 3, 3});
  CHECK(groups.notice.empty());
}

TEST_CASE("equal host names of two machines are two nodes", "[mesh]") {
  const auto groups = find_node_groups({{"worker", "1"}, {"worker", "2"}}, {1, 1});
  CHECK(groups.nodes == 2);
  CHECK(groups.local_rank == std::vector<int>{0, 0});
}

TEST_CASE("a shared-memory split of singletons is overruled and said", "[mesh]") {
  const HostId a{"node7", "1"};
  const HostId b{"node8", "2"};
  const auto groups = find_node_groups({a, a, b}, {1, 1, 1});
  CHECK(groups.local_rank == std::vector<int>{0, 1, 0});
  CHECK_THAT(groups.notice, Contains("MPI sees 1 rank(s)") && Contains("2 rank(s) run on host node7"));
}
