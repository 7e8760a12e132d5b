#pragma once

#include <cstddef>
#include <vector>

namespace rankine {

/// A tensor's need of pool memory: `bytes` during the time steps [first, last].
struct PoolItem {
  std::size_t bytes = 0;
  int first = 0;
  int last = 0;
};

/// Places for items that live at the same time never overlap. Offsets are multiples of 64 bytes.
struct PoolPlan {
  std::vector<std::size_t> offsets;  ///< one an item
  std::size_t bytes = 0;             ///< size of the pool
};

/// Walks through time, takes the smallest hole that fits for each item as it is born, and returns it when it
/// dies.
PoolPlan plan_pool(const std::vector<PoolItem>& items);

}  // namespace rankine
