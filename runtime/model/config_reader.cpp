#include "runtime/model/config_reader.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "runtime/error.hpp"
#include "runtime/model/known_words.hpp"
#include "runtime/model/layer.hpp"

namespace rankine {

using nlohmann::json;

namespace {

/// What a value is, in the words of someone who reads JSON; short, since a hostile config can be long.
std::string describe(const json& value) {
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  constexpr std::size_t k_longest = 60;
  if (text.size() > k_longest) text = text.substr(0, k_longest) + "…";
  return text;
}

template <class T>
struct Reading;
template <>
struct Reading<bool> {
  static constexpr const char* name = "true or false";
  static bool fits(const json& v) { return v.is_boolean(); }
};
template <>
struct Reading<std::int64_t> {
  static constexpr const char* name = "an integer";
  static bool fits(const json& v) {
    if (v.is_number_unsigned())
      return v.get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()};
    return v.is_number_integer();
  }
};
template <>
struct Reading<double> {
  static constexpr const char* name = "a number";
  static bool fits(const json& v) { return v.is_number() && std::isfinite(v.get<double>()); }
};
template <>
struct Reading<std::string> {
  static constexpr const char* name = "a string";
  static bool fits(const json& v) { return v.is_string(); }
};
template <>
struct Reading<std::vector<std::int64_t>> {
  static constexpr const char* name = "a list of integers";
  static bool fits(const json& v) {
    return v.is_array() && std::all_of(v.begin(), v.end(), Reading<std::int64_t>::fits);
  }
};

bool ends_with_word(const std::string& key, const std::string& word) {
  return key == word || (key.size() > word.size() && key.ends_with("_" + word));
}

/// Features of Keras that hang on layers' configs and aren't here yet.
bool is_unsupported_feature(const std::string& key) {
  return ends_with_word(key, "regularizer") || ends_with_word(key, "constraint") ||
         key == "quantization_config" || key == "lora_rank" || key == "lora_alpha";
}

}  // namespace

std::string layer_label(const LayerCommon& common) {
  return "layer '" + common.name + "' (" + common.class_name + ")";
}

ConfigReader::ConfigReader(const json& config, std::string owner)
    : config_(config), owner_(std::move(owner)), asked_{"name", "trainable", "dtype"} {
  if (!config_.is_object()) refuse("has a config that isn't an object: " + describe(config_));
}

void ConfigReader::refuse(const std::string& what) const {
  throw ConfigError(owner_ + " " + what);
}

const json* ConfigReader::raw(std::string_view key) {
  asked_.emplace_back(key);
  const auto found = config_.find(std::string(key));
  return found == config_.end() ? nullptr : &*found;
}

void ConfigReader::ignore(std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) asked_.emplace_back(key);
}

template <class T>
std::optional<T> ConfigReader::find(std::string_view key, Null null) {
  const json* value = raw(key);
  if (value == nullptr || (value->is_null() && null == Null::is_absent)) return std::nullopt;
  if (!Reading<T>::fits(*value))
    refuse("has " + std::string(key) + " = " + describe(*value) + ", which must be " + Reading<T>::name);
  return value->get<T>();
}
template std::optional<bool> ConfigReader::find(std::string_view, Null);
template std::optional<std::int64_t> ConfigReader::find(std::string_view, Null);
template std::optional<double> ConfigReader::find(std::string_view, Null);
template std::optional<std::string> ConfigReader::find(std::string_view, Null);
template std::optional<std::vector<std::int64_t>> ConfigReader::find(std::string_view, Null);

template <class Made>
Made ConfigReader::object(std::string_view key, const json& otherwise, Made (*make)(const json&)) {
  const json* value = raw(key);
  if (value == nullptr) value = &otherwise;
  try {
    return make(*value);
  } catch (const ConfigError& error) {
    refuse("has a " + std::string(key) + " that can't be used: " + error.what());
  }
}

std::shared_ptr<const Initializer> ConfigReader::initializer(std::string_view key,
                                                             std::string_view otherwise) {
  return object(key, json(std::string(otherwise)), initializer_from_config);
}

WeightRules ConfigReader::weight(const std::string& name, std::string_view initializer) {
  WeightRules rules{this->initializer(name + "_initializer", initializer)};
  const std::string regularizer = name + "_regularizer", constraint = name + "_constraint";
  const auto is_given = [this](const std::string& key) {
    const json* value = raw(key);
    return value != nullptr && !value->is_null();
  };
  if (is_given(regularizer)) rules.regularizer = object(regularizer, {}, regularizer_from_config);
  if (is_given(constraint)) rules.constraint = object(constraint, {}, constraint_from_config);
  return rules;
}

void ConfigReader::finish() const {
  for (const auto& [key, value] : config_.items()) {
    if (value.is_null() || std::find(asked_.begin(), asked_.end(), key) != asked_.end()) continue;
    if (is_unsupported_feature(key))
      refuse("has " + key + " = " + describe(value) + ", which isn't supported: it must be null or absent");
    refuse("has a key '" + key.substr(0, 64) + "' that isn't known" + did_you_mean(key, asked_) +
           " Known keys: " + listed(asked_));
  }
}

}  // namespace rankine
