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

/// Sixteen elements, anywhere in memory: compilers turn them into whatever vectors the machine has.
template <class T>
struct BlockOf {
  using type [[gnu::vector_size(16 * sizeof(T)), gnu::aligned(alignof(T)), gnu::may_alias]] = T;
};

/// What is added to was often just read by another core, on the way to another rank: asking for it in time,
/// in order to write, halves the time of an addition.
inline void prefetch_to_write(const void* line) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" ::"m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, 1);
#endif
}

template <class T>
void add_typed(T* out, const T* left, const T* right, std::int64_t count) {
  using Block = typename BlockOf<T>::type;
  constexpr std::int64_t k_block = 16;
  constexpr std::int64_t k_ahead = 1024 / sizeof(T);
  std::int64_t i = 0;
  for (; i + k_block <= count; i += k_block) {
    for (std::size_t line = 0; line < sizeof(Block); line += 64) {
      prefetch_to_write(reinterpret_cast<const char*>(out + i + k_ahead) + line);
    }
    *reinterpret_cast<Block*>(out + i) =
        *reinterpret_cast<const Block*>(left + i) + *reinterpret_cast<const Block*>(right + i);
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
