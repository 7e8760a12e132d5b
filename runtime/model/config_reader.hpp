#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/model/weight_rules.hpp"

namespace rankine {

struct LayerCommon;

/// "layer 'dense_1' (Dense)", the way in which messages name a layer.
std::string layer_label(const LayerCommon& common);

/// Reads one Keras config object key by key and remembers which keys were asked for, so that `finish` can
/// refuse the others. Every refusal is a ConfigError that starts with the owner:
///   ConfigReader reader(config, layer_label(common));
///   units_ = reader.required<std::int64_t>("units");
///   use_bias_ = reader.get<bool>("use_bias", true);
///   reader.finish();
/// T is bool, std::int64_t, double, std::string or std::vector<std::int64_t>.
class ConfigReader {
 public:
  /// Keeps a reference to `config`, which must be an object.
  ConfigReader(const nlohmann::json& config, std::string owner);

  /// The value of a key; `otherwise` when the config lacks it. A null is refused: see `optional`.
  template <class T>
  T get(std::string_view key, const T& otherwise) {
    const std::optional<T> value = find<T>(key, Null::refused);
    return value ? *value : otherwise;
  }
  /// The value of a key that must be there.
  template <class T>
  T required(std::string_view key) {
    const std::optional<T> value = find<T>(key, Null::refused);
    if (!value) refuse("lacks the key '" + std::string(key) + "'");
    return *value;
  }
  /// Nothing when the config lacks the key or has null there, Python's None.
  template <class T>
  std::optional<T> optional(std::string_view key) {
    return find<T>(key, Null::is_absent);
  }

  /// An initializer by plain name or envelope; `otherwise` is a plain name.
  std::shared_ptr<const Initializer> initializer(std::string_view key, std::string_view otherwise);
  /// <name>_initializer, <name>_regularizer and <name>_constraint.
  WeightRules weight(const std::string& name, std::string_view initializer);

  /// The raw value of a key, or nullptr. The key counts as asked for.
  const nlohmann::json* raw(std::string_view key);
  /// Keys that are known and change nothing here.
  void ignore(std::initializer_list<std::string_view> keys);

  /// Refuses what wasn't asked for. A null says nothing and is let through; activity regularizers,
  /// quantization and LoRA are refused as unsupported; any other key with the nearest known one.
  void finish() const;
  /// Throws ConfigError "<owner> <what>".
  [[noreturn]] void refuse(const std::string& what) const;

 private:
  enum class Null : std::uint8_t { refused, is_absent };
  template <class T>
  std::optional<T> find(std::string_view key, Null null);
  /// What `make` makes of a key's value; its refusal is said with the key.
  template <class Made>
  Made object(std::string_view key, const nlohmann::json& otherwise, Made (*make)(const nlohmann::json&));

  const nlohmann::json& config_;
  std::string owner_;
  std::vector<std::string> asked_;
};

}  // namespace rankine
