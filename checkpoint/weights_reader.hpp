#pragma once

#include <cstdint>
#include <span>

#include "checkpoint/weights_file.hpp"
#include "runtime/model/variable.hpp"
#include "runtime/state.hpp"

namespace rankine {

/// What to do with numbers of another float type than the model's.
enum class FloatPolicy : std::uint8_t {
  same,     ///< refuse them
  convert,  ///< round to nearest (float64 to float32), or widen
};

/// Fills the variables' values, which must have memory. Strict: every variable must be in the file with its
/// shape and dtype, and the file must hold no others beside an optimizer's; otherwise nothing is changed and
/// one CheckpointError lists all differences. Not collective.
void read_weights(const WeightsFile& file, std::span<Variable> variables,
                  FloatPolicy policy = FloatPolicy::same);

enum class OptimizerRead : std::uint8_t {
  complete,   ///< every tensor of the state was read
  untrained,  ///< the file was saved before the first step and has no slots: the state is left as it is
  absent,     ///< the file has no optimizer: the state is left as it is
};

/// Fills the tensors of an optimizer's state; call its `state_changed` after that. Strict as `read_weights`:
/// another number of tensors, another shape or another optimizer's name is an error. Not collective.
OptimizerRead read_optimizer_state(const WeightsFile& file, StateDict& state,
                                   FloatPolicy policy = FloatPolicy::same);

}  // namespace rankine
