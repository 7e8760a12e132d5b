#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rankine {

/// Reads the `config` of a Keras object key by key. What was asked for is what is known: refuse_unknown then
/// names any other key, so that nothing in a config is silently passed over. Every method throws ConfigError
/// that names the object, the key and the value.
class ConfigFields {
 public:
  /// `owner` is what the config belongs to, for messages: "Adam". The config must outlive this.
  ConfigFields(const nlohmann::json& config, std::string owner);

  /// The value of a key, or null when it's absent or null.
  const nlohmann::json* find(std::string_view key);
  /// A number, with or without a decimal point.
  double number(std::string_view key);
  double number(std::string_view key, double fallback);
  std::optional<double> optional_number(std::string_view key);
  /// A number that Keras wants as a Python float: an integer is refused, as Keras does.
  double real(std::string_view key, double fallback);
  std::optional<std::int64_t> optional_integer(std::string_view key);
  bool flag(std::string_view key, bool fallback);
  std::string text(std::string_view key, const std::string& fallback);
  std::vector<double> numbers(std::string_view key);

  void refuse_unknown() const;
  /// Throws: "Adam: beta_1 must be ..., got 2".
  [[noreturn]] void refuse(std::string_view key, const std::string& wanted) const;
  const std::string& owner() const { return owner_; }

 private:
  const nlohmann::json& config_;
  std::string owner_;
  std::vector<std::string> asked_;
};

/// A Keras envelope: {"module", "class_name", "config", "registered_name"}.
struct Envelope {
  std::string class_name;
  const nlohmann::json* config = nullptr;  ///< an object inside the envelope
};

/// Takes an envelope apart; `what` is what it should describe, for messages: "learning_rate". A custom
/// (registered) class is refused.
Envelope open_envelope(const nlohmann::json& envelope, const std::string& what);

}  // namespace rankine
