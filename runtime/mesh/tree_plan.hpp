#pragma once

#include <vector>

#include "runtime/mesh/communicator.hpp"

namespace rankine {

/// The additions of a tree sum whose nodes lie on several ranks, as a list. All nodes of all ranks are
/// numbered in leaf order.
struct TreePlan {
  struct Step {
    int left;
    int right;
  };
  std::vector<int> first_node;  ///< of rank r; first_node[ranks] is the number of all nodes
  std::vector<Step> steps;      ///< left += right, in this order
  int root = 0;                 ///< the node that holds the sum after the steps
  /// Every rank has one node, all of one level, and their number is a power of two: then partners at distance
  /// 1, 2, 4, … add in tree order.
  bool butterfly = false;

  int nodes() const { return first_node.back(); }
  int nodes_of(int rank) const {
    const auto r = static_cast<std::size_t>(rank);
    return first_node[r + 1] - first_node[r];
  }
};

/// Throws CommunicationError when the runs don't adjoin or don't cover the leaves.
TreePlan plan_tree(const TreeShares& shares);

/// out = left + right, element by element; out may be left. Float types only.
void add_elements(DType dtype, void* out, const void* left, const void* right, std::int64_t count);

}  // namespace rankine
