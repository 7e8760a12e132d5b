#include "runtime/mesh/mpi_group.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>

#include "runtime/error.hpp"
#include "runtime/mesh/mpi_error.hpp"

namespace rankine {
namespace {

using Clock = std::chrono::steady_clock;

/// How a waiting thread waits: at once eager, later polite to whoever computes on the same core.
class Patience {
 public:
  void pause() {
    ++turns_;
    if (turns_ < 4000) return;
    if (turns_ < 20000) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  bool is_time_to_look_at_the_clock() const { return turns_ % 256 == 0 || turns_ > 20000; }
  bool is_long() const { return turns_ > 2000; }

 private:
  int turns_ = 0;
};

std::vector<int> translate_to_world(MPI_Comm comm, int size) {
  MPI_Group here = MPI_GROUP_NULL;
  MPI_Group world = MPI_GROUP_NULL;
  check_mpi(MPI_Comm_group(comm, &here), "MPI_Comm_group");
  const GroupHandle here_owner(here);
  check_mpi(MPI_Comm_group(MPI_COMM_WORLD, &world), "MPI_Comm_group");
  const GroupHandle world_owner(world);
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  std::vector<int> world_ranks(ranks.size());
  check_mpi(MPI_Group_translate_ranks(here, size, ranks.data(), world, world_ranks.data()),
            "MPI_Group_translate_ranks");
  return world_ranks;
}

std::string seconds_text(std::chrono::milliseconds time) {
  const auto tenths = time.count() / 100;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

}  // namespace

MpiGroup::MpiGroup(CommHandle comm, std::shared_ptr<const Job> job, std::string name, std::uint64_t id,
                   MessageSizes sizes)
    : comm_(std::move(comm)), job_(std::move(job)), name_(std::move(name)), id_(id), sizes_(sizes) {
  check_mpi(MPI_Comm_set_errhandler(comm_.get(), MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check_mpi(MPI_Comm_rank(comm_.get(), &rank_), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(comm_.get(), &size_), "MPI_Comm_size");
  int* upper_bound = nullptr;
  int found = 0;
  check_mpi(MPI_Comm_get_attr(comm_.get(), MPI_TAG_UB, &upper_bound, &found), "MPI_Comm_get_attr");
  // An even number, so that the two phases of a collective stay neighbours.
  if (found != 0) tags_ = (static_cast<std::uint64_t>(*upper_bound) + 1) / 2 * 2;
  world_ranks_ = translate_to_world(comm_.get(), size_);
}

std::uint64_t MpiGroup::enter(Collective collective) {
  ++sequence_;
  if (job_->board) job_->board->enter(id_, sequence_, collective);
  return sequence_;
}

std::shared_ptr<Flight> MpiGroup::launch(std::uint64_t sequence, Collective collective,
                                         std::unique_ptr<Operation> operation) {
  auto flight = std::make_shared<Flight>();
  flight->sequence = sequence;
  flight->collective = collective;
  flight->operation = std::move(operation);
  flights_.push_back(flight);
  advance();
  return flight;
}

void MpiGroup::advance() {
  for (const auto& flight : flights_) {
    try {
      if (flight->operation->advance()) flight->operation.reset();
    } catch (const std::exception& e) {
      flight->error = std::make_exception_ptr(
          CommunicationError(std::string(name_of(flight->collective)) + " number " +
                             std::to_string(flight->sequence) + " of group '" + name_ + "': " + e.what()));
      flight->operation.reset();
      broken_ = true;
    }
  }
  std::erase_if(flights_, [](const auto& flight) { return flight->finished(); });
}

void MpiGroup::wait(Flight& flight, std::chrono::milliseconds patience) {
  Patience turns;
  std::optional<WatchedWait> watched;
  const auto limit = Clock::now() + patience;
  while (!flight.finished()) {
    advance();
    if (flight.finished()) break;
    turns.pause();
    if (turns.is_long() && !watched) watched.emplace(*this, flight.sequence, flight.collective);
    if (turns.is_time_to_look_at_the_clock() && Clock::now() > limit) {
      throw CommunicationError(
          describe_stall(flight.sequence, flight.collective, patience, flight.operation->unheard()));
    }
  }
  if (flight.error) std::rethrow_exception(flight.error);
}

void MpiGroup::abandon(Flight& flight) {
  broken_ = true;
  flight.operation.reset();
  std::erase_if(flights_, [](const auto& other) { return other->finished(); });
}

std::shared_ptr<const TreePlan> MpiGroup::plan(const TreeShares& shares) {
  if (!plan_ || planned_shares_ != shares) {
    if (shares.runs.size() != static_cast<std::size_t>(size_)) {
      throw CommunicationError("a tree sum on group '" + name_ + "' of " + std::to_string(size_) +
                               " ranks was given the runs of " + std::to_string(shares.runs.size()));
    }
    plan_ = std::make_shared<const TreePlan>(plan_tree(shares));
    planned_shares_ = shares;
  }
  return plan_;
}

std::string MpiGroup::describe_member(int rank, std::uint64_t sequence, bool unheard) const {
  const std::string who = job_->name_rank(world_rank(rank));
  const auto last = job_->board ? job_->board->last_entered(world_rank(rank), id_) : std::nullopt;
  if (!last) return unheard ? who + " (nothing heard of it)" : "";
  if (job_->board->is_dead(world_rank(rank))) {
    return who + " (its process " + std::to_string(job_->board->process_of(world_rank(rank))) + " is dead)";
  }
  if (last->sequence >= sequence) return "";
  if (last->sequence == 0) return who + " (has entered nothing in this group)";
  return who + " (entered number " + std::to_string(last->sequence) + ", " +
         std::string(name_of(last->collective)) + ", last)";
}

std::string MpiGroup::describe_stall(std::uint64_t sequence, Collective collective,
                                     std::chrono::milliseconds after, const std::vector<int>& unheard) const {
  std::string members;
  std::string missing;
  for (int r = 0; r < size_; ++r) {
    members += (members.empty() ? "" : " ") + std::to_string(world_rank(r));
    const bool silent = std::find(unheard.begin(), unheard.end(), r) != unheard.end();
    const std::string text = describe_member(r, sequence, silent);
    if (!text.empty()) missing += (missing.empty() ? "" : ", ") + text;
  }
  if (missing.empty())
    missing = "none that can be seen from here: all have entered it, the transfer is stuck";
  return std::string(name_of(collective)) + " number " + std::to_string(sequence) + " of group '" + name_ +
         "' (ranks " + members + ") didn't finish within " + seconds_text(after) + ". Missing: " + missing +
         ". Look at the output and the machine of the missing ranks; if they only compute for longer than "
         "this, "
         "raise the deadline.";
}

WatchedWait::WatchedWait(const MpiGroup& group, std::uint64_t sequence, Collective collective)
    : watchdog_(group.job()->watchdog.get()) {
  if (watchdog_ == nullptr) return;
  wait_.deadline = Clock::now() + group.deadline;
  wait_.describe = [&group, sequence, collective, after = group.deadline] {
    return group.describe_stall(sequence, collective, after, {});
  };
  watchdog_->begin(wait_);
}

WatchedWait::~WatchedWait() {
  if (watchdog_ != nullptr) watchdog_->end(wait_);
}

}  // namespace rankine
