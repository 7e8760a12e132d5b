#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/weights_file.hpp"

namespace rankine {

/// Keras's `.weights.json`: which files hold the arrays of which group.
struct ShardedIndex {
  std::vector<std::string> shards;                      ///< names beside the index, each once
  std::map<std::string, std::set<std::string>> groups;  ///< "layers/dense/vars" → its shards
  double total_bytes = -1;  ///< of all arrays; negative when the index doesn't say
};

/// Reads an index. Throws CheckpointError, also for names that lead out of the index's folder.
ShardedIndex read_sharded_index(const std::string& path);

/// Checks that the shards hold what the index says, no more and no less: a missing piece must never be taken
/// for a smaller model. `shard_of` tells where an array was found. Throws CheckpointError.
void check_shards(const ShardedIndex& index, const std::string& path, const WeightsFile::Arrays& arrays,
                  const std::function<std::string(const std::string&)>& shard_of);

}  // namespace rankine
