#pragma once

#include <memory>

#include "runtime/model/layer.hpp"

namespace rankine {

/// y = dividend / x
std::unique_ptr<Layer> make_quotient(LayerCommon common, double dividend);

}  // namespace rankine
