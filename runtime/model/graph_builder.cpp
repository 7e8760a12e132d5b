#include "runtime/model/graph_builder.hpp"

#include <algorithm>

#include "runtime/error.hpp"
#include "runtime/model/shape_limits.hpp"

namespace rankine {
namespace {

/// Small configs can unfold to any number of calls: nested models that call nested models.
constexpr std::size_t k_most_calls = 100'000;

class DeclarationList : public VariableBuilder {
 public:
  explicit DeclarationList(std::string owner) : owner_(std::move(owner)) {}
  void add(const Group& group, const std::string& name, const Shape& shape,
           std::shared_ptr<const Initializer> initializer, Fans fans, bool trainable) override {
    check_shape_limits(shape, owner_ + ", variable " + name + ",");
    try {
      initializer->check(shape);
    } catch (const ConfigError& error) {
      throw ConfigError(owner_ + ", variable " + name + ": " + error.what());
    }
    variables.push_back({group, name, shape, std::move(initializer), fans, trainable, -1});
  }
  std::vector<DeclaredVariable> variables;

 private:
  std::string owner_;
};

std::string describe(const ValueSpec& spec) {
  return spec.shape.to_string() + " " + std::string(name_of(spec.dtype));
}

class GraphBuilder {
 public:
  BuiltGraph build(ModelTree& model) {
    Graph& graph = built_.graph;
    for (const Endpoint& input : model.inputs) {
      const LayerEntry& entry = model.layers[static_cast<std::size_t>(input.tensor.layer)];
      if (!entry.input)
        throw ConfigError(
            "the model '" + model.name +
            "' doesn't say the shape of its input: put keras.Input(shape=…) in front of its layers");
      graph.inputs.push_back(add_value(*entry.input, -1));
    }
    graph.outputs = run(model, "", graph.inputs);
    if (graph.calls.empty()) throw ConfigError("the model '" + model.name + "' computes nothing");
    return std::move(built_);
  }

 private:
  int add_value(const ValueSpec& spec, int producer) {
    built_.graph.values.push_back({spec, producer});
    return static_cast<int>(built_.graph.values.size()) - 1;
  }
  const ValueSpec& spec_of(int value) const {
    return built_.graph.values[static_cast<std::size_t>(value)].spec;
  }

  /// One call of a model: the values of its outputs for these values of its inputs.
  std::vector<int> run(ModelTree& model, const std::string& path, const std::vector<int>& inputs) {
    // results[layer][node] are the values that the call has made.
    std::vector<std::vector<std::vector<int>>> results(model.layers.size());
    for (std::size_t i = 0; i < model.layers.size(); ++i) results[i].resize(model.layers[i].calls.size());
    const auto value_of = [&](const TensorReference& r) {
      return results[static_cast<std::size_t>(r.layer)][static_cast<std::size_t>(r.node)]
                    [static_cast<std::size_t>(r.tensor)];
    };
    for (std::size_t i = 0; i < inputs.size(); ++i)
      results[static_cast<std::size_t>(model.inputs[i].tensor.layer)][0] = {inputs[i]};

    for (const CallPlace place : model.order) {
      LayerEntry& entry = model.layers[static_cast<std::size_t>(place.layer)];
      if (entry.is_input) continue;
      const CallDescription& call = entry.calls[static_cast<std::size_t>(place.node)];
      std::vector<int> arguments;
      for (const TensorReference& input : call.inputs) arguments.push_back(value_of(input));
      const std::string full = path.empty() ? entry.name : path + "/" + entry.name;
      auto& made = results[static_cast<std::size_t>(place.layer)][static_cast<std::size_t>(place.node)];
      made = entry.model ? call_model(*entry.model, full, call, arguments)
                         : std::vector<int>{call_layer(entry, path, full, call, arguments)};
    }
    std::vector<int> outputs;
    for (const Endpoint& output : model.outputs) outputs.push_back(value_of(output.tensor));
    return outputs;
  }

  std::vector<int> call_model(ModelTree& model, const std::string& path, const CallDescription& call,
                              const std::vector<int>& arguments) {
    const std::string owner = "the model '" + path + "'";
    const std::vector<int> inputs = match_inputs(model, owner, call, arguments);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const LayerEntry& entry = model.layers[static_cast<std::size_t>(model.inputs[i].tensor.layer)];
      if (entry.input && !(*entry.input == spec_of(inputs[i])))
        throw ConfigError(owner + " takes " + describe(*entry.input) + " as its input '" +
                          model.inputs[i].name + "' but is called with " + describe(spec_of(inputs[i])));
    }
    return run(model, path, inputs);
  }

  /// Inputs given as a dict go by name, others by position.
  static std::vector<int> match_inputs(const ModelTree& model, const std::string& owner,
                                       const CallDescription& call, const std::vector<int>& arguments) {
    if (arguments.size() != model.inputs.size())
      throw ConfigError(owner + " has " + std::to_string(model.inputs.size()) +
                        " inputs but is called with " + std::to_string(arguments.size()));
    const bool named =
        std::none_of(call.keys.begin(), call.keys.end(), [](const std::string& key) { return key.empty(); });
    if (!named) return arguments;
    std::vector<int> inputs;
    for (const Endpoint& input : model.inputs) {
      const auto found = std::find(call.keys.begin(), call.keys.end(), input.name);
      if (found == call.keys.end())
        throw ConfigError(owner + " is called without its input '" + input.name + "'");
      inputs.push_back(arguments[static_cast<std::size_t>(found - call.keys.begin())]);
    }
    return inputs;
  }

  int call_layer(LayerEntry& entry, const std::string& path, const std::string& full,
                 const CallDescription& description, const std::vector<int>& arguments) {
    if (built_.graph.calls.size() >= k_most_calls)
      throw ConfigError("the model has more than " + std::to_string(k_most_calls) + " calls of layers");
    std::vector<ValueSpec> specs;
    for (const int value : arguments) specs.push_back(spec_of(value));
    GraphCall call;
    call.layer = entry.layer.get();
    call.path = full;
    call.arguments = description.arguments;
    call.inputs = arguments;
    ValueSpec output;
    try {
      declare_variables(entry, full, specs);
      output = entry.layer->output(specs);
      (void)entry.layer->plan(specs, description.arguments);  // refuses arguments that don't fit
    } catch (const ConfigError& error) {
      // The layer knows its own name only.
      if (path.empty()) throw;
      throw ConfigError("in the model '" + path + "': " + error.what());
    }
    check_shape_limits(output.shape, "the output of layer '" + full + "' (" + entry.class_name + ")");
    const int value = add_value(output, static_cast<int>(built_.graph.calls.size()));
    call.output = value;
    built_.entries.push_back(&entry);
    built_.graph.calls.push_back(std::move(call));
    return value;
  }

  /// The first call decides; later ones must want the same.
  static void declare_variables(LayerEntry& entry, const std::string& full,
                                const std::vector<ValueSpec>& specs) {
    const std::string owner = "layer '" + full + "' (" + entry.class_name + ")";
    DeclarationList declared(owner);
    entry.layer->build(specs, declared);
    if (!entry.built) {
      entry.variables = std::move(declared.variables);
      entry.built = true;
      return;
    }
    for (std::size_t i = 0; i < entry.variables.size(); ++i) {
      const Shape& first = entry.variables[i].shape;
      const Shape& now = declared.variables.at(i).shape;
      if (!(first == now))
        throw ConfigError(owner + " was built by its first call with " + entry.variables[i].name + " " +
                          first.to_string() + ", but another call of it needs " + now.to_string());
    }
  }

  BuiltGraph built_;
};

}  // namespace

BuiltGraph build_graph(ModelTree& model) {
  return GraphBuilder().build(model);
}

}  // namespace rankine
