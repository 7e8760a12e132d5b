#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "runtime/error.hpp"
#include "runtime/mesh/mpi_communicator.hpp"
#include "test/launched.hpp"

using namespace rankine;
using Catch::Matchers::Contains;

namespace {

/// The value of leaf `leaf` at element `i`: any rank can compute it. Magnitudes differ by 2^40, so that every
/// order of additions gives other bits.
template <class T>
T leaf_value(std::int64_t leaf, std::int64_t i) {
  std::uint64_t h =
      static_cast<std::uint64_t>(leaf) * 1000003u + static_cast<std::uint64_t>(i) * 7919u + 12345u;
  h = (h ^ (h >> 31)) * 0x9e3779b97f4a7c15u;
  h ^= h >> 29;
  const double mantissa = static_cast<double>(h >> 12) * 0x1p-52 - 0.5;
  return static_cast<T>(std::ldexp(mantissa, static_cast<int>(h % 41) - 20));
}

/// The definition: the tree over leaves, absent right children pass through.
template <class T>
T tree_value(Node node, std::int64_t leaves, std::int64_t i) {
  if (node.level == 0) return leaf_value<T>(node.index, i);
  const T left = tree_value<T>({node.level - 1, 2 * node.index}, leaves, i);
  const Node right{node.level - 1, 2 * node.index + 1};
  return leaves_under(right, leaves).size() == 0 ? left : left + tree_value<T>(right, leaves, i);
}

template <class T>
bool same_bits(T a, T b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

/// This rank's canonical nodes.
template <class T>
struct Nodes {
  std::vector<std::vector<T>> values;
  std::vector<void*> pointers;

  Nodes(const TreeShares& shares, int rank, std::int64_t count) {
    for (const Node node : canonical_nodes(shares.runs[static_cast<std::size_t>(rank)], shares.leaves)) {
      values.emplace_back(static_cast<std::size_t>(count));
      for (std::int64_t i = 0; i < count; ++i) {
        values.back()[static_cast<std::size_t>(i)] = tree_value<T>(node, shares.leaves, i);
      }
    }
    for (auto& v : values) pointers.push_back(v.data());
  }
};

/// Elements of [range) that differ from the definition; elements outside it must still be NaN.
template <class T>
std::int64_t count_wrong(const std::vector<T>& result, std::int64_t leaves, Range range) {
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(result.size()); ++i) {
    const T got = result[static_cast<std::size_t>(i)];
    const bool inside = i >= range.begin && i < range.end;
    const bool right =
        inside ? same_bits(got, leaves == 0 ? T{0} : tree_value<T>({root_level(leaves), 0}, leaves, i))
               : std::isnan(got);
    wrong += right ? 0 : 1;
  }
  return wrong;
}

/// Cuts of `leaves` among `ranks`: even, all to the first or last, uneven with empty runs.
std::vector<TreeShares> cuts(std::int64_t leaves, int ranks) {
  std::vector<TreeShares> all = {{leaves, split_evenly(leaves, ranks)}};
  std::vector<Range> first(static_cast<std::size_t>(ranks), {leaves, leaves});
  first[0] = {0, leaves};
  all.push_back({leaves, first});
  std::vector<Range> last(static_cast<std::size_t>(ranks), {0, 0});
  last.back() = {0, leaves};
  all.push_back({leaves, last});
  std::mt19937 random(static_cast<unsigned>(leaves * 31 + ranks));
  for (int variant = 0; variant < 3; ++variant) {
    std::vector<std::int64_t> at = {0, leaves};
    for (int r = 1; r < ranks; ++r) {
      at.push_back(static_cast<std::int64_t>(random() % static_cast<unsigned>(leaves + 1)));
    }
    std::sort(at.begin(), at.end());
    TreeShares shares{leaves, {}};
    for (int r = 0; r < ranks; ++r) {
      shares.runs.push_back({at[static_cast<std::size_t>(r)], at[static_cast<std::size_t>(r) + 1]});
    }
    all.push_back(shares);
  }
  return all;
}

/// Message sizes that reach every path with small data: those of users; everything in short pipelined chunks,
/// each in several messages; everything exchanged whole.
const MessageSizes k_sizes[] = {{}, {64, 96, 0}, {100, 4096, 1 << 20}};

void set_sizes(Communicator& group, MessageSizes sizes) {
  if (auto* several = dynamic_cast<MpiCommunicator*>(&group)) several->set_message_sizes(sizes);
}

/// A sum in flight and its memory, poisoned with NaN.
template <class T>
struct Sum {
  Nodes<T> nodes;
  std::vector<T> result;
  WorkHandle work;

  Sum(const TreeShares& shares, int rank, std::int64_t count)
      : nodes(shares, rank, count),
        result(static_cast<std::size_t>(count), std::numeric_limits<T>::quiet_NaN()) {}
};

}  // namespace

TEMPLATE_TEST_CASE("a tree all-reduce has the bits of the tree", "[tree-sum]", float, double) {
  test::for_groups(1, 8, [](Communicator& group) {
    for (const auto& sizes : k_sizes) {
      set_sizes(group, sizes);
      for (const std::int64_t leaves : {0, 1, 7, 8, 13}) {
        for (const auto& shares : cuts(leaves, group.size())) {
          for (const std::int64_t count : {0, 1, 5, 333}) {
            for (const bool in_place : {false, true}) {
              Sum<TestType> sum(shares, group.rank(), count);
              auto& result = in_place && !sum.nodes.values.empty() ? sum.nodes.values[0] : sum.result;
              group.tree_all_reduce(dtype_of<TestType>, shares, sum.nodes.pointers, count, result.data())
                  ->wait();
              CHECK(count_wrong(result, leaves, {0, count}) == 0);
            }
          }
        }
      }
    }
  });
}

TEMPLATE_TEST_CASE("a tree reduce-scatter gives each rank its piece", "[tree-sum]", float, double) {
  test::for_groups(1, 8, [](Communicator& group) {
    for (const auto& sizes : k_sizes) {
      set_sizes(group, sizes);
      for (const std::int64_t leaves : {0, 1, 8, 13}) {
        for (const auto& shares : cuts(leaves, group.size())) {
          for (const std::int64_t count : {0, 1, 333}) {
            // The cuts of leaves serve as cuts of elements as well: even ones, all to one rank, empty ones.
            for (const auto& pieces : cuts(count, group.size())) {
              Sum<TestType> sum(shares, group.rank(), count);
              group
                  .tree_reduce_scatter(dtype_of<TestType>, shares, sum.nodes.pointers, count,
                                       sum.result.data(), pieces.runs)
                  ->wait();
              const Range mine = pieces.runs[static_cast<std::size_t>(group.rank())];
              CHECK(count_wrong(sum.result, leaves, mine) == 0);
            }
          }
        }
      }
    }
  });
}

TEST_CASE("long sums go through several chunks of the usual size", "[tree-sum]") {
  test::for_groups(2, 5, [](Communicator& group) {
    const std::int64_t count = 300'001;  // more than a pipeline's window of chunks
    for (const std::int64_t leaves : {group.size(), group.size() + 1}) {
      const TreeShares shares{leaves, split_evenly(leaves, group.size())};
      Sum<float> sum(shares, group.rank(), count);
      group.tree_all_reduce(DType::float32, shares, sum.nodes.pointers, count, sum.result.data())->wait();
      CHECK(count_wrong(sum.result, leaves, {0, count}) == 0);
    }
  });
}

TEST_CASE("works finish in any order", "[tree-sum]") {
  test::for_groups(1, 8, [](Communicator& group) {
    for (const auto& sizes : k_sizes) {
      set_sizes(group, sizes);
      std::vector<std::unique_ptr<Sum<float>>> sums;
      std::vector<TreeShares> shares;
      for (std::int64_t i = 0; i < 24; ++i) {
        const auto all = cuts(8 + i % 3, group.size());
        shares.push_back(all[static_cast<std::size_t>(i) % all.size()]);
        sums.push_back(std::make_unique<Sum<float>>(shares.back(), group.rank(), 50 + 37 * i));
        auto& sum = *sums.back();
        sum.work = group.tree_all_reduce(DType::float32, shares.back(), sum.nodes.pointers, 50 + 37 * i,
                                         sum.result.data());
      }
      CHECK(sums[5]->work->sequence() == sums[4]->work->sequence() + 1);
      // Each rank waits in an order of its own.
      std::vector<std::size_t> order(sums.size());
      for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
      std::shuffle(order.begin(), order.end(), std::mt19937(static_cast<unsigned>(group.rank())));
      for (const std::size_t i : order) {
        while (i % 2 == 0 && !sums[i]->work->done()) continue;
        sums[i]->work->wait();
        CHECK(count_wrong(sums[i]->result, shares[i].leaves, {0, 50 + 37 * static_cast<std::int64_t>(i)}) ==
              0);
      }
    }
  });
}

TEST_CASE("a work that nobody waits for finishes", "[tree-sum]") {
  test::for_groups(2, 8, [](Communicator& group) {
    const TreeShares shares{8, split_evenly(8, group.size())};
    Sum<float> sum(shares, group.rank(), 1000);
    group.tree_all_reduce(DType::float32, shares, sum.nodes.pointers, 1000, sum.result.data());
    CHECK(count_wrong(sum.result, 8, {0, 1000}) == 0);
  });
}

TEST_CASE("infinities and NaN go through a tree sum", "[tree-sum]") {
  test::for_groups(2, 8, [](Communicator& group) {
    const TreeShares shares{group.size(), split_evenly(group.size(), group.size())};
    const float inf = std::numeric_limits<float>::infinity();
    const bool last = group.rank() + 1 == group.size();
    float values[] = {last ? inf : 1, last ? -inf : inf, -0.0f, std::numeric_limits<float>::denorm_min()};
    void* const nodes[] = {values};
    group.tree_all_reduce(DType::float32, shares, nodes, 4, values)->wait();
    CHECK(values[0] == inf);
    CHECK(std::isnan(values[1]));
    CHECK((values[2] == 0 && std::signbit(values[2])));
    CHECK(values[3] == static_cast<float>(group.size()) * std::numeric_limits<float>::denorm_min());
  });
}

TEST_CASE("tree sums refuse what makes no sense", "[tree-sum]") {
  auto& group = test::group();
  float values[] = {1};
  void* const nodes[] = {values};
  const TreeShares shares{group.size(), split_evenly(group.size(), group.size())};
  CHECK_THROWS_WITH(group.tree_all_reduce(DType::int32, shares, nodes, 1, values), Contains("not int32"));
  CHECK_THROWS_WITH(group.tree_all_reduce(DType::float32, shares, nodes, -1, values),
                    Contains("-1 elements"));
  CHECK_THROWS_WITH(group.tree_all_reduce(DType::float32, shares, {}, 1, values), Contains("brings 0 nodes"));
  CHECK_THROWS_WITH(group.tree_reduce_scatter(DType::float32, shares, nodes, 1, values, {}),
                    Contains("one a rank"));
  const std::vector<Range> outside(static_cast<std::size_t>(group.size()), Range{0, 2});
  CHECK_THROWS_WITH(group.tree_reduce_scatter(DType::float32, shares, nodes, 1, values, outside),
                    Contains("[0, 2) isn't inside"));
  TreeShares apart = shares;
  apart.leaves = 2 * group.size() + 1;
  if (group.size() > 1) {
    CHECK_THROWS_WITH(group.tree_all_reduce(DType::float32, apart, nodes, 1, values),
                      Contains("the runs end at"));
  }
}
