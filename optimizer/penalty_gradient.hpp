#pragma once

#include "runtime/compute/tensor.hpp"
#include "runtime/model/regularizer.hpp"

namespace rankine {

/// gradient += that of the regularizer's penalty at `value`: l1 * sign(w) + 2 * l2 * w.
void add_penalty_gradient(const Regularizer& regularizer, const Tensor& value, const Tensor& gradient);

}  // namespace rankine
