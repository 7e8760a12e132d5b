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

/// How a waiting thread waits: at once eager, later polite to whoever computes on the same core. It goes by
/// the clock, since MPI itself may yield in every turn.
class Patience {
 public:
  void pause() {
    if (++turns_ < k_blind_turns) return;
    now_ = Clock::now();
    if (turns_ == k_blind_turns) start_ = now_;
    const auto waited = now_ - start_;
    if (waited > std::chrono::milliseconds(5)) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    } else if (waited > k_eager) {
      std::this_thread::yield();
    }
  }
  bool is_eager() const { return now_ - start_ <= k_eager; }
  Clock::time_point now() const { return now_; }

 private:
  static constexpr int k_blind_turns = 64;  // without a look at the clock
  static constexpr auto k_eager = std::chrono::milliseconds(1);
  int turns_ = 0;
  Clock::time_point start_;
  Clock::time_point now_;
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

std::string text_of(Call call) {
  std::string text(name_of(call.collective));
  if (call.bytes > 0) text += " of " + std::to_string(call.bytes) + " bytes";
  return text;
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
  // The world's attribute holds for all; communicators made by a split don't have it.
  check_mpi(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &upper_bound, &found), "MPI_Comm_get_attr");
  // An even number, so that the two phases of a collective stay neighbours.
  if (found != 0) tags_ = (static_cast<std::uint64_t>(*upper_bound) + 1) / 2 * 2;
  world_ranks_ = translate_to_world(comm_.get(), size_);
}

int MpiGroup::tag(std::uint64_t sequence, Call call, int phase) const {
  const std::uint64_t number = sequence * 2 + static_cast<std::uint64_t>(phase);
  constexpr std::uint64_t k_number_bits = 13;
  constexpr std::uint64_t k_all_bits = 30;
  if (tags_ < std::uint64_t{1} << k_all_bits) return static_cast<int>(number % tags_);
  const std::uint64_t mixed =
      (call.bytes + static_cast<std::uint64_t>(call.collective)) * 0x9e3779b97f4a7c15u;
  const std::uint64_t high = mixed >> (64 - (k_all_bits - k_number_bits));
  return static_cast<int>((high << k_number_bits) | (number & ((1u << k_number_bits) - 1)));
}

std::uint64_t MpiGroup::enter(Call call) {
  ++sequence_;
  if (job_->board) job_->board->enter(id_, sequence_, call);
  return sequence_;
}

std::shared_ptr<Flight> MpiGroup::launch(std::uint64_t sequence, Call call,
                                         std::unique_ptr<Operation> operation) {
  auto flight = std::make_shared<Flight>();
  flight->sequence = sequence;
  flight->call = call;
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
          CommunicationError(std::string(name_of(flight->call.collective)) + " number " +
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
    if (turns.is_eager()) continue;
    if (!watched) watched.emplace(*this, flight.sequence, flight.call);
    if (job_->board) job_->board->attend();
    check_agreement(flight);
    if (turns.now() > limit) {
      throw CommunicationError(
          describe_stall(flight.sequence, flight.call, patience, flight.operation->unheard()));
    }
  }
  if (flight.error) std::rethrow_exception(flight.error);
}

void MpiGroup::abandon(Flight& flight) {
  broken_ = true;
  abandoned_.push_back(std::move(flight.operation));
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

std::string MpiGroup::blame_absent(int rank, std::uint64_t sequence, Call call, bool unheard) const {
  const std::string who = job_->name_rank(world_rank(rank));
  const auto last = job_->board ? job_->board->last_entered(world_rank(rank), id_) : std::nullopt;
  if (!last) return unheard ? who + " (nothing heard of it)" : "";
  if (job_->board->is_dead(world_rank(rank))) {
    return who + " (its process " + std::to_string(job_->board->process_of(world_rank(rank))) + " is dead)";
  }
  if (last->sequence > sequence || (last->sequence == sequence && last->call == call)) return "";
  if (last->sequence == 0) return who + " (has entered nothing in this group)";
  const std::string entered =
      " (entered number " + std::to_string(last->sequence) + ", " + text_of(last->call);
  return who + entered + (last->sequence == sequence ? ", instead)" : ", last)");
}

std::string MpiGroup::blame_inattentive(int rank, std::chrono::milliseconds after) const {
  if (rank == rank_ || !job_->board) return "";
  const auto quiet = job_->board->inattentive_for(world_rank(rank));
  if (quiet < std::min<std::chrono::milliseconds>(after / 2, std::chrono::seconds(5))) return "";
  return job_->name_rank(world_rank(rank)) + " (entered it, but hasn't attended to it for " +
         seconds_text(quiet) + ": it computes, or is stuck elsewhere)";
}

std::string MpiGroup::describe_stall(std::uint64_t sequence, Call call, std::chrono::milliseconds after,
                                     const std::vector<int>& unheard) const {
  std::string members;
  std::string absent;
  std::string inattentive;
  const auto add = [](std::string& list, const std::string& text) {
    if (!text.empty()) list += (list.empty() ? "" : ", ") + text;
  };
  for (int r = 0; r < size_; ++r) {
    members += (r == 0 ? "" : " ") + std::to_string(world_rank(r));
    const bool silent = std::find(unheard.begin(), unheard.end(), r) != unheard.end();
    add(absent, blame_absent(r, sequence, call, silent));
    add(inattentive, blame_inattentive(r, after));
  }
  std::string missing = absent.empty() ? inattentive : absent;
  if (missing.empty())
    missing = "none that can be seen from here: all have entered it, the transfer is stuck";
  return text_of(call) + " number " + std::to_string(sequence) + " of group '" + name_ + "' (ranks " +
         members + ") didn't finish within " + seconds_text(after) + ". Missing: " + missing +
         ". Look at the output and the machine of the missing ranks; if they only compute for longer than "
         "this, raise the deadline.";
}

void MpiGroup::check_agreement(const Flight& flight) const {
  if (!job_->board) return;
  for (int r = 0; r < size_; ++r) {
    const auto last = job_->board->last_entered(world_rank(r), id_);
    if (!last || last->sequence != flight.sequence || last->call == flight.call) continue;
    throw CommunicationError("collective number " + std::to_string(flight.sequence) + " of group '" + name_ +
                             "' is " + text_of(flight.call) + " on " + job_->name_rank(world_rank(rank_)) +
                             ", but " + text_of(last->call) + " on " + job_->name_rank(world_rank(r)) +
                             ": all ranks must call the same collectives in the same order");
  }
}

WatchedWait::WatchedWait(const MpiGroup& group, std::uint64_t sequence, Call call)
    : watchdog_(group.job()->watchdog.get()) {
  if (watchdog_ == nullptr) return;
  wait_.deadline = Clock::now() + group.deadline;
  wait_.describe = [&group, sequence, call, after = group.deadline] {
    return group.describe_stall(sequence, call, after, {});
  };
  watchdog_->begin(wait_);
}

WatchedWait::~WatchedWait() {
  if (watchdog_ != nullptr) watchdog_->end(wait_);
}

}  // namespace rankine
