#include "runtime/mesh/launch_info.hpp"

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "runtime/error.hpp"

namespace rankine {
namespace {

std::optional<std::string> text_variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  return value;
}

std::optional<long> number_variable(const char* name) {
  const auto text = text_variable(name);
  if (!text) return std::nullopt;
  long value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size()) return std::nullopt;
  return value;
}

/// Slurm numbers its own steps (batch script, interactive shell, external) from the top of 32 bits: they are
/// places to start from, not launches of this program.
bool is_launched_step(const LaunchInfo& launch) {
  constexpr long k_first_special_step = 0xfffffff0;
  return launch.slurm_step && *launch.slurm_step >= 0 && *launch.slurm_step < k_first_special_step;
}

[[noreturn]] void refuse(const std::string& evidence, const std::string& remedy) {
  throw UsageError(evidence + ", but MPI sees a world of 1: every task would take itself for the only one. " +
                   remedy);
}

}  // namespace

LaunchInfo read_launch_info() {
  LaunchInfo launch;
  launch.ompi_size = number_variable("OMPI_COMM_WORLD_SIZE");
  launch.pmi_size = number_variable("PMI_SIZE");
  launch.pmix_rank = number_variable("PMIX_RANK");
  launch.slurm_job = number_variable("SLURM_JOB_ID");
  launch.slurm_step = number_variable("SLURM_STEP_ID");
  if (!launch.slurm_step) launch.slurm_step = number_variable("SLURM_STEPID");
  launch.slurm_step_tasks = number_variable("SLURM_STEP_NUM_TASKS");
  if (!launch.slurm_step_tasks) launch.slurm_step_tasks = number_variable("SLURM_NTASKS");
  launch.visible_devices = text_variable("CUDA_VISIBLE_DEVICES");
  return launch;
}

void check_launch(const LaunchInfo& launch, int world_size) {
  if (world_size > 1) return;
  const std::string other_mpi =
      "Start it with the mpirun of the Open MPI that it was built with (rankine --version names it).";
  // The innermost launcher counts: mpirun inside an allocation starts its ranks from a step of its own.
  if (launch.ompi_size) {
    if (*launch.ompi_size <= 1) return;
    refuse("mpirun started " + std::to_string(*launch.ompi_size) + " tasks (OMPI_COMM_WORLD_SIZE)",
           other_mpi);
  }
  if (launch.slurm_job && is_launched_step(launch)) {
    if (launch.slurm_step_tasks.value_or(1) <= 1) return;
    refuse(
        "srun started " + std::to_string(*launch.slurm_step_tasks) + " tasks (Slurm job " +
            std::to_string(*launch.slurm_job) + ", step " + std::to_string(*launch.slurm_step) + ")",
        "Use srun --mpi=pmix, or mpirun inside the allocation (srun --mpi=list shows what this Slurm has); "
        "for a single task use srun -n 1.");
  }
  if (launch.pmi_size.value_or(1) > 1) {
    refuse("a launcher started " + std::to_string(*launch.pmi_size) + " tasks (PMI_SIZE)", other_mpi);
  }
  if (launch.pmix_rank.value_or(0) > 0) {
    refuse(
        "a launcher says that this is task " + std::to_string(*launch.pmix_rank) + " of several (PMIX_RANK)",
        other_mpi);
  }
}

}  // namespace rankine
