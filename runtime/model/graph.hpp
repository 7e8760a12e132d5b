#pragma once

#include <string>
#include <vector>

#include "runtime/model/layer.hpp"

namespace rankine {

/// One value that flows between calls. Values 0 .. inputs-1 are the model's inputs.
struct GraphValue {
  ValueSpec spec;
  int producer = -1;  ///< number of the call that makes it; -1 for an input
};

/// One call of a layer. Variables and values are indices into the model's variables and the graph's values.
struct GraphCall {
  const Layer* layer = nullptr;
  std::string path;  ///< of the layer, for messages: "encoder/dense_1"
  CallArguments arguments;
  std::vector<int> inputs;
  int output = -1;
  std::vector<int> variables;
};

/// A model's data flow with nested models flattened, calls in an order in which they can run.
struct Graph {
  std::vector<GraphValue> values;
  std::vector<GraphCall> calls;
  std::vector<int> inputs;
  std::vector<int> outputs;
};

}  // namespace rankine
