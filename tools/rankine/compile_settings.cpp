#include "tools/rankine/compile_settings.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "optimizer/rule.hpp"
#include "runtime/error.hpp"
#include "runtime/model/known_words.hpp"

namespace rankine {
namespace {

using nlohmann::json;

const std::vector<std::string> k_keys{"optimizer", "loss", "loss_weights", "metrics", "weighted_metrics"};

bool is_null(const json& object, const char* key) {
  return !object.contains(key) || object[key].is_null();
}

/// Keras's envelope of an optimizer that is given by its name, so that Keras can load what we write.
json optimizer_envelope(const json& given) {
  if (given.is_object()) return given;
  if (!given.is_string()) {
    throw UsageError("[compile] optimizer must be a name such as \"adam\", or Keras's JSON; got " +
                     given.dump());
  }
  return {{"module", "keras.optimizers"},
          {"class_name", find_rule(given.get<std::string>(), true).class_name},
          {"config", json::object()},
          {"registered_name", nullptr}};
}

void set_optimizer_key(json& config, const std::string& key, const json& value) {
  if (!nearest_word(key, k_keys).empty())
    throw UsageError("[compile] has no key '" + key + "'" + did_you_mean(key, k_keys));
  if (is_null(config, "optimizer")) {
    throw ConfigError("[compile] sets '" + key +
                      "' of an optimizer, but neither the model nor the job file names one");
  }
  if (config["optimizer"].is_string()) config["optimizer"] = optimizer_envelope(config["optimizer"]);
  config["optimizer"]["config"][key] = value;
}

}  // namespace

CompileSettings compile_settings(const std::string& config, const CompileOverrides& overrides,
                                 ModelCommand command) {
  json merged = config.empty() ? json::object() : json::parse(config);
  for (const auto& [key, text] : overrides) {
    if (std::find(k_keys.begin(), k_keys.end(), key) == k_keys.end()) continue;
    const json value = json::parse(text);
    merged[key] = key == "optimizer" ? optimizer_envelope(value) : value;
  }
  for (const auto& [key, text] : overrides) {
    if (std::find(k_keys.begin(), k_keys.end(), key) == k_keys.end()) {
      set_optimizer_key(merged, key, json::parse(text));
    }
  }
  for (const char* key : {"optimizer", "loss"}) {
    if (!is_null(merged, key) || (std::string_view(key) == "optimizer" && command != ModelCommand::train))
      continue;
    throw ConfigError(
        std::string(config.empty() ? "the model isn't compiled" : "the model is compiled without ") +
        (config.empty() ? "" : key) + ", and no job file gives the " + key +
        ": call model.compile(...) in Keras before saving, or name a job file with --config that has\n"
        "  [compile]\n  optimizer = \"adam\"\n  loss = \"sparse_categorical_crossentropy\"");
  }
  const bool keeps_optimizer = std::all_of(overrides.begin(), overrides.end(), [](const auto& override) {
    return override.first != "optimizer" &&
           std::find(k_keys.begin(), k_keys.end(), override.first) != k_keys.end();
  });
  return {merged.dump(), keeps_optimizer};
}

}  // namespace rankine
