#pragma once

#include <memory>

#include "runtime/model/layer.hpp"

namespace rankine {

/// y = scale * x + offset
struct AffineOptions {
  double scale = 1.0;
  double offset = 0.0;
};
std::unique_ptr<Layer> make_affine(LayerCommon common, AffineOptions options);

}  // namespace rankine
