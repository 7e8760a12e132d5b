#pragma once

#include <memory>

#include "runtime/model/constraint.hpp"
#include "runtime/model/initializer.hpp"
#include "runtime/model/regularizer.hpp"

namespace rankine {

/// What a layer's config says of one of its weights: `kernel_initializer`, `kernel_regularizer`,
/// `kernel_constraint`. The last two hold while the weight is trained.
struct WeightRules {
  std::shared_ptr<const Initializer> initializer;
  Regularizer regularizer = {};
  std::shared_ptr<const Constraint> constraint = nullptr;
};

}  // namespace rankine
