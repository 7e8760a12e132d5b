#include <hdf5.h>

#include <string>

#include "runtime/hdf5/hdf5_handle.hpp"
#include "tools/rankine/command.hpp"

namespace rankine {

std::string version_line() {
  return "rankine " RANKINE_VERSION;
}

std::string version_text() {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  {
    const hdf5::Lock lock;
    H5get_libversion(&major, &minor, &release);
  }
  return version_line() + "\n" + mpi_version() + "\nHDF5 " + std::to_string(major) + "." +
         std::to_string(minor) + "." + std::to_string(release) + "\n";
}

}  // namespace rankine
