#include "runtime/model/operation.hpp"

#include <nlohmann/json.hpp>

#include "runtime/error.hpp"

namespace rankine {

using nlohmann::json;

namespace {

constexpr const char* k_tensor = "__keras_tensor__";

/// The arguments of one call, given by place or by name.
json arguments_of(const json& node) {
  json arguments = json::array();
  if (!node.is_object()) return arguments;
  if (node.contains("args") && node["args"].is_array()) arguments = node["args"];
  if (node.contains("kwargs") && node["kwargs"].is_object())
    for (const auto& [name, value] : node["kwargs"].items()) arguments.push_back(value);
  return arguments;
}

/// Arguments with every tensor's config left out.
json without_histories(const json& value) {
  if (is_tensor_argument(value)) return {{"class_name", k_tensor}};
  if (!value.is_array()) return value;
  json list = json::array();
  for (const json& element : value) list.push_back(without_histories(element));
  return list;
}

/// The tensors of a list of arguments; a list of tensors stays one.
json tensors_of(const json& arguments) {
  json tensors = json::array();
  for (const json& argument : arguments) {
    if (is_tensor_argument(argument)) tensors.push_back(argument);
    if (!argument.is_array()) continue;
    json list = tensors_of(argument);
    if (!list.empty()) tensors.push_back(std::move(list));
  }
  return tensors;
}

/// The dtype of the first tensor, or null; null as well for integers and truth values, which aren't a
/// layer's.
json dtype_of(const json& tensors) {
  if (tensors.empty()) return nullptr;
  const json& first = tensors[0].is_array() ? tensors[0][0] : tensors[0];
  if (!first.contains("config") || !first["config"].is_object()) return nullptr;
  const json dtype = first["config"].value("dtype", json());
  const bool is_other = dtype.is_string() && (dtype == "bool" || dtype.get<std::string>().find("int") == 0 ||
                                              dtype.get<std::string>().find("uint") == 0);
  return is_other ? json() : dtype;
}

}  // namespace

bool is_tensor_argument(const json& argument) {
  return argument.is_object() && argument.contains("class_name") && argument["class_name"] == k_tensor;
}

bool is_operation(const json& envelope) {
  const auto module = envelope.find("module");
  if (module == envelope.end() || !module->is_string()) return false;
  const auto& name = module->get_ref<const std::string&>();
  return name.starts_with("keras.src.ops.") || name.starts_with("keras.ops");
}

json operation_config(const json& envelope, const std::string& owner) {
  json config = envelope["config"];
  const json nodes = envelope.value("inbound_nodes", json::array());
  if (!nodes.is_array() || nodes.empty()) throw ConfigError(owner + " is never called");
  config["args"] = without_histories(arguments_of(nodes[0]));
  config["dtype"] = dtype_of(tensors_of(arguments_of(nodes[0])));
  for (const json& node : nodes)
    if (without_histories(arguments_of(node)) != config["args"])
      throw ConfigError(owner +
                        " is called with different constants; one operation with one set is supported");
  return config;
}

json operation_nodes(const json& envelope) {
  json nodes = json::array();
  for (const json& node : envelope.value("inbound_nodes", json::array()))
    nodes.push_back({{"args", tensors_of(arguments_of(node))}, {"kwargs", json::object()}});
  return nodes;
}

}  // namespace rankine
