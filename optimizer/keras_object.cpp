#include "optimizer/keras_object.hpp"

#include <nlohmann/json.hpp>

#include "runtime/error.hpp"

namespace rankine {

KerasObject open_envelope(const nlohmann::json& envelope, const std::string& what) {
  const auto class_name = envelope.find("class_name");
  if (class_name == envelope.end() || !class_name->is_string()) {
    throw ConfigError(what + " must be a Keras object with a class_name; got " + envelope.dump());
  }
  const auto registered = envelope.find("registered_name");
  if (registered != envelope.end() && registered->is_string() && *registered != *class_name) {
    throw ConfigError(what + ": the custom class `" + registered->get<std::string>() +
                      "` isn't supported; use one of Keras's own");
  }
  const auto config = envelope.find("config");
  if (config == envelope.end()) {
    throw ConfigError(what + ": `" + class_name->get<std::string>() + "` has no config");
  }
  return {class_name->get<std::string>(), &*config};
}

void refuse_value(ConfigReader& config, std::string_view key, const std::string& wanted) {
  const auto* value = config.raw(key);
  config.refuse("has " + std::string(key) + " = " + (value == nullptr ? "nothing" : value->dump()) +
                ", which must be " + wanted);
}

}  // namespace rankine
