#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/mesh/communicator.hpp"
#include "runtime/mesh/node_group.hpp"

namespace rankine {

/// Owns MPI: made first in `main`, destroyed last. MPI_THREAD_MULTIPLE is asked for and checked,
/// MPI_ERRORS_RETURN is set. Rank and size come from MPI alone. Where there are several ranks, a watchdog
/// thread ends the job (exit code 70) when a rank of this node dies or a collective passes its deadline.
/// Errors must be caught while the World lives (run_ranks does): one that is destroyed by an unwinding error
/// leaves MPI unfinalised, so that the launcher sees a failure instead of waiting for it.
class World {
 public:
  /// Initialises MPI. Throws CommunicationError.
  World(int* argc, char*** argv);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  int rank() const;
  int size() const;
  const std::string& host() const;  ///< this rank's host name
  /// "[rank 3 @ host] ", which starts every line of a rank that speaks up.
  std::string prefix() const;
  /// Who shares a node with whom.
  const NodeGroups& nodes() const;
  /// All ranks.
  Communicator& communicator();
  /// Prints a failure to stderr with the prefix in front of each line, unless another rank of this node has
  /// printed one already: what follows a first failure is seldom news.
  void report_failure(const std::string& text);
  /// Ends the job now, on every rank, with this exit code. Doesn't return. May be called from any thread.
  [[noreturn]] void abort(int exit_code);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Versions of the MPI standard and library, for people. Works without a World.
std::string mpi_version();

}  // namespace rankine
