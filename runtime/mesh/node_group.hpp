#pragma once

#include <string>
#include <vector>

namespace rankine {

/// What identifies a rank's machine: host names repeat between containers, boot ids between none.
struct HostId {
  std::string host;
  std::string boot_id;
  bool operator==(const HostId&) const = default;
};
HostId this_host();

/// Which ranks share a node.
struct NodeGroups {
  std::vector<int> node;        ///< of world rank r, counted from 0 in order of their first ranks
  std::vector<int> local_rank;  ///< of world rank r among the ranks of its node
  std::vector<int> local_size;  ///< number of ranks on the node of world rank r
  int nodes = 0;
  std::string notice;  ///< for people, when MPI and the host names disagree; else empty
};

/// Ranks with equal host ids share a node. `shared_size[r]` is the size of the shared-memory group that MPI
/// put rank r in: where it is another number, the launcher told MPI wrong or nothing, and the notice says so.
/// Pure.
NodeGroups find_node_groups(const std::vector<HostId>& hosts, const std::vector<int>& shared_size);

}  // namespace rankine
