#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "runtime/arithmetic/leaf.hpp"
#include "runtime/compute/tensor.hpp"

namespace rankine {

/// Fans of a variable, from its global shape.
struct Fans {
  double in = 1;
  double out = 1;
};
/// Keras's compute_fans: rank 0 (1, 1), rank 1 (n, n), rank 2 (s0, s1), above the convolution rule.
Fans fans_of(const Shape& shape);

/// A rule for a variable's first values: a function of (seed, the variable's ordinal, global element index),
/// so that any part of it can be made anywhere. Keras's names, defaults and formulas (keras.md F.1).
class Initializer {
 public:
  virtual ~Initializer() = default;
  /// Throws ConfigError when the rule can't make a variable of this shape.
  virtual void check(const Shape& global) const { (void)global; }
  /// Writes elements [first, first + out.elements()) of the flat global tensor of shape `global`.
  virtual void fill(const Shape& global, Fans fans, std::uint64_t seed, std::uint32_t ordinal,
                    std::int64_t first, Tensor out) const = 0;
};

/// From a Keras envelope or plain name ("glorot_uniform"). Throws ConfigError naming what isn't supported and
/// what is.
std::shared_ptr<const Initializer> initializer_from_config(const nlohmann::json& config);

}  // namespace rankine
