#pragma once

#include <memory>
#include <string>

#include "runtime/compute/tensor.hpp"
#include "runtime/model/weight_rules.hpp"

namespace rankine {

/// A weight of a model. Nothing depends on its names: `path` is for people (Keras's, "dense_1/kernel"),
/// `structural_path` is its place in a Keras weights file ("layers/dense_1/vars/0"), `ordinal` its place in
/// model.weights.
struct Variable {
  std::string path;
  std::string structural_path;
  int ordinal = 0;
  Shape shape;
  DType dtype = DType::float32;
  bool trainable = true;
  WeightRules rules;
  Fans fans;
  Tensor value;  ///< in the model's weight memory once Model::allocate has run
};

}  // namespace rankine
