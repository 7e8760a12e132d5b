#pragma once

#include <vector>

#include "runtime/model/graph.hpp"
#include "runtime/model/model_tree.hpp"

namespace rankine {

/// A model's data flow, and for each of its calls the layer that it calls; null for calls that make masks.
struct BuiltGraph {
  Graph graph;
  std::vector<const LayerEntry*> entries;
};

/// Runs shapes through a model, nested models included: makes the graph's values and calls, and has every
/// layer declare its variables at its first call. GraphCall::variables stay empty until the variables are
/// numbered. Throws ConfigError naming the layer's path.
BuiltGraph build_graph(ModelTree& model);

}  // namespace rankine
