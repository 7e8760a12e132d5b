#pragma once

#include "runtime/model/model_tree.hpp"

namespace rankine {

/// Puts a model's layers into the order of Keras's model.layers, which the groups of its weights file follow,
/// and finds an order of its calls. Keras takes neither from the config: it sorts the layers by their largest
/// distance from the outputs, and those of equal distance by when a walk from the outputs meets them. Throws
/// ConfigError for loops and for layers, calls and inputs that nothing leads to or that lead nowhere.
void order_layers(ModelTree& model);

}  // namespace rankine
