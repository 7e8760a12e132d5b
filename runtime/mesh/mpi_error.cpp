#include "runtime/mesh/mpi_error.hpp"

#include <mpi.h>

#include <string>

#include "runtime/error.hpp"

namespace rankine {

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) length = 0;
  throw CommunicationError(std::string(call) + " failed: " +
                           (length > 0 ? std::string(text, static_cast<std::size_t>(length))
                                       : "MPI error " + std::to_string(code)));
}

}  // namespace rankine
