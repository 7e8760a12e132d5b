#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "runtime/model/model_tree.hpp"

namespace rankine {

/// Numbers of a model's layers by name.
using LayersByName = std::map<std::string, int>;

/// The calls in a layer's `inbound_nodes`, in today's form ({"args", "kwargs"} with tensor envelopes) or the
/// old one
/// ([["name", 0, 0, {}]]). Throws ConfigError "<owner> …" naming the argument that can't be used.
std::vector<CallDescription> calls_from_config(const nlohmann::json& inbound_nodes,
                                               const LayersByName& layers, const std::string& owner);

/// [name, node, tensor], with further members left alone.
TensorReference reference_from_config(const nlohmann::json& triple, const LayersByName& layers,
                                      const std::string& owner);
/// Whether a value has the form [name, node, tensor].
bool is_reference(const nlohmann::json& value);

}  // namespace rankine
