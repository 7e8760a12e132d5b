#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "runtime/model/loss.hpp"

namespace rankine {

/// What a Keras config says by a name, the envelope of a function or the envelope of a class.
struct NamedObject {
  std::string name;              ///< "mse", "mean_squared_error", "MeanSquaredError"
  const nlohmann::json* config;  ///< of a class; nullptr for a name or a function
};
/// Nothing when it is none of them.
std::optional<NamedObject> named_object(const nlohmann::json& value);

/// One loss. Throws ConfigError that starts with `owner` and lists what is supported.
std::shared_ptr<const Loss> loss_from_config(const nlohmann::json& config, const std::string& owner);

/// One metric of an output whose loss wants targets like `target`; "accuracy" is resolved as Keras does.
/// Throws ConfigError that starts with `owner`.
std::shared_ptr<const Metric> metric_from_config(const nlohmann::json& config, const ValueSpec& prediction,
                                                 const ValueSpec& target, const std::string& owner);

}  // namespace rankine
