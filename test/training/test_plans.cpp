#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

#include "runtime/training/pool_plan.hpp"
#include "runtime/training/step_plan.hpp"

using namespace rankine;

TEST_CASE("items that live together never share bytes", "[pool]") {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<PoolItem> items(static_cast<std::size_t>(random() % 60));
    for (PoolItem& item : items) {
      item.bytes = random() % 1000;
      item.first = static_cast<int>(random() % 40);
      item.last = item.first + static_cast<int>(random() % 20);
    }
    const PoolPlan plan = plan_pool(items);
    for (std::size_t a = 0; a < items.size(); ++a) {
      CHECK(plan.offsets[a] % 64 == 0);
      CHECK(plan.offsets[a] + items[a].bytes <= plan.bytes);
      for (std::size_t b = 0; b < a; ++b) {
        const bool together = items[a].first <= items[b].last && items[b].first <= items[a].last;
        const bool apart = plan.offsets[a] + items[a].bytes <= plan.offsets[b] ||
                           plan.offsets[b] + items[b].bytes <= plan.offsets[a] || items[a].bytes == 0 ||
                           items[b].bytes == 0;
        CHECK((!together || apart));
      }
    }
  }
}

TEST_CASE("memory is used again once a tensor is dead", "[pool]") {
  // A chain: each tensor lives while the next is made, so two places are enough.
  std::vector<PoolItem> chain;
  for (int i = 0; i < 100; ++i) chain.push_back({640, i, i + 1});
  CHECK(plan_pool(chain).bytes == 2 * 640);
  CHECK(plan_pool({}).bytes == 0);
}

TEST_CASE("the passes of all ranks cut a batch into whole aligned leaves", "[step]") {
  for (std::int64_t samples : {1, 2, 5, 8, 12, 33}) {
    for (std::int64_t per_leaf : {1, 2, 4}) {
      for (int ranks = 1; ranks <= 8; ++ranks) {
        for (int accumulate = 1; accumulate <= 4; ++accumulate) {
          std::int64_t at = 0;
          for (int rank = 0; rank < ranks; ++rank) {
            const StepPlan plan = plan_step(samples, per_leaf, ranks, rank, accumulate);
            CHECK(plan.shares.leaves == (samples + per_leaf - 1) / per_leaf);
            CHECK(static_cast<int>(plan.shares.runs.size()) == ranks);
            NodeStack<Range> merged(plan.shares.leaves);
            for (const PlannedPass& pass : plan.passes) {
              CHECK(pass.samples.begin == at);
              at = pass.samples.end;
              merged.push(pass.node, pass.samples,
                          [](Range& left, const Range& right) { left.end = right.end; });
            }
            // Merging the parts gives the canonical nodes of the whole run.
            const auto nodes =
                canonical_nodes(plan.shares.runs[static_cast<std::size_t>(rank)], plan.shares.leaves);
            REQUIRE(merged.entries().size() == nodes.size());
            for (std::size_t i = 0; i < nodes.size(); ++i) CHECK(merged.entries()[i].node == nodes[i]);
          }
          CHECK(at == samples);
        }
      }
    }
  }
}

TEST_CASE("one rank without accumulation has one pass", "[step]") {
  const StepPlan plan = plan_step(10, 1, 1, 0, 1);
  REQUIRE(plan.passes.size() == 1);
  CHECK(plan.passes[0].samples == Range{0, 10});
  CHECK(plan.largest_pass() == 10);
  CHECK(plan_step(2, 1, 4, 3, 1).passes.empty());
}
