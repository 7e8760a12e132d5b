#include "runtime/arithmetic/leaf.hpp"

#include <algorithm>
#include <bit>

namespace rankine {
namespace {

std::int64_t floor_power_of_two(std::int64_t n) {
  return n < 1 ? 1 : static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(n)));
}

std::int64_t ceil_divide(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// How many partial sums each step folds, its leaf being at slots[i]. After a leaf, everything inside the
/// largest aligned block that the next leaf doesn't share is complete.
void set_folds(std::span<const std::uint64_t> slots, std::vector<LeafStep>& steps) {
  std::vector<std::uint64_t> pending;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const int level = i + 1 < steps.size() ? std::bit_width(slots[i] ^ slots[i + 1]) - 1 : 63;
    const std::uint64_t block = level >= 63 ? 0 : slots[i] >> level;
    while (!pending.empty() && (level >= 63 || pending.back() >> level == block)) {
      pending.pop_back();
      ++steps[i].folds;
    }
    pending.push_back(slots[i]);
  }
}

}  // namespace

std::int64_t Leaves::slots_per_group() const {
  const auto pieces =
      static_cast<std::uint64_t>(ceil_divide(std::min(group, std::max<std::int64_t>(extent, 1)), leaf));
  return static_cast<std::int64_t>(std::bit_ceil(pieces));
}

std::int64_t Leaves::leaves() const {
  const std::int64_t whole = extent / group;
  return whole * ceil_divide(group, leaf) + ceil_divide(extent - whole * group, leaf);
}

std::vector<LeafStep> leaf_steps(const Leaves& leaves) {
  std::vector<LeafStep> steps;
  std::vector<std::uint64_t> slots;
  const std::int64_t stride = leaves.slots_per_group();
  for (std::int64_t g = 0; g * leaves.group < leaves.extent; ++g) {
    const std::int64_t end = std::min(leaves.extent, (g + 1) * leaves.group);
    std::int64_t slot = g * stride;
    for (std::int64_t begin = g * leaves.group; begin < end; begin += leaves.leaf) {
      steps.push_back({{begin, std::min(end, begin + leaves.leaf)}, 0});
      slots.push_back(static_cast<std::uint64_t>(slot++));
    }
  }
  set_folds(slots, steps);
  return steps;
}

std::vector<LeafStep> leaf_steps(const Leaves& leaves, std::span<const std::int64_t> present) {
  std::vector<LeafStep> steps;
  std::vector<std::uint64_t> slots;
  const std::int64_t stride = leaves.slots_per_group();
  for (std::size_t i = 0; i < present.size(); ++i) {
    const std::int64_t group = present[i] / leaves.group;
    const auto slot =
        static_cast<std::uint64_t>(group * stride + (present[i] - group * leaves.group) / leaves.leaf);
    const auto place = static_cast<std::int64_t>(i);
    if (slots.empty() || slots.back() != slot) {
      slots.push_back(slot);
      steps.push_back({{place, place}, 0});
    }
    steps.back().terms.end = place + 1;
  }
  set_folds(slots, steps);
  return steps;
}

std::int64_t waiting_sums(std::span<const LeafStep> steps) {
  std::int64_t now = 0, most = 0;
  for (const LeafStep& step : steps) {
    most = std::max(most, ++now);
    now -= step.folds;
  }
  return most;
}

int root_level(std::int64_t count) {
  return count <= 1 ? 0 : std::bit_width(static_cast<std::uint64_t>(count - 1));
}

Range leaves_under(Node node, std::int64_t count) {
  return {std::min(count, node.index << node.level), std::min(count, (node.index + 1) << node.level)};
}

std::vector<Node> canonical_nodes(Range run, std::int64_t count) {
  std::vector<Node> nodes;
  const int top = root_level(count);
  for (std::int64_t at = run.begin; at < run.end;) {
    Node node{0, at};
    while (node.level < top && (node.index & 1) == 0) {
      const Node parent{node.level + 1, node.index >> 1};
      if (leaves_under(parent, count).end > run.end) break;
      node = parent;
    }
    nodes.push_back(node);
    at = leaves_under(node, count).end;
  }
  return nodes;
}

std::vector<Range> split_evenly(std::int64_t count, int parts) {
  std::vector<Range> ranges;
  std::int64_t at = 0;
  for (int i = 0; i < parts; ++i) {
    const std::int64_t size = count / parts + (i < count % parts ? 1 : 0);
    ranges.push_back({at, at + size});
    at += size;
  }
  return ranges;
}

std::int64_t feature_leaf(std::int64_t n) {
  const std::int64_t eighth = std::min<std::int64_t>(floor_power_of_two(n / 8), 256);
  return n >= 256 ? std::max<std::int64_t>(eighth, 64) : eighth;
}

std::int64_t samples_per_leaf(std::int64_t batch, std::int64_t rows) {
  constexpr std::int64_t k_rows_wanted = 32;  // below it the GEMM of a weight's gradient loses speed
  if (rows >= k_rows_wanted) return 1;
  const std::int64_t for_speed = floor_power_of_two(k_rows_wanted / std::max<std::int64_t>(rows, 1));
  return std::min(for_speed, floor_power_of_two(batch / 16));
}

}  // namespace rankine
