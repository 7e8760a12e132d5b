#include <catch2/catch.hpp>

#include "runtime/arithmetic/leaf.hpp"

using namespace rankine;

namespace {

/// The definition, word for word: the tree over slots, absent right children pass through.
std::string tree_text(const std::vector<std::pair<std::int64_t, std::string>>& leaves, std::int64_t first,
                      int level) {
  if (level == 0) {
    for (const auto& [slot, text] : leaves) {
      if (slot == first) return text;
    }
    return "";
  }
  const auto left = tree_text(leaves, first, level - 1);
  const auto right = tree_text(leaves, first + (std::int64_t{1} << (level - 1)), level - 1);
  if (right.empty()) return left;
  return "(" + left + "+" + right + ")";
}

std::string steps_text(const Leaves& leaves) {
  std::vector<std::string> stack;
  std::int64_t i = 0;
  for (const auto& step : leaf_steps(leaves)) {
    std::string acc = std::to_string(i++);
    for (int f = 0; f < step.folds; ++f) {
      acc = "(" + stack.back() + "+" + acc + ")";
      stack.pop_back();
    }
    stack.push_back(acc);
  }
  REQUIRE(stack.size() == 1);
  return stack[0];
}

}  // namespace

TEST_CASE("leaf steps follow the tree over slots", "[leaf]") {
  for (std::int64_t extent = 1; extent <= 40; ++extent) {
    for (std::int64_t group : {extent, std::int64_t{1}, std::int64_t{3}, std::int64_t{6}, std::int64_t{7}}) {
      for (std::int64_t leaf : {1, 2, 3, 5}) {
        const Leaves leaves{extent, leaf, group};
        const auto steps = leaf_steps(leaves);
        CHECK(static_cast<std::int64_t>(steps.size()) == leaves.leaves());
        std::vector<std::pair<std::int64_t, std::string>> named;
        std::int64_t i = 0, at = 0;
        for (const auto& step : steps) {
          CHECK(step.terms.begin == at);
          at = step.terms.end;
          const std::int64_t g = step.terms.begin / group;
          named.emplace_back(g * leaves.slots_per_group() + (step.terms.begin - g * group) / leaf,
                             std::to_string(i++));
        }
        CHECK(at == extent);
        CHECK(steps_text(leaves) == tree_text(named, 0, root_level(named.back().first + 1)));
      }
    }
  }
  CHECK(leaf_steps(Leaves::of(0, 4)).empty());
}

TEST_CASE("canonical nodes of any cut merge to the one tree", "[leaf]") {
  const auto add = [](std::string& left, const std::string& right) { left = "(" + left + "+" + right + ")"; };
  for (std::int64_t count = 1; count <= 33; ++count) {
    const auto value = [&](Node node) {
      std::vector<std::pair<std::int64_t, std::string>> leaves;
      const Range under = leaves_under(node, count);
      for (std::int64_t i = under.begin; i < under.end; ++i) leaves.emplace_back(i, std::to_string(i));
      return tree_text(leaves, node.index << node.level, node.level);
    };
    const std::string whole = value({root_level(count), 0});
    for (int parts = 1; parts <= 9; ++parts) {
      NodeStack<std::string> stack(count);
      for (const Range run : split_evenly(count, parts)) {
        for (const Node node : canonical_nodes(run, count)) stack.push(node, value(node), add);
      }
      REQUIRE(stack.entries().size() == 1);
      CHECK(stack.entries()[0].value == whole);
      CHECK(stack.entries()[0].node == Node{root_level(count), 0});
    }
  }
}

TEST_CASE("splits give the first parts one more", "[leaf]") {
  const auto sizes = [](std::int64_t n, int parts) {
    std::vector<std::int64_t> s;
    for (const Range r : split_evenly(n, parts)) s.push_back(r.size());
    return s;
  };
  CHECK(sizes(10, 4) == std::vector<std::int64_t>{3, 3, 2, 2});  // keras.md I.21
  CHECK(sizes(7, 3) == std::vector<std::int64_t>{3, 2, 2});
  CHECK(sizes(3, 4) == std::vector<std::int64_t>{1, 1, 1, 0});
}

TEST_CASE("leaf sizes are fixed functions", "[leaf]") {
  CHECK(feature_leaf(1) == 1);
  CHECK(feature_leaf(7) == 1);
  CHECK(feature_leaf(32) == 4);
  CHECK(feature_leaf(101) == 8);
  CHECK(feature_leaf(256) == 64);
  CHECK(feature_leaf(1024) == 128);
  CHECK(feature_leaf(4096) == 256);
  CHECK(feature_leaf(50257) == 256);
  CHECK(samples_per_leaf(8, 256) == 1);
  CHECK(samples_per_leaf(256, 1) == 16);
  CHECK(samples_per_leaf(10, 1) == 1);
  CHECK(samples_per_leaf(4096, 1) == 32);
}
