// One rank of a job meets a fault while the others go on training. run_faults.py starts it and checks how the
// job ends.
//   faults KIND
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "runtime/error.hpp"
#include "runtime/mesh/agree.hpp"
#include "runtime/mesh/launch_info.hpp"
#include "runtime/mesh/world.hpp"

using namespace rankine;

namespace {

constexpr auto k_deadline = std::chrono::seconds(3);

void sleep_long() {
  std::this_thread::sleep_for(std::chrono::hours(1));
}

/// Steps of a training loop: sums over all ranks. `fault` happens on one rank in the middle.
int train(World& world, Communicator& group, int faulty_rank, const std::function<void()>& fault) {
  const TreeShares shares{group.size(), split_evenly(group.size(), group.size())};
  std::vector<float> gradient(10'000, 1.0f);
  void* const nodes[] = {gradient.data()};
  for (int step = 1; step <= 5; ++step) {
    auto first = group.tree_all_reduce(DType::float32, shares, nodes, 5'000, gradient.data());
    if (step == 3 && world.rank() == faulty_rank) fault();
    first->wait();
    agree(group, [&] {
      if (gradient[0] <= 0) throw NumericError("the gradient is gone");
    });
  }
  return 0;
}

struct Case {
  int faulty_rank;  ///< the last one where there are fewer
  std::function<void(World&)> fault;
};

const std::map<std::string, Case>& cases() {
  static const std::map<std::string, Case> all = {
      {"none", {-1, [](World&) {}}},
      {"exception", {2, [](World&) { throw std::runtime_error("the third step is cursed"); }}},
      {"config", {0, [](World&) { throw ConfigError("the job file names no model"); }}},
      {"bad_alloc", {3, [](World&) { ::operator delete(::operator new (std::size_t{1} << 60)); }}},
      {"kill", {1, [](World&) { std::raise(SIGKILL); }}},
      {"exit", {0, [](World&) { std::_Exit(1); }}},
      {"sleep", {2, [](World&) { sleep_long(); }}},
      {"late", {2, [](World&) { sleep_long(); }}},
      {"split", {2, [](World&) { sleep_long(); }}},
      {"order", {1, [](World&) {}}},
      {"agreed", {-1, [](World&) {}}},
      {"unwind", {2, [](World&) { throw DataError("nobody catches this inside"); }}},
      {"launch", {-1, [](World&) {}}},
  };
  return all;
}

int run(World& world, const std::string& kind) {
  const Case& chosen = cases().at(kind);
  const int faulty_rank = std::min(chosen.faulty_rank, world.size() - 1);
  const auto group = world.communicator().split(0, world.rank(), "data");
  group->set_deadline(k_deadline);
  if (kind == "launch") check_launch(read_launch_info(), world.size());
  if (kind == "agreed") {
    agree(*group, [&] {
      if (world.rank() == 1) throw CheckpointError("the file ends too early");
    });
  }
  if (kind == "late") {
    if (world.rank() == faulty_rank) chosen.fault(world);
    group->barrier();
  }
  if (kind == "split") {
    if (world.rank() == faulty_rank) chosen.fault(world);
    group->split(0, 0, "part");
  }
  if (kind == "order" && world.rank() == faulty_rank) {
    std::vector<float> other(100, 1.0f);
    void* const nodes[] = {other.data()};
    const TreeShares shares{group->size(), split_evenly(group->size(), group->size())};
    group->tree_all_reduce(DType::float32, shares, nodes, 100, other.data())->wait();
  }
  return train(world, *group, faulty_rank, [&] { chosen.fault(world); });
}

}  // namespace

int main(int argc, char** argv) {
  const std::string kind = argc > 1 ? argv[1] : "";
  if (!cases().contains(kind)) {
    std::fprintf(stderr, "faults: there is no fault '%s'\n", kind.c_str());
    return 2;
  }
  try {
    World world(&argc, &argv);
    const auto body = [&] { return run(world, kind); };
    return kind == "unwind" ? body() : run_ranks(world, body);
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return static_cast<int>(e.exit_code());
  }
}
