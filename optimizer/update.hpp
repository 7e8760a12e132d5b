#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "optimizer/clip.hpp"
#include "optimizer/rule.hpp"

namespace rankine {

/// What happens to the elements of one variable in one update, in Keras's order: clip, decay the weights,
/// rule. Done by blocks that stay in cache, so that each array passes through memory once.
struct VariableUpdate {
  const Rule* rule = nullptr;  ///< whose begin_update has run
  float learning_rate = 0.0F;
  VariableClip clip;
  std::optional<double> weight_decay;  ///< decoupled: w -= w * weight_decay * learning_rate

  /// Updates a run of elements; the gradient stays as it is. `scratch` is memory for clipped gradients, kept
  /// between calls.
  void apply(const Elements& elements, std::vector<std::byte>& scratch) const;
};

}  // namespace rankine
