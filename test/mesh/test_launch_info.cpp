#include <catch2/catch.hpp>
#include <cstdlib>

#include "runtime/error.hpp"
#include "runtime/mesh/launch_info.hpp"

using namespace rankine;
using Catch::Matchers::Contains;

namespace {

std::string verdict(const LaunchInfo& launch, int world_size) {
  try {
    check_launch(launch, world_size);
  } catch (const UsageError& e) {
    return e.what();
  }
  return "allowed";
}

}  // namespace

TEST_CASE("srun without PMIx is refused with the remedy", "[launch]") {
  LaunchInfo launch;
  launch.slurm_job = 1;
  launch.slurm_step = 0;
  launch.slurm_step_tasks = 4;
  CHECK_THAT(verdict(launch, 1), Contains("srun started 4 tasks") && Contains("a world of 1") &&
                                     Contains("srun --mpi=pmix") && Contains("mpirun"));
  CHECK(verdict(launch, 4) == "allowed");
  launch.slurm_step_tasks = 1;
  CHECK(verdict(launch, 1) == "allowed");
  launch.slurm_step_tasks.reset();
  CHECK(verdict(launch, 1) == "allowed");
}

TEST_CASE("a shell inside an allocation may start a single rank", "[launch]") {
  LaunchInfo launch;
  CHECK(verdict(launch, 1) == "allowed");
  launch.slurm_job = 1;
  launch.slurm_step_tasks = 4;  // SLURM_NTASKS of the allocation
  CHECK(verdict(launch, 1) == "allowed");
  launch.slurm_step = 4294967290;  // salloc's interactive step
  CHECK(verdict(launch, 1) == "allowed");
  launch.slurm_step = 4294967291;  // the batch script
  CHECK(verdict(launch, 1) == "allowed");
  launch.slurm_step = 0xfffffffe;
  CHECK(verdict(launch, 1) == "allowed");
}

TEST_CASE("mpirun inside an allocation counts, not the step of its daemons", "[launch]") {
  LaunchInfo launch;
  launch.slurm_job = 1;
  launch.slurm_step = 0;
  launch.slurm_step_tasks = 4;
  launch.ompi_size = 1;
  launch.pmix_rank = 0;
  CHECK(verdict(launch, 1) == "allowed");
  launch.ompi_size = 4;
  CHECK(verdict(launch, 4) == "allowed");
}

TEST_CASE("the launcher of another MPI is refused", "[launch]") {
  LaunchInfo launch;
  launch.ompi_size = 4;
  CHECK_THAT(verdict(launch, 1), Contains("mpirun started 4 tasks") && Contains("built with"));
  LaunchInfo hydra;
  hydra.pmi_size = 2;
  CHECK_THAT(verdict(hydra, 1), Contains("PMI_SIZE"));
  CHECK(verdict(hydra, 2) == "allowed");
  hydra.pmi_size = 1;
  CHECK(verdict(hydra, 1) == "allowed");
  LaunchInfo pmix;
  pmix.pmix_rank = 2;
  CHECK_THAT(verdict(pmix, 1), Contains("task 2 of several"));
  pmix.pmix_rank = 0;
  CHECK(verdict(pmix, 1) == "allowed");
}

TEST_CASE("the environment is read into facts, and nonsense is nothing", "[launch]") {
  const char* const names[] = {
      "SLURM_JOB_ID",         "SLURM_STEP_ID", "SLURM_STEPID", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS",
      "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",      "PMIX_RANK",    "CUDA_VISIBLE_DEVICES"};
  std::vector<std::pair<const char*, std::optional<std::string>>> before;
  for (const char* name : names) {
    const char* value = std::getenv(name);
    before.emplace_back(name, value == nullptr ? std::nullopt : std::optional<std::string>(value));
    unsetenv(name);
  }
  auto launch = read_launch_info();
  CHECK(!launch.slurm_job);
  CHECK(!launch.visible_devices);
  setenv("SLURM_JOB_ID", "17", 1);
  setenv("SLURM_STEPID", "0", 1);
  setenv("SLURM_NTASKS", "3", 1);
  setenv("OMPI_COMM_WORLD_SIZE", "four", 1);
  setenv("CUDA_VISIBLE_DEVICES", "", 1);
  launch = read_launch_info();
  CHECK(launch.slurm_job == 17);
  CHECK(launch.slurm_step == 0);
  CHECK(launch.slurm_step_tasks == 3);
  CHECK(!launch.ompi_size);
  CHECK(launch.visible_devices == "");
  setenv("SLURM_STEP_NUM_TASKS", "2", 1);
  CHECK(read_launch_info().slurm_step_tasks == 2);
  for (const auto& [name, value] : before) {
    if (value) {
      setenv(name, value->c_str(), 1);
    } else {
      unsetenv(name);
    }
  }
}
