#include "runtime/mesh/device.hpp"

namespace rankine {

DeviceDiscovery discover_devices() {
  return {{}, "this build has no GPU support (meson option cuda)"};
}

}  // namespace rankine
