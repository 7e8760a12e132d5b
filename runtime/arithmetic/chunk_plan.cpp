#include "runtime/arithmetic/chunk_plan.hpp"

#include <algorithm>

namespace rankine {

ChunkPlan::ChunkPlan(const Leaves& leaves, std::int64_t max_terms) {
  const std::vector<LeafStep> all = leaf_steps(leaves);
  const std::span<const LeafStep> steps(all);
  for (std::size_t i = 0; i < steps.size();) {
    if (steps[i].terms.size() > max_terms) {
      add_long_leaf(steps[i], max_terms);
      ++i;
    } else {
      i += add_run(steps.subspan(i), max_terms);
    }
  }
  if (steps.empty()) {
    pieces_.push_back({});
    add({{0, 0}, 0, 1, false, 0, 0}, 0);
  }
}

void ChunkPlan::add(Chunk chunk, int folds) {
  chunk.folds = folds;
  chunk.store = depth_ - folds;
  depth_ = chunk.store + 1;
  slots_ = std::max(slots_, depth_);
  chunks_.push_back(chunk);
}

void ChunkPlan::add_long_leaf(const LeafStep& step, std::int64_t max_terms) {
  for (std::int64_t at = step.terms.begin; at < step.terms.end; at += max_terms) {
    const std::int64_t end = std::min(step.terms.end, at + max_terms);
    const bool continues = at > step.terms.begin;
    if (continues) --depth_;  // the chunk before left the chain's value there
    pieces_.push_back({static_cast<std::int32_t>(end - at), 0});
    add({{at, end}, pieces_.size() - 1, 1, continues, 0, 0}, end == step.terms.end ? step.folds : 0);
  }
}

// Takes the longest run of leaves that fits and reduces to one value; folds of slots come at its end only.
std::size_t ChunkPlan::add_run(std::span<const LeafStep> steps, std::int64_t max_terms) {
  std::size_t best = 1;
  int best_outer = steps[0].folds;
  int depth = 0;
  for (std::size_t n = 0; n < steps.size() && depth < k_tile_stack; ++n) {
    if (steps[n].terms.end - steps[0].terms.begin > max_terms) break;
    const int outer = std::max(0, steps[n].folds - depth);
    depth = std::max(0, depth - steps[n].folds) + 1;
    if (depth == 1) {
      best = n + 1;
      best_outer = outer;
    }
    if (outer > 0) break;
  }
  const std::size_t first = pieces_.size();
  for (std::size_t n = 0; n < best; ++n) {
    const int outer = n + 1 == best ? best_outer : 0;
    pieces_.push_back({static_cast<std::int32_t>(steps[n].terms.size()), steps[n].folds - outer});
  }
  add({{steps[0].terms.begin, steps[best - 1].terms.end}, first, static_cast<int>(best), false, 0, 0},
      best_outer);
  return best;
}

const ChunkPlan& ChunkPlans::get(const Leaves& leaves, std::int64_t max_terms) {
  constexpr std::size_t k_most = 256;  // far more than the products of a model; only bounds the memory
  for (const Entry& entry : entries_) {
    if (entry.leaves == leaves && entry.max_terms == max_terms) return entry.plan;
  }
  if (entries_.size() == k_most) entries_.clear();
  return entries_.emplace_back(Entry{leaves, max_terms, ChunkPlan(leaves, max_terms)}).plan;
}

}  // namespace rankine
