#include "runtime/model/named_object.hpp"

#include <nlohmann/json.hpp>

#include "runtime/error.hpp"

namespace rankine {

using nlohmann::json;

NamedObject NamedObject::from_config(const json& config, const std::string& what) {
  static const json k_empty = json::object();
  NamedObject object{{}, &k_empty};
  if (config.is_string()) {
    object.name = config.get<std::string>();
  } else if (config.is_object() && config.contains("class_name") && config["class_name"].is_string()) {
    object.name = config["class_name"].get<std::string>();
    if (config.contains("config")) object.config = &config["config"];
    const json registered = config.value("registered_name", json());
    if (registered.is_string() && registered != object.name) object.name = registered.get<std::string>();
  } else {
    throw ConfigError(what + " must be a name or an object with class_name and config");
  }
  return object;
}

}  // namespace rankine
