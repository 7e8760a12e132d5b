#pragma once

#include <cstdint>
#include <span>
#include <vector>

/// The one arithmetic: how every sum that a mesh could cut is defined, as a function of global sizes alone.
///
/// The summed index range is cut into fixed *leaves*. Inside a leaf the terms are added one after another (a
/// chain of fused multiply-adds that starts from +0). Leaves are combined by one binary tree over their
/// *slot* numbers:
///   value(level, i) = value(level-1, 2i) + value(level-1, 2i+1),
/// where an absent right child passes the left one through (nothing is added, so -0 and NaN payloads
/// survive). Whoever holds a run of leaves can compute the maximal aligned subtrees (*canonical nodes*) of
/// that run alone, and merging the nodes of all holders in tree order gives the same bits however the run was
/// cut.
namespace rankine {

/// Half-open range of indices.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

/// How one summed dimension of `extent` terms is cut. Terms come in groups of `group` (whole samples of a
/// batch; the last may be short); each group is cut into leaves of `leaf` terms (the last may be short).
/// Group g's leaf i has slot g * slots_per_group() + i, with slots_per_group() a power of two, so that the
/// tree of one group is a subtree.
struct Leaves {
  std::int64_t extent = 0;
  std::int64_t leaf = 1;
  std::int64_t group = 1;

  /// One group: an ordinary dimension of n terms with leaves of `leaf` terms.
  static Leaves of(std::int64_t n, std::int64_t leaf) { return {n, leaf, n > 0 ? n : 1}; }

  std::int64_t slots_per_group() const;
  std::int64_t leaves() const;
  bool operator==(const Leaves&) const = default;
};

/// One leaf in order: its terms, and how many pending partial sums are folded into it once its chain is done.
/// Summing a dimension: for each leaf, acc = chain; repeat `folds` times acc = pop() + acc; push(acc). The
/// one value left on the stack is the sum.
struct LeafStep {
  Range terms;
  int folds = 0;
};
std::vector<LeafStep> leaf_steps(const Leaves& leaves);
/// The same for a sum that has only the terms `present` (ascending): a leaf or subtree without any is absent
/// and passes through on either side. Each step's `terms` are places in `present`.
std::vector<LeafStep> leaf_steps(const Leaves& leaves, std::span<const std::int64_t> present);
/// Partial sums that wait at once, at most, while the steps are done.
std::int64_t waiting_sums(std::span<const LeafStep> steps);

/// An aligned subtree over leaves: [index << level, (index + 1) << level) cut off at the number of leaves.
struct Node {
  int level = 0;
  std::int64_t index = 0;
  bool operator==(const Node&) const = default;
};

/// Level of the root of a tree over `count` leaves.
int root_level(std::int64_t count);
/// The leaves under a node of a tree over `count` leaves.
Range leaves_under(Node node, std::int64_t count);
/// The maximal aligned subtrees that make up `run`, in order. Their number is at most 2 * root_level(count).
std::vector<Node> canonical_nodes(Range run, std::int64_t count);

/// Merges node values that arrive in leaf order, as a binary counter does. `Add(left, right)` must put left +
/// right into left. Used for micro-batches of one rank and for the nodes of all ranks alike.
template <class Value>
class NodeStack {
 public:
  struct Entry {
    Node node;
    Value value;
  };
  explicit NodeStack(std::int64_t count) : count_(count) {}

  template <class Add>
  void push(Node node, Value value, Add&& add) {
    for (;;) {
      const bool right = (node.index & 1) != 0;
      if (right) {
        if (entries_.empty() || !(entries_.back().node == Node{node.level, node.index - 1})) break;
        add(entries_.back().value, value);
        value = std::move(entries_.back().value);
        entries_.pop_back();
      } else if (((node.index + 1) << node.level) < count_ || node.level >= root_level(count_)) {
        break;  // the right sibling has leaves and hasn't come yet, or this is the root
      }
      node = {node.level + 1, node.index >> 1};
    }
    entries_.push_back({node, std::move(value)});
  }
  const std::vector<Entry>& entries() const { return entries_; }
  std::vector<Entry>& entries() { return entries_; }

 private:
  std::int64_t count_;
  std::vector<Entry> entries_;
};

/// Cuts [0, count) into `parts` runs as even as can be; the first ones get one more. Runs may be empty.
std::vector<Range> split_evenly(std::int64_t count, int parts);

/// Terms a leaf of a feature dimension (hidden sizes, vocabularies) of n: small enough that eight holders
/// have work, large enough to keep the GEMM's speed. Part of a model's meaning: changing it changes bits.
std::int64_t feature_leaf(std::int64_t n);

/// Samples a leaf of a global batch of `batch` samples whose widest value has `rows` rows a sample.
std::int64_t samples_per_leaf(std::int64_t batch, std::int64_t rows);

/// Longest leaf of rows (tokens) inside a group of samples.
inline constexpr std::int64_t k_row_leaf = 256;

/// How the samples of one step's global batch are cut into leaves.
struct BatchLeaves {
  std::int64_t samples = 0;           ///< in the global batch of this step
  std::int64_t samples_per_leaf = 1;  ///< fixed for a run

  std::int64_t leaves() const { return (samples + samples_per_leaf - 1) / samples_per_leaf; }
  /// Samples of leaves [run.begin, run.end).
  Range samples_of(Range run) const {
    const auto cut = [&](std::int64_t leaf) {
      const std::int64_t at = leaf * samples_per_leaf;
      return at < samples ? at : samples;
    };
    return {cut(run.begin), cut(run.end)};
  }
  /// The cut of `count` whole samples with `rows` rows each, as one aligned subtree sees it.
  Leaves rows(std::int64_t count, std::int64_t rows) const {
    const std::int64_t group = samples_per_leaf * (rows > 0 ? rows : 1);
    return {count * rows, group < k_row_leaf ? group : k_row_leaf, group};
  }
};

}  // namespace rankine
