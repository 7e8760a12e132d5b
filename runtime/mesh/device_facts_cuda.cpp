#include <cuda_runtime_api.h>

#include <array>
#include <cstdio>

#include "runtime/mesh/device.hpp"

namespace rankine {
namespace {

/// As nvidia-smi writes it.
std::string text_of(const cudaUUID_t& uuid) {
  std::string text = "GPU-";
  for (std::size_t i = 0; i < sizeof uuid.bytes; ++i) {
    std::array<char, 4> digits{};
    std::snprintf(digits.data(), digits.size(), "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += digits.data();
  }
  return text;
}

}  // namespace

DeviceDiscovery discover_devices() {
  DeviceDiscovery found;
  int count = 0;
  // Without a driver this is an error, and with one but no device another: both mean that there is none.
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) {
    found.why_none = cudaGetErrorString(error);
    cudaGetLastError();
    return found;
  }
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp properties{};
    if (const cudaError_t error = cudaGetDeviceProperties(&properties, i); error != cudaSuccess) {
      found.devices.clear();
      found.why_none = "device " + std::to_string(i) + ": " + cudaGetErrorString(error);
      return found;
    }
    std::array<char, 32> pci{};
    if (cudaDeviceGetPCIBusId(pci.data(), static_cast<int>(pci.size()), i) != cudaSuccess) pci[0] = '\0';
    found.devices.push_back(
        {properties.name, text_of(properties.uuid), pci.data(), properties.totalGlobalMem});
  }
  if (found.devices.empty()) found.why_none = "the driver shows no device";
  return found;
}

}  // namespace rankine
