#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/mesh/communicator.hpp"

namespace rankine {

/// Owns MPI: made first in `main`, destroyed last. MPI_THREAD_MULTIPLE is asked for and checked,
/// MPI_ERRORS_RETURN is set. Rank and size come from MPI alone.
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
  /// All ranks.
  Communicator& communicator();
  /// Ends the job now, on every rank, with this exit code. Doesn't return.
  [[noreturn]] void abort(int exit_code);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Versions of the MPI standard and library, for people. Works without a World.
std::string mpi_version();

}  // namespace rankine
