#pragma once

#include <optional>
#include <string>

namespace rankine {

/// What launchers say in the environment. It never decides a rank or a size, which come from MPI alone: it
/// only tells when MPI and the launcher don't find each other. Nothing is guessed: what isn't set is empty.
struct LaunchInfo {
  std::optional<long> ompi_size;               ///< OMPI_COMM_WORLD_SIZE: mpirun or prterun of Open MPI
  std::optional<long> pmi_size;                ///< PMI_SIZE: Hydra's mpiexec, or srun --mpi=pmi2
  std::optional<long> pmix_rank;               ///< PMIX_RANK: any launcher with PMIx
  std::optional<long> slurm_job;               ///< SLURM_JOB_ID
  std::optional<long> slurm_step;              ///< SLURM_STEP_ID: inside a step that srun started
  std::optional<long> slurm_step_tasks;        ///< SLURM_STEP_NUM_TASKS, or SLURM_NTASKS inside a step
  std::optional<std::string> visible_devices;  ///< CUDA_VISIBLE_DEVICES
};

/// The only place of the library that reads the environment.
LaunchInfo read_launch_info();

/// Throws UsageError, with the remedy, when a launcher started several tasks while each of them sees an MPI
/// world of one: they would all be rank 0 and overwrite one another. Variables left over from an outer
/// allocation (an salloc shell, a batch script) change nothing. Pure. For commands that use ranks; call it
/// right after World.
void check_launch(const LaunchInfo& launch, int world_size);

}  // namespace rankine
