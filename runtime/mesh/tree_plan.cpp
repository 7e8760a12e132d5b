#include "runtime/mesh/tree_plan.hpp"

#include <bit>
#include <string>

#include "runtime/error.hpp"

namespace rankine {
namespace {

void check_runs(const TreeShares& shares) {
  std::int64_t at = 0;
  for (std::size_t r = 0; r < shares.runs.size(); ++r) {
    const Range run = shares.runs[r];
    if (run.begin != at || run.end < run.begin) {
      throw CommunicationError("a tree sum over " + std::to_string(shares.leaves) + " leaves: rank " +
                               std::to_string(r) + "'s run [" + std::to_string(run.begin) + ", " +
                               std::to_string(run.end) + ") doesn't start at " + std::to_string(at) +
                               ", where the run before it ends");
    }
    at = run.end;
  }
  if (at != shares.leaves) {
    throw CommunicationError("a tree sum over " + std::to_string(shares.leaves) +
                             " leaves: the runs end at " + std::to_string(at));
  }
}

template <class T>
void add_typed(T* out, const T* left, const T* right, std::int64_t count) {
  // All loads of a block stand before its stores, so that compilers vectorise without proving anything about
  // aliases.
  constexpr std::int64_t k_block = 16;
  std::int64_t i = 0;
  for (; i + k_block <= count; i += k_block) {
    T sums[k_block];
    for (std::int64_t j = 0; j < k_block; ++j) sums[j] = left[i + j] + right[i + j];
    for (std::int64_t j = 0; j < k_block; ++j) out[i + j] = sums[j];
  }
  for (; i < count; ++i) out[i] = left[i] + right[i];
}

}  // namespace

TreePlan plan_tree(const TreeShares& shares) {
  check_runs(shares);
  TreePlan plan;
  NodeStack<int> stack(shares.leaves);
  int next = 0;
  bool equal = std::has_single_bit(shares.runs.size());
  int level = -1;
  for (const Range run : shares.runs) {
    plan.first_node.push_back(next);
    const auto nodes = canonical_nodes(run, shares.leaves);
    for (const Node node : nodes) {
      stack.push(node, next++, [&](int left, int right) { plan.steps.push_back({left, right}); });
    }
    equal = equal && nodes.size() == 1 && (level < 0 || nodes[0].level == level);
    if (equal) level = nodes[0].level;
  }
  plan.first_node.push_back(next);
  plan.butterfly = equal;
  if (!stack.entries().empty()) plan.root = stack.entries()[0].value;
  return plan;
}

void add_elements(DType dtype, void* out, const void* left, const void* right, std::int64_t count) {
  switch (dtype) {
    case DType::float32:
      return add_typed(static_cast<float*>(out), static_cast<const float*>(left),
                       static_cast<const float*>(right), count);
    case DType::float64:
      return add_typed(static_cast<double*>(out), static_cast<const double*>(left),
                       static_cast<const double*>(right), count);
    case DType::int32:
      break;
  }
  throw CommunicationError("tree sums add float32 or float64, not int32");
}

}  // namespace rankine
