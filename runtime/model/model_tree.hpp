#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runtime/model/layer.hpp"
#include "runtime/model/value.hpp"

namespace rankine {

/// A tensor of a model's config: output `tensor` of call `node` of layer number `layer` of the same model.
/// Keras writes it as [name, node, tensor].
struct TensorReference {
  int layer = -1;
  int node = 0;
  int tensor = 0;
  bool operator==(const TensorReference&) const = default;
};

/// One call of a layer, from `inbound_nodes`.
struct CallDescription {
  std::vector<TensorReference> inputs;  ///< in the order in which the layer takes them
  std::vector<std::string> keys;        ///< of inputs given as a dict, else empty
  /// The order in which Keras walks over the inputs, as indices; it decides between layers of equal depth.
  std::vector<int> visits;
  CallArguments arguments;
  /// The last inputs are masks, given by these parameters: "mask", "attention_mask".
  std::vector<std::string> mask_names;
};

/// A variable as a layer declares it, in the layer's own order.
struct DeclaredVariable {
  VariableBuilder::Group group;
  std::string name;
  Shape shape;
  WeightRules rules;
  Fans fans;
  bool trainable = true;
  int ordinal = -1;  ///< place in model.weights, once known
};

struct ModelTree;

/// One layer of a model's config: an input, a layer that computes, or a nested model.
struct LayerEntry {
  std::string name;
  std::string class_name;
  bool is_input = false;
  std::optional<ValueSpec> input;  ///< of an input; absent when the input takes what it is given
  std::unique_ptr<Layer> layer;
  const LayerKind* kind = nullptr;  ///< of `layer`
  bool is_operation = false;
  std::unique_ptr<ModelTree> model;
  std::vector<CallDescription> calls;  ///< one without inputs for an input

  // Filled when the layer is called for the first time.
  bool built = false;
  std::vector<DeclaredVariable> variables;
};

/// A named input or output of a model.
struct Endpoint {
  std::string name;
  TensorReference tensor;
};

/// One call within a model: the number of its layer, and which of that layer's calls it is.
struct CallPlace {
  int layer = 0;
  int node = 0;
};

/// A Functional or Sequential model as its config describes it, nested models included.
struct ModelTree {
  std::string name;
  std::string class_name;
  bool sequential = false;
  bool trainable = true;
  bool inputs_are_dict = false;
  std::vector<LayerEntry> layers;  ///< in the order of Keras's model.layers
  std::vector<Endpoint> inputs;
  std::vector<Endpoint> outputs;
  std::vector<CallPlace> order;  ///< all calls, each after those that it needs
};

/// One layer of the kinds that Rankine computes, from its class, name and config. Throws ConfigError.
std::unique_ptr<Layer> layer_from_config(const LayerKind& kind, const std::string& name,
                                         const nlohmann::json& config);

/// Reads the envelope of a Functional or Sequential model. Throws ConfigError; layers that can't be used are
/// all named in one message.
ModelTree model_tree_from_config(const nlohmann::json& envelope);

}  // namespace rankine
