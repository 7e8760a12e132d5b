#pragma once

#include <nlohmann/json_fwd.hpp>

#include "runtime/compute/backend.hpp"

namespace rankine {

/// A penalty on a trainable variable, which Keras adds to the loss: l1 * sum |w| + l2 * sum w^2.
struct Regularizer {
  double l1 = 0.0, l2 = 0.0;

  bool is_nothing() const { return l1 == 0.0 && l2 == 0.0; }
  /// Of the whole variable; the same bits whatever the backend's threads.
  double penalty(Backend& backend, const Tensor& value) const;
};

/// From a Keras envelope or plain name ("l2"). Throws ConfigError naming what isn't supported and what is.
Regularizer regularizer_from_config(const nlohmann::json& config);

}  // namespace rankine
