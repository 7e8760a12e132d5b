#pragma once

namespace rankine {

/// Throws CommunicationError with MPI's own text unless `code` is MPI_SUCCESS. `call` names the MPI function.
void check_mpi(int code, const char* call);

}  // namespace rankine
