#pragma once

#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "runtime/mesh/buffer_pool.hpp"
#include "runtime/mesh/collective.hpp"
#include "runtime/mesh/communicator.hpp"
#include "runtime/mesh/job.hpp"
#include "runtime/mesh/mpi_handle.hpp"
#include "runtime/mesh/requests.hpp"
#include "runtime/mesh/tree_plan.hpp"

namespace rankine {

/// How messages are cut. Tests shrink them to reach every path with small data.
struct MessageSizes {
  std::size_t longest = std::size_t{1} << 30;  ///< of one MPI message: counts are ints
  std::size_t chunk = 256 * 1024;              ///< of a pipelined tree sum: stays in a core's cache
  std::size_t direct = 4000;                   ///< tree sums up to here are exchanged whole, for latency
};

class MpiGroup;

/// A collective as a state machine.
class Operation {
 public:
  virtual ~Operation() = default;
  /// Goes on as far as it can without blocking; true when the result is in place.
  virtual bool advance() = 0;
  /// Ranks of the group whose messages it waits for.
  virtual std::vector<int> unheard() const = 0;
};

/// An operation in flight and what became of it.
struct Flight {
  std::uint64_t sequence = 0;
  Call call;
  std::unique_ptr<Operation> operation;  // null when finished
  std::exception_ptr error;
  bool finished() const { return operation == nullptr; }
};

/// One MPI communicator and everything that its Works share. Kept alive by the communicator and its Works.
class MpiGroup {
 public:
  MpiGroup(CommHandle comm, std::shared_ptr<const Job> job, std::string name, std::uint64_t id,
           MessageSizes sizes);

  MPI_Comm comm() const { return comm_.get(); }
  int rank() const { return rank_; }
  int size() const { return size_; }
  const std::string& name() const { return name_; }
  std::uint64_t id() const { return id_; }
  const MessageSizes& sizes() const { return sizes_; }
  void set_sizes(MessageSizes sizes) { sizes_ = sizes; }
  const std::shared_ptr<const Job>& job() const { return job_; }
  BufferPool& pool() { return pool_; }
  int world_rank(int rank) const { return world_ranks_[static_cast<std::size_t>(rank)]; }

  std::chrono::milliseconds deadline = std::chrono::minutes(10);

  Requests requests() const { return Requests(comm_.get(), sizes_.longest); }
  /// Message tag of a call; `phase` is 0 or 1. Tags come back only after thousands of collectives, and, where
  /// MPI has tags enough, messages of different calls don't match: ranks that disagree don't overrun memory.
  int tag(std::uint64_t sequence, Call call, int phase) const;
  /// The next collective: counted, and written on the board.
  std::uint64_t enter(Call call);
  std::uint64_t entered() const { return sequence_; }
  /// Puts an operation in flight, and advances it once.
  std::shared_ptr<Flight> launch(std::uint64_t sequence, Call call, std::unique_ptr<Operation> operation);
  /// Advances everything in flight. Errors stay in the flights.
  void advance();
  /// Advances until `flight` is finished; throws its error, or CommunicationError at the deadline.
  void wait(Flight& flight, std::chrono::milliseconds patience);
  /// Stops working on a flight whose peers won't come. The group can't be used any more.
  void abandon(Flight& flight);
  bool is_broken() const { return broken_; }

  /// The plan of the shares that were used last is kept.
  std::shared_ptr<const TreePlan> plan(const TreeShares& shares);

  /// Text for a collective that doesn't finish: who hasn't entered it, as far as can be told.
  std::string describe_stall(std::uint64_t sequence, Call call, std::chrono::milliseconds after,
                             const std::vector<int>& unheard) const;

 private:
  /// Why a member is to blame for a stall; empty if it isn't, as far as can be told.
  std::string blame_absent(int rank, std::uint64_t sequence, Call call, bool unheard) const;
  std::string blame_inattentive(int rank, std::chrono::milliseconds after) const;
  /// Throws CommunicationError when a rank of this node made another call under the same number.
  void check_agreement(const Flight& flight) const;

  CommHandle comm_;
  std::shared_ptr<const Job> job_;
  std::string name_;
  std::uint64_t id_;
  MessageSizes sizes_;
  int rank_ = 0;
  int size_ = 1;
  std::uint64_t tags_ = 32768;
  std::vector<int> world_ranks_;
  std::uint64_t sequence_ = 0;
  std::vector<std::shared_ptr<Flight>> flights_;
  /// A late peer may still write into the memory of what was abandoned, so that stays until the process ends:
  /// operations hold their group.
  std::vector<std::unique_ptr<Operation>> abandoned_;
  BufferPool pool_;
  TreeShares planned_shares_;
  std::shared_ptr<const TreePlan> plan_;
  bool broken_ = false;
};

/// Registers a wait with the watchdog for as long as it lives.
class WatchedWait {
 public:
  WatchedWait(const MpiGroup& group, std::uint64_t sequence, Call call);
  ~WatchedWait();
  WatchedWait(const WatchedWait&) = delete;
  WatchedWait& operator=(const WatchedWait&) = delete;

 private:
  Watchdog* watchdog_;
  Watchdog::Wait wait_;
};

}  // namespace rankine
