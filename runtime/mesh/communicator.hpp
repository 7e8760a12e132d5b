#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/arithmetic/leaf.hpp"
#include "runtime/dtype.hpp"

namespace rankine {

/// A collective in flight. It is started before slower peers have entered it and makes progress whenever
/// `done`, `wait` or any other Work of the same communicator is asked. Destroying an unfinished Work waits
/// for it.
class Work {
 public:
  virtual ~Work() = default;
  /// Advances without blocking; true when the result is in place.
  virtual bool done() = 0;
  /// Blocks until done. Throws CommunicationError naming the collective, its sequence number, the group and
  /// the ranks not heard of when the communicator's deadline passes.
  virtual void wait() = 0;
  virtual std::uint64_t sequence() const = 0;
};
using WorkHandle = std::unique_ptr<Work>;

/// Who holds which leaves of a sum over `leaves` leaves: one run a rank, in rank order, adjoining (some may
/// be empty). Rank r contributes the values of canonical_nodes(runs[r], leaves).
struct TreeShares {
  std::int64_t leaves = 0;
  std::vector<Range> runs;
  bool operator==(const TreeShares&) const = default;
};

/// What elements are added by `all_reduce`: exact operations only, so no order matters.
enum class ReduceOp : std::uint8_t { sum, max, min };

/// A group of ranks that communicate. Every method is collective: all ranks of the group call it, in the same
/// order, from one thread. Float sums go through the tree_* methods, which add in tree order; there is no
/// other float sum. A group of one does nothing and costs nothing. Counts are in elements and may exceed
/// 2^31. Errors: CommunicationError.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const std::string& name() const = 0;
  /// "rank 3 @ host": a rank of this group as people know it, by its rank in the world.
  virtual std::string member(int rank) const = 0;

  /// Tree sum of `count` elements. `nodes[i]` holds this rank's i-th canonical node's values (count elements
  /// each; none for an empty run); they are overwritten. `result` (may be nodes[0]) gets the whole sum on
  /// every rank.
  virtual WorkHandle tree_all_reduce(DType dtype, const TreeShares& shares, std::span<void* const> nodes,
                                     std::int64_t count, void* result) = 0;
  /// The same sum; rank r gets elements [pieces[r].begin, pieces[r].end) of it at result + pieces[r].begin
  /// elements. Pieces adjoin and may be empty.
  virtual WorkHandle tree_reduce_scatter(DType dtype, const TreeShares& shares, std::span<void* const> nodes,
                                         std::int64_t count, void* result, std::span<const Range> pieces) = 0;
  /// In place: rank r's piece of `data` is sent to all.
  virtual WorkHandle all_gather(DType dtype, void* data, std::span<const Range> pieces) = 0;
  /// In place, exact: int64 sums, or the maximum or minimum of any type.
  virtual WorkHandle all_reduce(std::span<std::int64_t> data, ReduceOp op) = 0;
  virtual WorkHandle all_reduce(std::span<double> data, ReduceOp op) = 0;  ///< max and min only
  virtual WorkHandle broadcast(void* data, std::size_t bytes, int root) = 0;
  virtual void barrier() = 0;
  /// Ranks that pass the same colour form a group, ordered by key and then rank. A negative colour gives none
  /// (null).
  virtual std::unique_ptr<Communicator> split(int colour, int key, const std::string& name) = 0;
  /// Gathers one variable-length text of each rank everywhere, in rank order. Small texts only.
  virtual std::vector<std::string> all_gather_text(const std::string& text) = 0;

  /// Longest that a Work may take before its wait throws.
  virtual void set_deadline(std::chrono::milliseconds deadline) = 0;
};

}  // namespace rankine
