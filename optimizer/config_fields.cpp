#include "optimizer/config_fields.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "optimizer/near_match.hpp"
#include "runtime/error.hpp"

namespace rankine {
ConfigFields::ConfigFields(const nlohmann::json& config, std::string owner)
    : config_(config), owner_(std::move(owner)) {
  if (!config.is_object()) throw ConfigError(owner_ + ": its config must be an object, got " + config.dump());
}

const nlohmann::json* ConfigFields::find(std::string_view key) {
  if (std::find(asked_.begin(), asked_.end(), key) == asked_.end()) asked_.emplace_back(key);
  const auto at = config_.find(std::string(key));
  return at == config_.end() || at->is_null() ? nullptr : &*at;
}

double ConfigFields::number(std::string_view key) {
  const auto value = optional_number(key);
  if (!value) throw ConfigError(owner_ + ": " + std::string(key) + " is missing");
  return *value;
}

double ConfigFields::number(std::string_view key, double fallback) {
  return optional_number(key).value_or(fallback);
}

std::optional<double> ConfigFields::optional_number(std::string_view key) {
  const auto* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) refuse(key, "a number");
  return value->get<double>();
}

double ConfigFields::real(std::string_view key, double fallback) {
  const auto* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_number_float()) refuse(key, "a float, as Keras wants it (write 1.0, not 1)");
  return value->get<double>();
}

std::optional<std::int64_t> ConfigFields::optional_integer(std::string_view key) {
  const auto* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number_integer()) refuse(key, "an integer");
  return value->get<std::int64_t>();
}

bool ConfigFields::flag(std::string_view key, bool fallback) {
  const auto* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) refuse(key, "true or false");
  return value->get<bool>();
}

std::string ConfigFields::text(std::string_view key, const std::string& fallback) {
  const auto* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_string()) refuse(key, "a text");
  return value->get<std::string>();
}

std::vector<double> ConfigFields::numbers(std::string_view key) {
  const auto* value = find(key);
  if (value == nullptr) throw ConfigError(owner_ + ": " + std::string(key) + " is missing");
  if (!value->is_array()) refuse(key, "a list of numbers");
  std::vector<double> list;
  for (const auto& element : *value) {
    if (!element.is_number()) refuse(key, "a list of numbers");
    list.push_back(element.get<double>());
  }
  return list;
}

void ConfigFields::refuse_unknown() const {
  for (const auto& [key, value] : config_.items()) {
    if (std::find(asked_.begin(), asked_.end(), key) != asked_.end()) continue;
    const std::string near = near_match(key, asked_);
    throw ConfigError(owner_ + " has no setting `" + key + "`" +
                      (near.empty() ? "; it has: " + listed(asked_) : "; did you mean `" + near + "`?"));
  }
}

void ConfigFields::refuse(std::string_view key, const std::string& wanted) const {
  const auto at = config_.find(std::string(key));
  throw ConfigError(owner_ + ": " + std::string(key) + " must be " + wanted + "; got " +
                    (at == config_.end() ? "nothing" : at->dump()));
}

Envelope open_envelope(const nlohmann::json& envelope, const std::string& what) {
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
  if (config == envelope.end())
    throw ConfigError(what + ": `" + class_name->get<std::string>() + "` has no config");
  return {class_name->get<std::string>(), &*config};
}

}  // namespace rankine
