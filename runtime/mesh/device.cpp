#include "runtime/mesh/device.hpp"

#include "runtime/error.hpp"

namespace rankine {
namespace {

std::string who(const DeviceFacts& facts) {
  return "rank " + std::to_string(facts.rank) + " @ " + facts.host;
}

std::string what_is_visible(const DeviceFacts& facts) {
  std::string text = std::to_string(facts.visible) + " GPU(s) visible";
  if (facts.visible_devices) text += " (CUDA_VISIBLE_DEVICES=" + *facts.visible_devices + ")";
  return text;
}

}  // namespace

DeviceChoice choose_device(const DeviceFacts& facts) {
  if (facts.wanted == DeviceFacts::k_cpu) return {};
  if (facts.wanted) {
    if (*facts.wanted < 0 || *facts.wanted >= facts.visible) {
      throw ConfigError(who(facts) + ": device " + std::to_string(*facts.wanted) + " was asked for, but " +
                        what_is_visible(facts) + ". Devices count from 0; --device cpu computes on the CPU.");
    }
    return {false, *facts.wanted};
  }
  if (facts.visible == 0) return {};
  if (facts.visible == 1) return {false, 0};
  if (facts.local_rank >= facts.visible && !facts.share) {
    throw ConfigError(who(facts) + ": local rank " + std::to_string(facts.local_rank) + " of " +
                      std::to_string(facts.local_size) + " on this host, but " + what_is_visible(facts) +
                      ": two ranks would share a GPU. Start at most " + std::to_string(facts.visible) +
                      " ranks on a host, or allow sharing, or compute on the CPU with --device cpu.");
  }
  return {false, facts.local_rank % facts.visible};
}

std::string describe_shared_devices(const std::vector<RankDevice>& ranks) {
  std::string text;
  std::vector<bool> told(ranks.size(), false);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (told[i] || ranks[i].uuid.empty()) continue;
    std::string sharers;
    for (std::size_t j = i + 1; j < ranks.size(); ++j) {
      if (ranks[j].uuid != ranks[i].uuid) continue;
      told[j] = true;
      sharers += " and " + std::to_string(j);
    }
    if (sharers.empty()) continue;
    text += (text.empty() ? "" : "\n") + std::string("ranks ") + std::to_string(i) + sharers +
            " use one GPU, " + ranks[i].uuid + " @ " + ranks[i].host + ".";
  }
  return text;
}

}  // namespace rankine
