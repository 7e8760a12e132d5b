// Tree all-reduce against MPI_Allreduce: medians of interleaved rounds, each round as slow as its slowest
// rank.
//   mpirun -n 2 all-reduce [ROUNDS]
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "runtime/mesh/agree.hpp"
#include "runtime/mesh/mpi_communicator.hpp"
#include "runtime/mesh/mpi_error.hpp"
#include "runtime/mesh/world.hpp"

using namespace rankine;

namespace {

struct Contest {
  std::vector<double> ours;
  std::vector<double> theirs;
};

double median(std::vector<double> seconds) {
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

double time_of(Communicator& group, const std::function<void()>& act) {
  group.barrier();
  const double start = MPI_Wtime();
  act();
  double seconds[] = {MPI_Wtime() - start};
  group.all_reduce(std::span<double>(seconds), ReduceOp::max)->wait();
  return seconds[0];
}

Contest compete(Communicator& group, const TreeShares& shares, std::int64_t count, int rounds) {
  const auto mine = canonical_nodes(shares.runs[static_cast<std::size_t>(group.rank())], shares.leaves);
  std::vector<std::vector<float>> values(std::max<std::size_t>(1, mine.size()),
                                         std::vector<float>(static_cast<std::size_t>(count), 0.0f));
  std::vector<void*> nodes;
  for (std::size_t i = 0; i < mine.size(); ++i) nodes.push_back(values[i].data());
  float* const result = values[0].data();
  const MPI_Comm comm = mpi_comm_of(group);
  // Small messages are repeated inside a round: the clock is no finer than they are.
  const int repeats =
      static_cast<int>(std::clamp<std::int64_t>(65536 / std::max<std::int64_t>(count, 1), 1, 50));
  const auto ours = [&] {
    for (int i = 0; i < repeats; ++i) {
      group.tree_all_reduce(DType::float32, shares, nodes, count, result)->wait();
    }
  };
  const auto theirs = [&] {
    for (int i = 0; i < repeats; ++i) {
      check_mpi(MPI_Allreduce(MPI_IN_PLACE, result, static_cast<int>(count), MPI_FLOAT, MPI_SUM, comm),
                "MPI_Allreduce");
    }
  };
  Contest contest;
  for (int round = -2; round < rounds; ++round) {
    const double a = time_of(group, ours) / repeats;
    const double b = time_of(group, theirs) / repeats;
    if (round < 0) continue;  // warming up
    contest.ours.push_back(a);
    contest.theirs.push_back(b);
  }
  return contest;
}

void report(Communicator& group, const char* title, const TreeShares& shares, int rounds) {
  if (group.rank() == 0) {
    std::printf("%s, %d ranks\n%12s %14s %16s %8s\n", title, group.size(), "bytes", "tree us",
                "MPI_Allreduce us", "theirs/ours");
  }
  for (std::int64_t bytes = 8; bytes <= std::int64_t{64} << 20; bytes *= bytes < 4096 ? 8 : 4) {
    const auto contest = compete(group, shares, bytes / 4, bytes > (1 << 22) ? (rounds + 3) / 4 : rounds);
    const double ours = median(contest.ours);
    const double theirs = median(contest.theirs);
    if (group.rank() == 0) {
      std::printf("%12lld %14.2f %16.2f %8.2f\n", static_cast<long long>(bytes), ours * 1e6, theirs * 1e6,
                  theirs / ours);
      std::fflush(stdout);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  World world(&argc, &argv);
  return run_ranks(world, [&] {
    const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 41;
    Communicator& group = world.communicator();
    const int ranks = group.size();
    report(group, "one leaf a rank", {ranks, split_evenly(ranks, ranks)}, rounds);
    const std::int64_t leaves = 2 * ranks + 1;
    report(group, "uneven leaves", {leaves, split_evenly(leaves, ranks)}, rounds);
    return 0;
  });
}
