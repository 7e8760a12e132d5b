#include "runtime/mesh/job.hpp"

#include <mpi.h>

#include <cstdio>
#include <cstdlib>

// Present in builds that measure coverage only: an aborted process would lose its counts.
extern "C" void __gcov_dump() __attribute__((weak));

namespace rankine {

std::string Job::name_rank(int world_rank) const {
  const auto r = static_cast<std::size_t>(world_rank);
  return "rank " + std::to_string(world_rank) + (r < hosts.size() ? " @ " + hosts[r] : std::string());
}

void abort_job(int exit_code) {
  std::fflush(nullptr);
  if (__gcov_dump != nullptr) __gcov_dump();
  if (mpi_is_running()) MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::_Exit(exit_code);
}

}  // namespace rankine
