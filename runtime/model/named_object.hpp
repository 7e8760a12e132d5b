#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace rankine {

/// What a config says for an initializer, a regularizer or a constraint: a plain name, or an envelope
/// {"class_name", "config", "registered_name"}.
struct NamedObject {
  std::string name;                        ///< the registered one where it is somebody's own class
  const nlohmann::json* config = nullptr;  ///< inside the envelope; an empty object for a plain name

  /// Throws ConfigError "<what> must be a name or an object with class_name and config".
  static NamedObject from_config(const nlohmann::json& config, const std::string& what);
};

}  // namespace rankine
