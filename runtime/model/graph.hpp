#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/model/layer.hpp"

namespace rankine {

/// One value that flows between calls. Values 0 .. inputs-1 are the model's inputs.
struct GraphValue {
  ValueSpec spec;
  int producer = -1;  ///< number of the call that makes it; -1 for an input
  int mask = -1;      ///< the value that says which of its rows count; -1: all do
};

/// One call of a layer. Variables and values are indices into the model's variables and the graph's values.
struct GraphCall {
  const Layer* layer = nullptr;
  std::string path;  ///< of the layer, for messages: "encoder/dense_1"
  CallArguments arguments;
  std::vector<int> inputs;
  std::vector<int> masks;  ///< CallContext::masks; -1 for an absent one
  int output = -1;
  std::vector<int> variables;
  /// For random numbers: its place among the calls of the model's layers.
  std::uint32_t number = 0;
  bool makes_mask = false;  ///< a call of one of `mask_layers`, which the config doesn't have
};

/// A model's data flow with nested models flattened, calls in an order in which they can run.
struct Graph {
  std::vector<GraphValue> values;
  std::vector<GraphCall> calls;
  std::vector<int> inputs;
  std::vector<int> outputs;
  std::vector<std::shared_ptr<const Layer>> mask_layers;
};

}  // namespace rankine
