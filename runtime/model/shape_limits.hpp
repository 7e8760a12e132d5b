#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "runtime/shape.hpp"

namespace rankine {

/// Throws ConfigError "<owner> …" unless every size is at least 1 and the product can't overflow anything
/// that is computed from it (2^40 elements).
void check_shape_limits(const Shape& shape, const std::string& owner);

/// The sample's shape of a JSON shape with the batch dimension in front: [null, 4, 6] is (4, 6). Throws
/// ConfigError
/// "<owner> …" for anything but fixed sizes within limits.
Shape sample_shape_from_json(const nlohmann::json& batch_shape, const std::string& owner);

}  // namespace rankine
