#include "checkpoint/sharded_index.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/error.hpp"

namespace rankine {
namespace {

using nlohmann::json;

json parse(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw CheckpointError("can't open " + path + ": " + std::strerror(errno));
  const json index = json::parse(file, nullptr, false);
  if (index.is_discarded()) throw CheckpointError(path + " isn't JSON, or was cut off");
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object())
    throw CheckpointError(
        path +
        " has no weight_map, so it isn't the index of sharded weights (a model's config has no "
        "weights; give the .weights.h5 or .keras file)");
  return index;
}

std::vector<std::string> shard_names(const json& value, const std::string& group, const std::string& path) {
  std::vector<std::string> names;
  for (const json& name : value.is_array() ? value : json::array({value})) {
    if (!name.is_string())
      throw CheckpointError(path + ": weight_map of " + group + " isn't a list of file names");
    names.push_back(name.get<std::string>());
    if (names.back().empty() || names.back().find('/') != std::string::npos || names.back() == "..")
      throw CheckpointError(path + ": " + group + " is said to be in " + names.back() +
                            ", which isn't a file beside the index");
  }
  return names;
}

/// The structural path of a group: without the slash in front, and with "vars" at the end, which Keras lets
/// go.
std::string group_path(std::string key) {
  key.erase(0, key.find_first_not_of('/'));
  return key == "vars" || key.ends_with("/vars") ? key : key + "/vars";
}

}  // namespace

ShardedIndex read_sharded_index(const std::string& path) {
  const json index = parse(path);
  ShardedIndex result;
  for (const auto& [key, value] : index["weight_map"].items())
    for (const std::string& shard : shard_names(value, key, path)) {
      result.groups[group_path(key)].insert(shard);
      if (std::find(result.shards.begin(), result.shards.end(), shard) == result.shards.end())
        result.shards.push_back(shard);
    }
  const json& metadata = index.value("metadata", json::object());
  if (metadata.is_object() && metadata.contains("total_size") && metadata["total_size"].is_number())
    result.total_bytes = metadata["total_size"].get<double>();
  return result;
}

void check_shards(const ShardedIndex& index, const std::string& path, const WeightsFile::Arrays& arrays,
                  const std::function<std::string(const std::string&)>& shard_of) {
  std::map<std::string, std::set<std::string>> found;
  double bytes = 0;
  for (const auto& [array, facts] : arrays) {
    found[array.substr(0, array.rfind('/'))].insert(shard_of(array));
    bytes += static_cast<double>(facts.bytes);
  }
  for (const auto& [group, shards] : index.groups)
    for (const std::string& shard : shards)
      if (!found[group].contains(shard))
        throw CheckpointError(path + ": " + shard + " should hold arrays of " + group + " but has none");
  for (const auto& [group, shards] : found)
    for (const std::string& shard : shards)
      if (!index.groups.contains(group) || !index.groups.at(group).contains(shard))
        throw CheckpointError(path + ": " + shard + " holds arrays of " + group +
                              ", of which the index knows nothing: the shards are of different saves");
  if (index.total_bytes >= 0 && bytes != index.total_bytes)
    throw CheckpointError(
        path + ": the index tells of " + std::to_string(static_cast<std::int64_t>(index.total_bytes)) +
        " bytes of arrays, but the shards hold " + std::to_string(static_cast<std::int64_t>(bytes)) +
        ": arrays are missing, or the shards are of different saves");
}

}  // namespace rankine
