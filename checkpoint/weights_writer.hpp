#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "runtime/model/model.hpp"
#include "runtime/state.hpp"

namespace rankine {

/// What a weights file gets, by structural path.
struct WeightsContent {
  std::span<const Variable> variables;
  std::span<const SaveGroup> groups;  ///< every layer's, also of those without weights
  std::span<const StateTensor> optimizer;
  std::string optimizer_name;  ///< "adam"; the group is left out when both this and the state are empty
};

/// The bytes of a `.weights.h5` exactly as Keras lays it out: a `vars` group with the name for each saved
/// object, contiguous arrays, the earliest file format. Throws CheckpointError.
std::vector<std::byte> weights_image(const WeightsContent& content);

}  // namespace rankine
