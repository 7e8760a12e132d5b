#include "runtime/training/pool_plan.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace rankine {
namespace {

constexpr std::size_t k_alignment = 64;

/// The unused stretches of the pool, by offset; neighbours are merged.
class Holes {
 public:
  std::size_t take(std::size_t bytes) {
    auto best = holes_.end();
    for (auto hole = holes_.begin(); hole != holes_.end(); ++hole) {
      if (hole->second >= bytes && (best == holes_.end() || hole->second < best->second)) best = hole;
    }
    if (best == holes_.end()) return grow(bytes);
    const auto [offset, size] = *best;
    holes_.erase(best);
    if (size > bytes) holes_.emplace(offset + bytes, size - bytes);
    return offset;
  }

  void give(std::size_t offset, std::size_t bytes) {
    auto after = holes_.lower_bound(offset);
    if (after != holes_.begin()) {
      const auto before = std::prev(after);
      if (before->first + before->second == offset) {
        offset = before->first;
        bytes += before->second;
        holes_.erase(before);
      }
    }
    if (after != holes_.end() && offset + bytes == after->first) {
      bytes += after->second;
      holes_.erase(after);
    }
    holes_.emplace(offset, bytes);
  }

  std::size_t end() const { return end_; }

 private:
  /// Extends the pool; a hole at its end is used up first.
  std::size_t grow(std::size_t bytes) {
    std::size_t offset = end_;
    if (!holes_.empty()) {
      const auto last = std::prev(holes_.end());
      if (last->first + last->second == end_) {
        offset = last->first;
        holes_.erase(last);
      }
    }
    end_ = offset + bytes;
    return offset;
  }

  std::map<std::size_t, std::size_t> holes_;
  std::size_t end_ = 0;
};

}  // namespace

PoolPlan plan_pool(const std::vector<PoolItem>& items) {
  const auto rounded = [&](std::size_t i) {
    return (items[i].bytes + k_alignment - 1) / k_alignment * k_alignment;
  };
  std::vector<std::size_t> by_birth(items.size());
  std::iota(by_birth.begin(), by_birth.end(), std::size_t{0});
  std::vector<std::size_t> by_death = by_birth;
  std::stable_sort(by_birth.begin(), by_birth.end(),
                   [&](std::size_t a, std::size_t b) { return items[a].first < items[b].first; });
  std::stable_sort(by_death.begin(), by_death.end(),
                   [&](std::size_t a, std::size_t b) { return items[a].last < items[b].last; });

  PoolPlan plan;
  plan.offsets.resize(items.size(), 0);
  Holes holes;
  std::size_t dying = 0;
  for (const std::size_t i : by_birth) {
    for (; dying < by_death.size() && items[by_death[dying]].last < items[i].first; ++dying) {
      const std::size_t dead = by_death[dying];
      if (rounded(dead) > 0) holes.give(plan.offsets[dead], rounded(dead));
    }
    if (rounded(i) > 0) plan.offsets[i] = holes.take(rounded(i));
  }
  plan.bytes = holes.end();
  return plan;
}

}  // namespace rankine
