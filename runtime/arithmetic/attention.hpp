#pragma once

#include <vector>

#include "runtime/arithmetic/aligned_buffer.hpp"
#include "runtime/arithmetic/attention_call.hpp"
#include "runtime/arithmetic/chunk_plan.hpp"
#include "runtime/arithmetic/kernel_table.hpp"
#include "runtime/arithmetic/thread_pool.hpp"

/// Attention's arithmetic, for each sample and head on its own (see struct Attention for the layouts).
///
/// Query t sees keys [0, visible): all of them, or min(keys, t + 1) of them when causal. Queries come in
/// blocks of k_query_block; `end` is the number of keys that the last query of t's block sees. Sums over
/// features or keys have leaves of k_key_leaf terms (runtime/arithmetic/leaf.hpp).
///
/// Forward, for each query t:
///   score[j]  = (sum over features of q[t] k[j]) * scale
///   maximum   = the largest of score[0, visible), NaN left out
///   weight[j] = exp(score[j] - maximum), or +0 for j in [visible, end)
///   sum       = lane sums of weight[0, visible): lane i adds j = i, i + 16, ... in order, then lanes 8, 4,
///   2, 1
///               apart are added
///   output[f] = (sum over j in [0, end) of weight[j] v[j][f]) / sum
/// Backward:
///   p[j]  = weight[j] * (1 / sum)
///   dp[j] = sum over features of dy[t] v[j]
///   mean  = lane sums of p[j] dp[j] over [0, visible), fused
///   ds[j] = (p[j] * (dp[j] - mean)) * scale, or +0 for j in [visible, end)
///   dq[f] = sum over j in [0, end) of ds[j] k[j][f]
///   dk[j], dv[j] of one head = from +0, block by block of queries, add the chain over the block's queries t
///   of ds[j] q[t], p[j] dy[t], where j < end. The heads of a group are then added by the tree over heads.
///
/// With a window or masks (attention_mask.hpp) every query has visible = end = all keys; the scores of keys
/// that it doesn't see are -infinity, and those of a query that sees none are all 0 and have no gradient.
/// With dropout the weights that meet v, the p[j] that meet dy[t], and dp[j] are multiplied by 1 / (1 - rate)
/// or by 0; with blind_is_zero those of a query that sees nothing are 0.
namespace rankine {

inline constexpr std::int64_t k_query_block = 64;
inline constexpr std::int64_t k_key_leaf = 256;

/// Scratch memory of attention, an area a thread; linear in the lengths. It grows to what the largest call
/// needs.
class AttentionWorkspace {
 public:
  struct Area {
    AlignedBuffer a, features_k, features_v, keys_k, keys_v;  ///< packed, named by what is summed over
    AlignedBuffer block, scores, dropped, gradients, slots, heads;
    ChunkPlans plans;
  };
  explicit AttentionWorkspace(int threads) : areas_(static_cast<std::size_t>(threads)) {}
  Area& area(int worker) { return areas_[static_cast<std::size_t>(worker)]; }

 private:
  std::vector<Area> areas_;
};

/// Fills call.output and call.statistics; the call's dtype must be T's. Threads take samples and groups.
template <class T>
void attention(const KernelTable<T>& table, const Attention& call, ThreadPool& pool,
               AttentionWorkspace& workspace);

/// Fills dq, dk and dv from the statistics that forward left. call.output isn't read.
template <class T>
void attention_gradient(const KernelTable<T>& table, const Attention& call, const AttentionGradient& gradient,
                        ThreadPool& pool, AttentionWorkspace& workspace);

}  // namespace rankine
