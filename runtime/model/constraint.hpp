#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>

#include "runtime/compute/tensor.hpp"

namespace rankine {

/// What Keras does to a trainable variable after each update of the optimizer. Works on the whole variable,
/// in host memory.
class Constraint {
 public:
  virtual ~Constraint() = default;
  /// Throws ConfigError when a variable of this shape can't be constrained so.
  virtual void check(const Shape& shape) const { (void)shape; }
  virtual void apply(const Tensor& value) const = 0;
};

/// From a Keras envelope or plain name ("non_neg"). Throws ConfigError naming what isn't supported and what
/// is.
std::shared_ptr<const Constraint> constraint_from_config(const nlohmann::json& config);

}  // namespace rankine
