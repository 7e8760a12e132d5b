#pragma once

#include <optional>
#include <string>
#include <vector>

namespace rankine {

/// One accelerator as this process sees it.
struct Device {
  std::string name;
  std::string uuid;    ///< the same from every process, whatever the numbering
  std::string pci_id;  ///< "0000:17:00.0"
  std::size_t memory = 0;
};

/// What there is, and when there is nothing, why.
struct DeviceDiscovery {
  std::vector<Device> devices;
  std::string why_none;
};
/// Never fails: no driver and no device means none. One source file a device library implements it.
DeviceDiscovery discover_devices();

/// Everything that decides which device a rank uses.
struct DeviceFacts {
  int visible = 0;                             ///< number of devices that this process sees
  std::optional<std::string> visible_devices;  ///< CUDA_VISIBLE_DEVICES, for messages
  std::optional<int> wanted;                   ///< the user's choice: a device of every rank, or k_cpu
  bool share = false;                          ///< the user allows several ranks on a device
  int rank = 0;
  int local_rank = 0;
  int local_size = 1;
  std::string host;

  static constexpr int k_cpu = -1;
};

struct DeviceChoice {
  bool is_cpu = true;
  int index = 0;  ///< of the device, when it isn't the CPU
  bool operator==(const DeviceChoice&) const = default;
};

/// No visible device: the CPU. One: that one, since launchers like to show each task its own. Several: the
/// one with the number of the local rank. Throws ConfigError, naming host, rank, counts and the remedy, when
/// there are fewer than that and sharing wasn't allowed, or when the wanted one doesn't exist. Pure.
DeviceChoice choose_device(const DeviceFacts& facts);

/// Where one rank computes; uuid is empty for the CPU.
struct RankDevice {
  std::string host;
  std::string uuid;
};
/// Names the ranks that were given the same device, by rank in the world; empty when there are none. Pure.
std::string describe_shared_devices(const std::vector<RankDevice>& ranks);

}  // namespace rankine
