#pragma once

#include <memory>

#include "runtime/model/layer.hpp"

namespace rankine {

// What makes masks, int32 values that go with the values of a graph.

/// 1 where an id isn't `value`.
std::unique_ptr<Layer> make_not_equal(LayerCommon common, std::int32_t value);
/// 1 where one of two masks isn't 0.
std::unique_ptr<Layer> make_either(LayerCommon common);
/// That of a layer which no config has.
LayerCommon mask_common();

}  // namespace rankine
