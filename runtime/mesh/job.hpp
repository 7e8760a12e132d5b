#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/mesh/rank_board.hpp"
#include "runtime/mesh/watchdog.hpp"

namespace rankine {

/// What every group of this process knows about the job. Made and closed by World.
struct Job {
  int rank = 0;
  int size = 1;
  std::vector<std::string> hosts;  ///< by world rank
  std::unique_ptr<RankBoard> board;
  std::unique_ptr<Watchdog> watchdog;

  /// "rank 3 @ host", for people.
  std::string name_rank(int world_rank) const;
};

/// Ends the job on all ranks. The one way out that doesn't unwind.
[[noreturn]] void abort_job(int exit_code);

}  // namespace rankine
