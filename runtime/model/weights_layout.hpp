#pragma once

#include <vector>

#include "runtime/model/model.hpp"
#include "runtime/model/model_tree.hpp"

namespace rankine {

/// The variables of a built model in the order of Keras's model.weights, and the groups of its weights file.
struct WeightsLayout {
  std::vector<Variable> variables;
  std::vector<SaveGroup> groups;
};

/// Also writes every variable's number into DeclaredVariable::ordinal. Throws ConfigError when the variables
/// have more than 2^40 elements together.
WeightsLayout lay_out_weights(ModelTree& model);

}  // namespace rankine
