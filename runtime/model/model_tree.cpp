#include "runtime/model/model_tree.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/error.hpp"
#include "runtime/model/config_reader.hpp"
#include "runtime/model/inbound_nodes.hpp"
#include "runtime/model/layer_order.hpp"
#include "runtime/model/naming.hpp"
#include "runtime/model/operation.hpp"
#include "runtime/model/shape_limits.hpp"

namespace rankine {

using nlohmann::json;

namespace {

const json k_null;

const json& member(const json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? k_null : *found;
}

std::string text_of(const json& object, const char* key) {
  const json& value = member(object, key);
  return value.is_string() ? value.get<std::string>() : "";
}

/// The dtype of a layer: a plain name, or the envelope of a policy that computes and stores in one dtype.
DType read_dtype_policy(const json& value, const std::string& owner) {
  if (value.is_null()) return DType::float32;
  std::string name;
  if (value.is_string()) {
    name = value.get<std::string>();
  } else if (value.is_object()) {
    const std::string class_name = text_of(value, "class_name");
    name = text_of(member(value, "config"), "name");
    if (class_name != "DTypePolicy" && class_name != "FloatDTypePolicy") name = class_name;
  }
  if (name == "float32") return DType::float32;
  if (name == "float64") return DType::float64;
  throw ConfigError(owner + " has the dtype policy '" + name.substr(0, 64) +
                    "', which isn't supported; supported are float32 and float64");
}

bool is_sequential_class(const std::string& class_name) {
  return class_name == "Sequential";
}
bool is_model_class(const std::string& class_name) {
  return is_sequential_class(class_name) || class_name == "Functional" || class_name == "Model";
}

/// Layers of Keras itself have no registered name, or their class's; "package>Name" is somebody's own class.
bool is_from_keras(const json& envelope) {
  const std::string module = text_of(envelope, "module");
  const std::string registered = text_of(envelope, "registered_name");
  const bool known_module = module.empty() || module == "keras" || module.starts_with("keras.layers") ||
                            module.starts_with("keras.models") || module.starts_with("keras.src.layers") ||
                            module.starts_with("keras.src.models");
  return known_module && (registered.empty() || registered == text_of(envelope, "class_name"));
}

class ModelReader {
 public:
  std::unique_ptr<ModelTree> read_root(const json& envelope) {
    if (!envelope.is_object() || !member(envelope, "config").is_object())
      throw ConfigError("the model's config isn't a JSON object with class_name and config");
    const std::string class_name = text_of(envelope, "class_name");
    if (!is_model_class(class_name) || !is_from_keras(envelope))
      throw ConfigError("the model's class is '" + class_name.substr(0, 64) +
                        "', which isn't supported; supported are Functional and Sequential models");
    auto model = read_model(envelope, "");
    if (!problems_.empty()) throw_problems(*model);
    return model;
  }

 private:
  std::unique_ptr<ModelTree> read_model(const json& envelope, const std::string& path) {
    const json& config = member(envelope, "config");
    auto model = std::make_unique<ModelTree>();
    model->class_name = text_of(envelope, "class_name");
    model->sequential = is_sequential_class(model->class_name);
    model->name = text_of(config, "name");
    if (model->name.empty()) model->name = to_snake_case(model->class_name);
    model->trainable = model->sequential || config.value("trainable", json(true)) != json(false);
    const json& layers = member(config, "layers");
    const std::string owner = "the model '" + model->name + "'";
    if (!layers.is_array() || layers.empty()) throw ConfigError(owner + " has no layers");

    LayersByName by_name;
    for (const json& layer : layers) {
      LayerEntry entry = read_entry(layer, path, owner);
      if (!by_name.emplace(entry.name, static_cast<int>(model->layers.size())).second)
        throw ConfigError(owner + " has two layers named '" + entry.name + "'; names must be unique");
      model->layers.push_back(std::move(entry));
    }
    const std::size_t problems = problems_.size();
    if (model->sequential) {
      connect_sequential(*model, config, envelope);
    } else {
      read_graph(*model, config, by_name, path);
    }
    if (problems_.empty() && problems == 0) order_layers(*model);
    return model;
  }

  static std::string joined(const std::string& path, const std::string& name) {
    return path.empty() ? name : path + "/" + name;
  }

  LayerEntry read_entry(const json& envelope, const std::string& path, const std::string& owner) {
    if (!envelope.is_object() || text_of(envelope, "class_name").empty() ||
        !member(envelope, "config").is_object())
      throw ConfigError(owner + " has a layer that isn't an object with class_name and config");
    LayerEntry entry;
    const json& config = member(envelope, "config");
    entry.class_name = text_of(envelope, "class_name");
    entry.name = text_of(envelope, "name");
    if (entry.name.empty()) entry.name = text_of(config, "name");
    if (entry.name.empty())
      throw ConfigError(owner + " has a layer of class " + entry.class_name.substr(0, 64) +
                        " without a name");
    const std::string full = joined(path, entry.name);
    if (is_operation(envelope)) {
      read_operation(entry, envelope, full);
    } else if (!is_from_keras(envelope)) {
      refuse_class(envelope, full);
    } else if (entry.class_name == "InputLayer") {
      entry.is_input = true;
      entry.calls.emplace_back();
      entry.input = read_input(config, entry.name);
    } else if (is_model_class(entry.class_name)) {
      entry.model = read_model(envelope, full);
    } else {
      read_layer(entry, config, full);
    }
    return entry;
  }

  void read_layer(LayerEntry& entry, const json& config, const std::string& full) {
    entry.kind = find_layer_kind(entry.class_name);
    if (entry.kind == nullptr) {
      not_a_layer(full + " (" + entry.class_name.substr(0, 64) + "): not supported");
      return;
    }
    try {
      entry.layer = layer_from_config(*entry.kind, entry.name, config);
    } catch (const ConfigError& error) {
      problems_.push_back(full + ": " + error.what());
    }
  }

  void read_operation(LayerEntry& entry, const json& envelope, const std::string& full) {
    entry.is_operation = true;
    const std::string module = text_of(envelope, "module");
    entry.kind = find_operation_kind(module, entry.class_name);
    if (entry.kind == nullptr) {
      not_a_layer(full + " (" + entry.class_name.substr(0, 64) + " of " + module.substr(0, 64) +
                  "): an operation that isn't supported");
      return;
    }
    try {
      entry.layer = layer_from_config(*entry.kind, entry.name,
                                      operation_config(envelope, "operation '" + entry.name + "'"));
    } catch (const ConfigError& error) {
      problems_.push_back(full + ": " + error.what());
    }
  }

  void refuse_class(const json& envelope, const std::string& full) {
    const std::string module = text_of(envelope, "module");
    const std::string class_name = text_of(envelope, "class_name").substr(0, 64);
    const std::string registered = text_of(envelope, "registered_name").substr(0, 64);
    not_a_layer(full + " (" + (registered.empty() ? class_name : registered) + " of " +
                (module.empty() ? "no module" : module.substr(0, 64)) + "): not a layer of Keras");
  }

  void not_a_layer(std::string problem) {
    problems_.push_back(std::move(problem));
    layers_wanted_ = true;
  }

  static ValueSpec read_input(const json& config, const std::string& name) {
    const std::string owner = "input '" + name + "'";
    for (const char* flag : {"sparse", "ragged", "optional"})
      if (member(config, flag) == json(true))
        throw ConfigError(owner + " is " + flag + ", which isn't supported");
    ValueSpec spec;
    const std::string dtype = text_of(config, "dtype");
    try {
      if (!dtype.empty()) spec.dtype = dtype_from_name(dtype);
    } catch (const ConfigError& error) {
      throw ConfigError(owner + ": " + error.what());
    }
    for (const char* key : {"batch_shape", "batch_input_shape"})
      if (!member(config, key).is_null()) {
        spec.shape = sample_shape_from_json(member(config, key), owner);
        return spec;
      }
    json shape = member(config, "shape").is_null() ? member(config, "input_shape") : member(config, "shape");
    if (!shape.is_array()) throw ConfigError(owner + " has no shape");
    shape.insert(shape.begin(), nullptr);
    spec.shape = sample_shape_from_json(shape, owner);
    return spec;
  }

  /// The layers of a Sequential are one chain; its InputLayer may be missing.
  static void connect_sequential(ModelTree& model, const json& config, const json& envelope) {
    std::vector<LayerEntry>& layers = model.layers;
    if (!layers[0].is_input) {
      LayerEntry input;
      // A name that no layer of the config can have, since "/" separates paths.
      input.name = "/input";
      input.class_name = "InputLayer";
      input.is_input = true;
      input.calls.emplace_back();
      input.input = input_of_first_layer(layers[0], config, envelope);
      layers.insert(layers.begin(), std::move(input));
    }
    if (layers.size() == 1)
      throw ConfigError("the model '" + model.name + "' has no layers besides its input");
    for (std::size_t i = 1; i < layers.size(); ++i) {
      if (layers[i].is_input)
        throw ConfigError("the model '" + model.name + "' has an InputLayer '" + layers[i].name +
                          "' that isn't its first layer");
      layers[i].calls.push_back({{{static_cast<int>(i) - 1, 0, 0}}, {""}, {0}, {}});
    }
    const std::string name = layers[0].name == "/input" ? "x" : layers[0].name;
    model.inputs.push_back({name, {0, 0, 0}});
    model.outputs.push_back({"y", {static_cast<int>(layers.size()) - 1, 0, 0}});
  }

  /// What Keras builds the first layer for when there is no InputLayer. Absent: whatever the model is given.
  static std::optional<ValueSpec> input_of_first_layer(const LayerEntry& first, const json& config,
                                                       const json& envelope) {
    if (first.model && first.model->inputs.size() == 1) {
      const auto layer = static_cast<std::size_t>(first.model->inputs[0].tensor.layer);
      return first.model->layers[layer].input;
    }
    const DType dtype = first.layer ? first.layer->common().dtype : DType::float32;
    for (const json* shape :
         {&member(config, "build_input_shape"), &member(member(envelope, "build_config"), "input_shape")})
      if (shape->is_array())
        return ValueSpec{sample_shape_from_json(*shape, "layer '" + first.name + "'"), dtype};
    return std::nullopt;
  }

  void read_graph(ModelTree& model, const json& config, const LayersByName& by_name,
                  const std::string& path) {
    const json& layers = member(config, "layers");
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
      LayerEntry& entry = model.layers[i];
      if (entry.is_input || (!entry.layer && !entry.model)) continue;
      const std::string owner = "layer '" + joined(path, entry.name) + "' (" + entry.class_name + ")";
      try {
        const json nodes =
            entry.is_operation ? operation_nodes(layers[i]) : member(layers[i], "inbound_nodes");
        entry.calls = calls_from_config(nodes, by_name, owner);
        for (const CallDescription& call : entry.calls) {
          if (call.arguments.use_causal_mask && (entry.kind == nullptr || !entry.kind->is_attention))
            throw ConfigError(owner + " is called with use_causal_mask, which only attention layers take");
          if (call.arguments.reverse && (entry.kind == nullptr || !entry.kind->is_reversible))
            throw ConfigError(owner + " is called with reverse, which only ReversibleEmbedding takes");
        }
      } catch (const ConfigError& error) {
        problems_.emplace_back(error.what());
      }
    }
    read_endpoints(model, member(config, "input_layers"), by_name, "input_layers", model.inputs);
    read_endpoints(model, member(config, "output_layers"), by_name, "output_layers", model.outputs);
    model.inputs_are_dict = member(config, "input_layers").is_object();
    if (!problems_.empty()) return;
    if (model.outputs.size() == 1 && !member(config, "output_layers").is_object())
      model.outputs[0].name = "y";
    for (LayerEntry& entry : model.layers) {
      if (entry.calls.empty())
        throw ConfigError("the model '" + model.name + "' never calls its layer '" + entry.name + "'");
      for (CallDescription& call : entry.calls)
        for (TensorReference& input : call.inputs) check_reference(model, input);
    }
    for (Endpoint& input : model.inputs) check_reference(model, input.tensor);
    for (Endpoint& output : model.outputs) check_reference(model, output.tensor);
  }

  /// One [name, node, tensor], a list of them, or a dict, which Keras walks over by key.
  static void read_endpoints(const ModelTree& model, const json& value, const LayersByName& by_name,
                             const char* key, std::vector<Endpoint>& out) {
    const std::string owner = "the model '" + model.name + "' in " + key;
    const auto add = [&](const json& triple, const std::string& name) {
      TensorReference reference = reference_from_config(triple, by_name, owner);
      const LayerEntry& entry = model.layers[static_cast<std::size_t>(reference.layer)];
      // Here, and only here, Keras counts the calls of a nested Functional from 1; -1 is Python's last.
      if (entry.model && !entry.model->sequential) --reference.node;
      if (reference.node < 0) reference.node = static_cast<int>(entry.calls.size()) - 1;
      out.push_back({name.empty() ? entry.name : name, reference});
    };
    if (is_reference(value)) {
      add(value, "");
    } else if (value.is_array()) {
      for (const json& triple : value) add(triple, "");
    } else if (value.is_object()) {
      for (const auto& [name, triple] : value.items())
        add(triple.is_array() && triple.size() == 1 ? triple[0] : triple, name);
    }
    if (out.empty()) throw ConfigError(owner + " lists no tensors");
    NameCounter counter;
    for (Endpoint& endpoint : out) endpoint.name = counter.next(endpoint.name);
  }

  static void check_reference(const ModelTree& model, const TensorReference& reference) {
    const LayerEntry& entry = model.layers[static_cast<std::size_t>(reference.layer)];
    const std::size_t tensors = entry.model ? entry.model->outputs.size() : 1;
    if (static_cast<std::size_t>(reference.node) >= entry.calls.size())
      throw ConfigError("the model '" + model.name + "' refers to call " + std::to_string(reference.node) +
                        " of layer '" + entry.name + "', which is called " +
                        std::to_string(entry.calls.size()) + " times");
    if (static_cast<std::size_t>(reference.tensor) >= tensors)
      throw ConfigError("the model '" + model.name + "' refers to output " +
                        std::to_string(reference.tensor) + " of layer '" + entry.name + "', which has " +
                        std::to_string(tensors));
  }

  [[noreturn]] void throw_problems(const ModelTree& model) const {
    constexpr std::size_t k_most = 20;
    std::string text = "the model '" + model.name + "' can't be used:";
    for (std::size_t i = 0; i < std::min(problems_.size(), k_most); ++i) text += "\n  " + problems_[i];
    if (problems_.size() > k_most) text += "\n  and " + std::to_string(problems_.size() - k_most) + " more";
    if (!layers_wanted_) throw ConfigError(text);
    text += "\nSupported layers are InputLayer";
    for (const LayerKind& kind : layer_kinds()) text += ", " + std::string(kind.class_name);
    text += ", and nested Functional and Sequential models; supported operations are ";
    for (const LayerKind& kind : operation_kinds())
      text += (&kind == operation_kinds().data() ? "" : ", ") + std::string(kind.class_name);
    throw ConfigError(text + ".");
  }

  std::vector<std::string> problems_;
  bool layers_wanted_ = false;  ///< whether a problem is a layer that isn't there
};

}  // namespace

std::unique_ptr<Layer> layer_from_config(const LayerKind& kind, const std::string& name, const json& config) {
  LayerCommon common;
  common.class_name = kind.class_name;
  common.name = name;
  common.dtype = read_dtype_policy(member(config, "dtype"), layer_label(common));
  common.trainable = member(config, "trainable") != json(false);
  return kind.make(std::move(common), config);
}

ModelTree model_tree_from_config(const json& envelope) {
  return std::move(*ModelReader().read_root(envelope));
}

}  // namespace rankine
