#pragma once

#include <mpi.h>

#include "runtime/handle.hpp"

/// Owners of MPI's handles. None of them touches MPI once it is finalised: then MPI has freed everything.
namespace rankine {

inline bool mpi_is_running() {
  int initialised = 0;
  int finalised = 0;
  MPI_Initialized(&initialised);
  MPI_Finalized(&finalised);
  return initialised != 0 && finalised == 0;
}

inline MPI_Comm null_comm() {
  return MPI_COMM_NULL;
}
inline void free_comm(MPI_Comm comm) {
  if (mpi_is_running()) MPI_Comm_free(&comm);
}
using CommHandle = UniqueHandle<MPI_Comm, free_comm, null_comm>;

inline MPI_Group null_group() {
  return MPI_GROUP_NULL;
}
inline void free_group(MPI_Group group) {
  if (mpi_is_running()) MPI_Group_free(&group);
}
using GroupHandle = UniqueHandle<MPI_Group, free_group, null_group>;

inline MPI_Op null_op() {
  return MPI_OP_NULL;
}
inline void free_op(MPI_Op op) {
  if (mpi_is_running()) MPI_Op_free(&op);
}
using OpHandle = UniqueHandle<MPI_Op, free_op, null_op>;

inline MPI_Win null_win() {
  return MPI_WIN_NULL;
}
inline void free_win(MPI_Win win) {
  if (mpi_is_running()) MPI_Win_free(&win);
}
using WinHandle = UniqueHandle<MPI_Win, free_win, null_win>;

}  // namespace rankine
