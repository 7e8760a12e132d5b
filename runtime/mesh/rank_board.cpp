#include "runtime/mesh/rank_board.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <new>
#include <string>

#include "runtime/mesh/mpi_error.hpp"

namespace rankine {

/// Written by one process and read by all of a node: lock-free atomics only. The oldest entry is reused when
/// a rank has more groups than entries.
struct RankBoard::Slot {
  struct Entry {
    std::atomic<std::uint64_t> group_id{0};
    std::atomic<std::uint64_t> sequence{0};
    std::atomic<std::uint64_t> call{0};
    std::atomic<std::uint64_t> age{0};
  };
  std::atomic<int> process{0};
  std::atomic<std::uint64_t> pid_namespace{0};
  std::atomic<bool> finished{false};
  std::atomic<bool> reported{false};
  std::atomic<std::uint64_t> clock{0};
  std::atomic<std::int64_t> attended{0};  // milliseconds of the node's monotonic clock
  std::array<Entry, 32> entries;
};

namespace {

std::uint64_t own_pid_namespace() {
  struct stat facts {};
  return stat("/proc/self/ns/pid", &facts) == 0 ? facts.st_ino : 0;
}

// A call in one word, so that readers see a whole one.
constexpr int k_collective_shift = 56;

std::uint64_t pack(Call call) {
  return (static_cast<std::uint64_t>(call.collective) << k_collective_shift) | call.bytes;
}

Call unpack(std::uint64_t word) {
  return {static_cast<Collective>(word >> k_collective_shift),
          word & ((std::uint64_t{1} << k_collective_shift) - 1)};
}

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// A killed process stays in the table as a zombie until its parent has asked for its status.
bool process_has_ended(int process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return true;
  const auto name_end = line.rfind(')');  // the name may hold anything
  if (name_end == std::string::npos || name_end + 2 >= line.size()) return false;
  const char state = line[name_end + 2];
  return state == 'Z' || state == 'X';
}

}  // namespace

RankBoard::RankBoard(MPI_Comm node, std::vector<int> world_ranks) : world_ranks_(std::move(world_ranks)) {
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
  int rank = 0;
  check_mpi(MPI_Comm_rank(node, &rank), "MPI_Comm_rank");
  void* base = nullptr;
  MPI_Win window = MPI_WIN_NULL;
  const auto bytes = static_cast<MPI_Aint>(sizeof(Slot) + alignof(Slot));
  check_mpi(MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, node, &base, &window),
            "MPI_Win_allocate_shared");
  window_ = WinHandle(window);
  for (std::size_t r = 0; r < world_ranks_.size(); ++r) {
    MPI_Aint size = 0;
    int unit = 0;
    check_mpi(MPI_Win_shared_query(window_.get(), static_cast<int>(r), &size, &unit, &base),
              "MPI_Win_shared_query");
    auto at = reinterpret_cast<std::uintptr_t>(base);
    at = (at + alignof(Slot) - 1) / alignof(Slot) * alignof(Slot);
    slots_.push_back(reinterpret_cast<Slot*>(at));
  }
  mine_ = new (slots_[static_cast<std::size_t>(rank)]) Slot;
  mine_->process = static_cast<int>(getpid());
  mine_->pid_namespace = own_pid_namespace();
  attend();
  check_mpi(MPI_Barrier(node), "MPI_Barrier");
}

void RankBoard::enter(std::uint64_t group_id, std::uint64_t sequence, Call call) {
  const std::lock_guard lock(writing_);
  Slot::Entry* entry = &mine_->entries[0];
  for (auto& candidate : mine_->entries) {
    if (candidate.group_id.load(std::memory_order_relaxed) == group_id) {
      entry = &candidate;
      break;
    }
    if (candidate.age.load(std::memory_order_relaxed) < entry->age.load(std::memory_order_relaxed)) {
      entry = &candidate;
    }
  }
  // Readers take an entry whose sequence is the same before and after: 0 marks one that is being written.
  entry->sequence = 0;
  entry->group_id = group_id;
  entry->call = pack(call);
  entry->age.store(mine_->clock.fetch_add(1, std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  entry->sequence = sequence;
}

void RankBoard::attend() {
  mine_->attended.store(now(), std::memory_order_relaxed);
}

void RankBoard::finish() {
  mine_->finished = true;
}

const RankBoard::Slot* RankBoard::slot_of(int world_rank) const {
  for (std::size_t i = 0; i < world_ranks_.size(); ++i) {
    if (world_ranks_[i] == world_rank) return slots_[i];
  }
  return nullptr;
}

std::optional<LastEntered> RankBoard::last_entered(int world_rank, std::uint64_t group_id) const {
  const Slot* slot = slot_of(world_rank);
  if (slot == nullptr) return std::nullopt;
  for (const auto& entry : slot->entries) {
    const std::uint64_t sequence = entry.sequence;
    const std::uint64_t call = entry.call;
    if (entry.group_id == group_id && sequence != 0 && entry.sequence == sequence) {
      return LastEntered{sequence, unpack(call)};
    }
  }
  return LastEntered{};
}

std::chrono::milliseconds RankBoard::inattentive_for(int world_rank) const {
  const Slot* slot = slot_of(world_rank);
  return std::chrono::milliseconds(slot == nullptr ? 0 : now() - slot->attended);
}

int RankBoard::process_of(int world_rank) const {
  const Slot* slot = slot_of(world_rank);
  return slot == nullptr ? 0 : slot->process.load();
}

bool RankBoard::is_dead(int world_rank) const {
  const Slot* slot = slot_of(world_rank);
  if (slot == nullptr || slot->finished || slot->pid_namespace != mine_->pid_namespace) return false;
  return process_has_ended(slot->process) && !slot->finished;
}

bool RankBoard::claim_report() {
  return !slots_[0]->reported.exchange(true);
}

}  // namespace rankine
