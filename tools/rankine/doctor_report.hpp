#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace rankine {

/// What a rank can tell of itself and its machine.
struct RankFacts {
  int rank = 0;
  std::string host;
  int node = 0;
  int local_rank = 0;
  std::vector<int> cores;      ///< that it may run on
  int node_cores = 0;          ///< that the node has
  std::string instructions;    ///< "avx512"
  std::string versions;        ///< of Rankine, MPI and HDF5
  std::int64_t shm_bytes = 0;  ///< size of /dev/shm, where MPI exchanges between ranks of a node
};

/// Text for all ranks to gather, and back.
std::string to_text(const RankFacts& facts);
RankFacts rank_facts_from(const std::string& text);

struct DoctorReport {
  std::string table;                  ///< one line a rank
  std::vector<std::string> warnings;  ///< what would be slow, with what to do
  std::vector<std::string> faults;    ///< what would go wrong
};
/// `ranks` are all of the world's, in order. Pure.
DoctorReport examine(std::span<const RankFacts> ranks);

/// "0-3,8" of {0, 1, 2, 3, 8}.
std::string ranges_text(std::span<const int> ascending);

}  // namespace rankine
