#include "runtime/mesh/node_group.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>

namespace rankine {

HostId this_host() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) name[0] = '\0';
  HostId id{name.data(), ""};
  if (id.host.empty()) id.host = "unknown-host";
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id.boot_id;
  return id;
}

NodeGroups find_node_groups(const std::vector<HostId>& hosts, const std::vector<int>& shared_size) {
  NodeGroups groups;
  std::vector<HostId> seen;
  std::vector<int> members;
  for (const auto& host : hosts) {
    const auto found = std::find(seen.begin(), seen.end(), host);
    const auto node = static_cast<std::size_t>(found - seen.begin());
    if (found == seen.end()) {
      seen.push_back(host);
      members.push_back(0);
    }
    groups.node.push_back(static_cast<int>(node));
    groups.local_rank.push_back(members[node]++);
  }
  groups.nodes = static_cast<int>(seen.size());
  for (const int node : groups.node) groups.local_size.push_back(members[static_cast<std::size_t>(node)]);
  for (std::size_t r = 0; r < hosts.size() && groups.notice.empty(); ++r) {
    if (shared_size[r] == groups.local_size[r]) continue;
    groups.notice = "MPI sees " + std::to_string(shared_size[r]) + " rank(s) in shared memory with rank " +
                    std::to_string(r) + ", but " + std::to_string(groups.local_size[r]) +
                    " rank(s) run on host " + hosts[r].host +
                    "; local ranks follow the host names. The launcher didn't tell MPI where ranks are (with "
                    "srun, check the PMIx plugin), and communication on the node may be slow.";
  }
  return groups;
}

}  // namespace rankine
