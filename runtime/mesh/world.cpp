#include "runtime/mesh/world.hpp"

#include <mpi.h>

#include <cstdio>
#include <exception>
#include <utility>

#include "runtime/error.hpp"
#include "runtime/mesh/job.hpp"
#include "runtime/mesh/mpi_communicator.hpp"
#include "runtime/mesh/mpi_error.hpp"
#include "runtime/mesh/mpi_handle.hpp"

namespace rankine {
namespace {

void start_mpi(int* argc, char*** argv) {
  int running = 0;
  MPI_Initialized(&running);
  if (running != 0) throw CommunicationError("MPI runs already: there can be one World in a process");
  int provided = MPI_THREAD_SINGLE;
  check_mpi(MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
  check_mpi(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check_mpi(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  if (provided < MPI_THREAD_MULTIPLE) {
    throw CommunicationError("this MPI grants thread level " + std::to_string(provided) +
                             " only; checkpoints and the watchdog need MPI_THREAD_MULTIPLE (" +
                             std::to_string(MPI_THREAD_MULTIPLE) + "). " + mpi_version());
  }
}

std::string with_prefix(const std::string& prefix, const std::string& text) {
  std::string out = prefix;
  for (std::size_t i = 0; i < text.size(); ++i) {
    out += text[i];
    if (text[i] == '\n' && i + 1 < text.size()) out += prefix;
  }
  if (out.back() != '\n') out += '\n';
  return out;
}

}  // namespace

struct World::State {
  std::shared_ptr<Job> job = std::make_shared<Job>();
  NodeGroups nodes;
  std::unique_ptr<Communicator> communicator;
  int exceptions = std::uncaught_exceptions();

  void gather_hosts(const HostId& self);
  void start_board(MPI_Comm node);
  void report(const std::string& text) const;
};

void World::State::gather_hosts(const HostId& self) {
  MPI_Comm node = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, job->rank, MPI_INFO_NULL, &node),
            "MPI_Comm_split_type");
  const CommHandle owner(node);
  int shared_size = 0;
  check_mpi(MPI_Comm_size(node, &shared_size), "MPI_Comm_size");
  std::vector<HostId> hosts;
  std::vector<int> shared_sizes;
  const auto lines =
      communicator->all_gather_text(self.host + "\n" + self.boot_id + "\n" + std::to_string(shared_size));
  for (std::size_t r = 0; r < lines.size(); ++r) {
    const auto first = lines[r].find('\n');
    const auto second = lines[r].find('\n', first + 1);
    job->hosts[r] = lines[r].substr(0, first);
    hosts.push_back({job->hosts[r], lines[r].substr(first + 1, second - first - 1)});
    shared_sizes.push_back(std::stoi(lines[r].substr(second + 1)));
  }
  nodes = find_node_groups(hosts, shared_sizes);
  if (job->size > 1) start_board(node);
}

void World::State::start_board(MPI_Comm node) {
  int size = 0;
  check_mpi(MPI_Comm_size(node, &size), "MPI_Comm_size");
  std::vector<int> world_ranks(static_cast<std::size_t>(size));
  check_mpi(MPI_Allgather(&job->rank, 1, MPI_INT, world_ranks.data(), 1, MPI_INT, node), "MPI_Allgather");
  job->board = std::make_unique<RankBoard>(node, std::move(world_ranks));
  job->watchdog = std::make_unique<Watchdog>(
      [this]() -> std::string {
        for (const int other : job->board->world_ranks()) {
          if (!job->board->is_dead(other)) continue;
          return job->name_rank(other) + " (process " + std::to_string(job->board->process_of(other)) +
                 ") died without a word: killed, perhaps by the kernel for its memory. The job ends.";
        }
        return "";
      },
      [this](const std::string& why) {
        report(why);
        abort_job(static_cast<int>(ExitCode::rank_failed));
      });
}

void World::State::report(const std::string& text) const {
  if (job->board && !job->board->claim_report()) return;
  const std::string prefix = "[" + job->name_rank(job->rank) + "] ";
  std::fputs(with_prefix(prefix, text).c_str(), stderr);
  std::fflush(stderr);
}

World::World(int* argc, char*** argv) : state_(std::make_unique<State>()) {
  start_mpi(argc, argv);
  Job& job = *state_->job;
  check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &job.rank), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &job.size), "MPI_Comm_size");
  const HostId self = this_host();
  job.hosts.assign(static_cast<std::size_t>(job.size), self.host);
  MPI_Comm all = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &all), "MPI_Comm_dup");
  state_->communicator = make_communicator(CommHandle(all), state_->job, "world", 1);
  state_->gather_hosts(self);
}

World::~World() {
  Job& job = *state_->job;
  if (std::uncaught_exceptions() > state_->exceptions) {
    // Freeing the board and finalising would wait for ranks that may never come: the process must end first.
    job.watchdog.reset();
    static_cast<void>(state_.release());
    return;
  }
  if (job.board) job.board->finish();
  job.watchdog.reset();
  // Freeing the board waits for the node's ranks: nobody looks at a page that is gone.
  job.board.reset();
  state_->communicator.reset();
  MPI_Finalize();
}

int World::rank() const {
  return state_->job->rank;
}

int World::size() const {
  return state_->job->size;
}

const std::string& World::host() const {
  return state_->job->hosts[static_cast<std::size_t>(rank())];
}

std::string World::prefix() const {
  return "[" + state_->job->name_rank(rank()) + "] ";
}

const NodeGroups& World::nodes() const {
  return state_->nodes;
}

Communicator& World::communicator() {
  return *state_->communicator;
}

void World::report_failure(const std::string& text) {
  state_->report(text);
}

void World::abort(int exit_code) {
  abort_job(exit_code);
}

std::string mpi_version() {
  int version = 0;
  int subversion = 0;
  MPI_Get_version(&version, &subversion);
  char library[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(library, &length);
  std::string name(library, static_cast<std::size_t>(length));
  return "MPI " + std::to_string(version) + "." + std::to_string(subversion) + ", " +
         name.substr(0, name.find(','));
}

}  // namespace rankine
