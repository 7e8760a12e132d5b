#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/compute/tensor.hpp"

namespace rankine {

/// What a tensor of a model's or optimizer's state is.
enum class StateRole : std::uint8_t { weight, slot, counter };

/// One tensor of the state as others see it: where it belongs, its global shape, and this rank's part of it.
/// Everything is whole on every rank so far, so the local view is the global tensor.
struct StateTensor {
  std::string structural_path;  ///< "layers/dense/vars/0", "optimizer/vars/2"
  std::string path;             ///< for people: "dense/kernel", "adam/dense_kernel_momentum"
  StateRole role = StateRole::weight;
  Shape global_shape;
  Tensor local;
};

/// State in file order.
using StateDict = std::vector<StateTensor>;

}  // namespace rankine
