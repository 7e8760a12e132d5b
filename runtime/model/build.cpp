#include "runtime/model/build.hpp"

#include <nlohmann/json.hpp>
#include <optional>

#include "runtime/error.hpp"
#include "runtime/model/model_tree.hpp"
#include "runtime/model/naming.hpp"

namespace rankine {

using nlohmann::json;

namespace {

/// A tensor of the config under construction. The spec is absent after a layer that can't be made; then
/// Model::from_config says why.
struct BuiltTensor {
  std::size_t layer = 0;
  std::size_t node = 0;
  std::optional<ValueSpec> spec;
};

struct BuiltLayer {
  json envelope;
  std::unique_ptr<Layer> layer;  ///< absent for an input
  bool is_attention = false;
};

json batch_shape(const Shape& sample) {
  json sizes = json::array({nullptr});
  for (const std::int64_t size : sample.sizes()) sizes.push_back(size);
  return sizes;
}

json keywords_of(const CallArguments& arguments) {
  json keywords = json::object();
  if (arguments.use_causal_mask) keywords["use_causal_mask"] = true;
  if (arguments.reverse) keywords["reverse"] = true;
  return keywords;
}

}  // namespace

struct ModelBuilder::State {
  std::string name;
  std::vector<BuiltLayer> layers;
  std::vector<BuiltTensor> tensors;
  json inputs = json::array();
  NameCounter names;

  const BuiltTensor& tensor(Symbol symbol) const {
    if (symbol.index < 0 || static_cast<std::size_t>(symbol.index) >= tensors.size())
      throw ConfigError("the model '" + name + "' is built with a Symbol that its builder didn't make");
    return tensors[static_cast<std::size_t>(symbol.index)];
  }
  json triple(const BuiltTensor& tensor) const {
    return json::array({layers[tensor.layer].envelope["name"], tensor.node, 0});
  }
  /// As Keras writes a tensor in inbound_nodes.
  json envelope(const BuiltTensor& tensor) const {
    const ValueSpec spec = tensor.spec.value_or(ValueSpec{});
    return {{"class_name", "__keras_tensor__"},
            {"config",
             {{"shape", batch_shape(spec.shape)},
              {"dtype", std::string(name_of(spec.dtype))},
              {"keras_history", triple(tensor)}}}};
  }

  Symbol add_tensor(std::size_t layer, std::size_t node, std::optional<ValueSpec> spec) {
    tensors.push_back({layer, node, std::move(spec)});
    return {static_cast<int>(tensors.size()) - 1};
  }

  Symbol call(std::size_t number, const std::vector<Symbol>& inputs, const CallArguments& arguments) {
    BuiltLayer& layer = layers[number];
    json tensors_in = json::array();
    std::vector<ValueSpec> specs;
    for (const Symbol input : inputs) {
      const BuiltTensor& from = tensor(input);
      tensors_in.push_back(envelope(from));
      if (from.spec) specs.push_back(*from.spec);
    }
    const bool one_list = inputs.size() > 1 && !layer.is_attention;
    json& nodes = layer.envelope["inbound_nodes"];
    nodes.push_back(
        {{"args", one_list ? json::array({tensors_in}) : tensors_in}, {"kwargs", keywords_of(arguments)}});
    std::optional<ValueSpec> spec;
    try {
      if (layer.layer && specs.size() == inputs.size()) spec = layer.layer->output(specs);
    } catch (const ConfigError&) {
      // `build` throws it, with whatever else is wrong.
    }
    return add_tensor(number, nodes.size() - 1, std::move(spec));
  }
};

ModelBuilder::ModelBuilder(std::string name) : state_(std::make_unique<State>()) {
  state_->name = std::move(name);
}
ModelBuilder::~ModelBuilder() = default;

Symbol ModelBuilder::input(const std::string& name, std::vector<std::int64_t> shape, DType dtype) {
  const ValueSpec spec{Shape(std::move(shape)), dtype};
  json config = {{"batch_shape", batch_shape(spec.shape)},
                 {"dtype", std::string(name_of(dtype))},
                 {"sparse", false},
                 {"ragged", false},
                 {"optional", false},
                 {"name", name}};
  json envelope = {{"module", "keras.layers"},
                   {"class_name", "InputLayer"},
                   {"config", std::move(config)},
                   {"registered_name", nullptr},
                   {"name", name},
                   {"inbound_nodes", json::array()}};
  state_->layers.push_back({std::move(envelope), nullptr, false});
  const Symbol symbol = state_->add_tensor(state_->layers.size() - 1, 0, spec);
  state_->inputs.push_back(state_->triple(state_->tensor(symbol)));
  return symbol;
}

Symbol ModelBuilder::layer(const std::string& class_name, const std::vector<NamedAttribute>& config,
                           const std::vector<Symbol>& inputs, CallArguments arguments) {
  for (const Symbol input : inputs) (void)state_->tensor(input);
  const LayerKind* kind = find_layer_kind(class_name);
  json own = json::object();
  for (const NamedAttribute& attribute : config)
    std::visit([&](const auto& value) { own[attribute.name] = value; }, attribute.value);
  if (!own.contains("name")) {
    const bool renamed = kind != nullptr && !kind->python_class.empty();
    own["name"] = state_->names.next(to_snake_case(renamed ? kind->python_class : class_name));
  }
  BuiltLayer layer;
  try {
    if (kind != nullptr && own["name"].is_string())
      layer.layer = layer_from_config(*kind, own["name"].get<std::string>(), own);
  } catch (const ConfigError&) {
    // `build` throws it, with whatever else is wrong.
  }
  layer.is_attention = kind != nullptr && kind->is_attention;
  layer.envelope = {
      {"module", "keras.layers"},   {"class_name", class_name}, {"config", own},
      {"registered_name", nullptr}, {"name", own["name"]},      {"inbound_nodes", json::array()}};
  state_->layers.push_back(std::move(layer));
  return state_->call(state_->layers.size() - 1, inputs, arguments);
}

Symbol ModelBuilder::again(Symbol of, const std::vector<Symbol>& inputs, CallArguments arguments) {
  const std::size_t number = state_->tensor(of).layer;
  const json& envelope = state_->layers[number].envelope;
  if (envelope["class_name"] == "InputLayer")
    throw ConfigError("the model '" + state_->name + "' calls its input '" +
                      envelope["name"].get<std::string>() + "' as if it were a layer");
  return state_->call(number, inputs, arguments);
}

Model ModelBuilder::build(const std::vector<Symbol>& outputs) {
  const auto one_or_list = [](const json& triples) { return triples.size() == 1 ? triples[0] : triples; };
  json triples = json::array();
  for (const Symbol output : outputs) triples.push_back(state_->triple(state_->tensor(output)));
  json layers = json::array();
  for (const BuiltLayer& layer : state_->layers) layers.push_back(layer.envelope);
  const json model = {{"module", "keras.src.models.functional"},
                      {"class_name", "Functional"},
                      {"config",
                       {{"name", state_->name},
                        {"trainable", true},
                        {"layers", std::move(layers)},
                        {"input_layers", one_or_list(state_->inputs)},
                        {"output_layers", one_or_list(triples)}}},
                      {"registered_name", "Functional"},
                      {"build_config", {{"input_shape", nullptr}}}};
  return Model::from_config(model.dump(-1, ' ', false, json::error_handler_t::replace));
}

}  // namespace rankine
