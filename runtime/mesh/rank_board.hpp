#pragma once

#include <mpi.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "runtime/mesh/collective.hpp"
#include "runtime/mesh/mpi_handle.hpp"

namespace rankine {

/// What a rank entered last in one group.
struct LastEntered {
  std::uint64_t sequence = 0;  ///< 0: nothing yet
  Call call;
};

/// A page of memory that the ranks of a node share: each writes which collective it entered last in every
/// group, and its process id, so that the others can tell who is missing, and who is dead, without asking it.
class RankBoard {
 public:
  /// Collective over `node`, whose ranks share memory. `world_ranks` are theirs in the world.
  RankBoard(MPI_Comm node, std::vector<int> world_ranks);

  /// This rank enters collective `sequence` of the group `id`. Cheap; from any thread.
  void enter(std::uint64_t group_id, std::uint64_t sequence, Call call);
  /// This rank is waiting for a collective right now. Called often while it waits.
  void attend();
  /// This rank is about to leave MPI in good order: its end is no accident from here on.
  void finish();

  /// Nothing for ranks of other nodes.
  std::optional<LastEntered> last_entered(int world_rank, std::uint64_t group_id) const;
  /// How long ago a rank of this node last attended to a collective.
  std::chrono::milliseconds inattentive_for(int world_rank) const;
  /// The process id of a rank of this node; 0 for others.
  int process_of(int world_rank) const;
  /// True when a rank of this node ended without `finish`. Can't be told, hence false, across pid namespaces.
  bool is_dead(int world_rank) const;
  const std::vector<int>& world_ranks() const { return world_ranks_; }
  /// True for the first rank of the node that asks: one speaks about a failure that all of them meet.
  bool claim_report();

 private:
  struct Slot;
  const Slot* slot_of(int world_rank) const;

  WinHandle window_;
  std::vector<int> world_ranks_;
  std::vector<Slot*> slots_;  // in the order of world_ranks_
  Slot* mine_ = nullptr;
  std::mutex writing_;
};

}  // namespace rankine
