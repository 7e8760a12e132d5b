#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>

namespace rankine {

/// A learning rate as a function of Keras's raw `iteration` counter before the step's increment (from 0). It
/// has no state: resuming needs nothing but the counter.
using Schedule = std::function<float(std::int64_t step)>;

/// A Keras learning-rate schedule from its envelope: ExponentialDecay, PiecewiseConstantDecay,
/// PolynomialDecay, InverseTimeDecay, CosineDecay, CosineDecayRestarts. Computed in float32 as Keras does.
/// Throws ConfigError for another class or a value that gives no schedule.
Schedule make_schedule(const nlohmann::json& envelope);

}  // namespace rankine
