#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

#include "runtime/model/config_reader.hpp"

namespace rankine {

/// A Keras envelope taken apart: {"module", "class_name", "config", "registered_name"}.
struct KerasObject {
  std::string class_name;
  const nlohmann::json* config = nullptr;  ///< inside the envelope
};

/// `what` is what the envelope should describe, for messages: "learning_rate". Throws ConfigError for
/// something that is no envelope, and for a custom (registered) class.
KerasObject open_envelope(const nlohmann::json& envelope, const std::string& what);

/// Throws ConfigError: "Adam has beta_1 = 2, which must be below 1".
[[noreturn]] void refuse_value(ConfigReader& config, std::string_view key, const std::string& wanted);

}  // namespace rankine
