#pragma once

#include <cstdint>

#include "runtime/dtype.hpp"
#include "runtime/model/config_reader.hpp"

namespace rankine {

enum class ClipKind : std::uint8_t { none, norm, global_norm, value };

/// Keras's clipping of the reduced gradients: `clipnorm` (each variable by its own norm), `global_clipnorm`
/// (all by the norm over all), `clipvalue` (each element).
struct Clip {
  ClipKind kind = ClipKind::none;
  double limit = 0.0;

  /// Throws ConfigError for two of them at once or a negative one. 0 clips nothing, as in Keras.
  static Clip from_config(ConfigReader& config);
};

/// The clipping of one variable in one update.
struct VariableClip {
  Clip clip;
  double norm = 0.0;  ///< of this variable's gradient, or of all for global_norm

  /// clipped[i] = clip(gradient[i]), in Keras's formulas. The arrays may be the same.
  void apply(DType dtype, std::int64_t count, const void* gradient, void* clipped) const;
};

}  // namespace rankine
