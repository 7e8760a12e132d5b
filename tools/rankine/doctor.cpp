#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdio>

#include "runtime/compute/backend.hpp"
#include "runtime/error.hpp"
#include "runtime/mesh/agree.hpp"
#include "runtime/mesh/device.hpp"
#include "tools/rankine/command.hpp"
#include "tools/rankine/doctor_report.hpp"
#include "tools/rankine/rank_cores.hpp"

namespace rankine {
namespace {

std::int64_t shared_memory_bytes() {
  struct statvfs info {};
  if (::statvfs("/dev/shm", &info) != 0) return 0;
  return static_cast<std::int64_t>(info.f_frsize) * static_cast<std::int64_t>(info.f_blocks);
}

RankFacts facts_of(const World& world) {
  const auto place = static_cast<std::size_t>(world.rank());
  RankFacts facts;
  facts.rank = world.rank();
  facts.host = world.host();
  facts.node = world.nodes().node[place];
  facts.local_rank = world.nodes().local_rank[place];
  facts.cores = allowed_cores();
  facts.node_cores = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  facts.instructions = name_of(best_instruction_set());
  facts.versions = version_text();
  facts.shm_bytes = shared_memory_bytes();
  return facts;
}

void print(const DoctorReport& report, const World& world) {
  std::printf("%sMPI_THREAD_MULTIPLE is there (World asks for it and stops without it)\n\n%s\n",
              version_text().c_str(), report.table.c_str());
  const DeviceDiscovery devices = discover_devices();
  std::printf("devices of rank 0: %s\n", devices.devices.empty()
                                             ? ("none, " + devices.why_none).c_str()
                                             : std::to_string(devices.devices.size()).c_str());
  if (!world.nodes().notice.empty()) std::printf("warning: %s\n", world.nodes().notice.c_str());
  for (const std::string& text : report.warnings) std::printf("warning: %s\n", text.c_str());
  if (report.warnings.empty() && report.faults.empty()) std::printf("nothing to say against it\n");
}

}  // namespace

std::string doctor_help() {
  return "Shows where the ranks are and what they have, and warns of what would be slow or go wrong. Start "
         "it as you\n"
         "would start training. Exit code 3 when training can't be trusted to work.\n"
         "Usage: rankine doctor\n\n"
         "Example:\n"
         "  srun --mpi=pmix -n 8 rankine doctor\n";
}

void run_doctor(World& world, Arguments arguments) {
  if (!arguments.empty()) throw UsageError("doctor takes no arguments: mpirun -n 2 rankine doctor");
  std::vector<RankFacts> ranks;
  for (const std::string& text : world.communicator().all_gather_text(to_text(facts_of(world))))
    ranks.push_back(rank_facts_from(text));
  const DoctorReport report = examine(ranks);
  if (world.rank() == 0) print(report, world);
  agree(world.communicator(), [&] {
    if (!report.faults.empty()) throw ConfigError(report.faults.front());
  });
}

}  // namespace rankine
