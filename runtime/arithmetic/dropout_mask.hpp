#pragma once

#include <cstdint>

namespace rankine {

/// Which elements a Dropout drops: see RandomUse::dropout.
struct DropoutMask {
  double rate = 0.0;
  std::uint64_t seed = 0;
  std::int64_t first_sample = 0;  ///< place of the tensor's first sample in the step's global batch
  std::int64_t step = 0;
  std::uint32_t call = 0;  ///< the call's number in the graph
};

}  // namespace rankine
